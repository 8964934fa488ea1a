//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// companion is `serve --companion`, as an app starts it.
type companion struct {
	ready
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.Closer
	out   *buffer // after the ready line
	err   *buffer
	done  chan struct{}
}

func (f *fort) companion() *companion {
	f.t.Helper()
	c := &companion{t: f.t, cmd: f.command("serve", "--companion"), out: &buffer{}, err: &buffer{}, done: make(chan struct{})}
	in, inErr := c.cmd.StdinPipe()
	out, outErr := c.cmd.StdoutPipe()
	c.stdin, c.cmd.Stderr = in, c.err
	if err := errors.Join(inErr, outErr, c.cmd.Start()); err != nil {
		f.t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	line, err := reader.ReadBytes('\n')
	go func() {
		io.Copy(c.out, reader)
		c.cmd.Wait()
		close(c.done)
	}()
	if err == nil {
		err = json.Unmarshal(line, &c.ready)
	}
	if err != nil || c.Event != "ready" || c.URL == "" || c.Port == 0 || c.Instance == "" || c.Version == "" {
		f.t.Fatalf("the ready line is %q (%v)\n%s", line, err, c.err)
	}
	f.t.Cleanup(func() { c.stdin.Close(); c.ends(20 * time.Second) })
	return c
}

func (c *companion) ends(within time.Duration) {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(within):
		c.cmd.Process.Kill()
		c.t.Errorf("the companion still ran after %s\n%s", within, c.err)
	}
}

func TestCompanionEndsWithItsStdin(t *testing.T) {
	f := newFort(t)
	f.addServer("fake", "ignores-eof")
	c := f.companion()
	if c.Attached {
		t.Fatal("there was nobody to attach to")
	}
	f.approve("fake")
	child := f.pid("fake/main")
	c.stdin.Close()
	c.ends(10 * time.Second)
	if alive(child) || len(f.children()) != 0 {
		t.Errorf("children are left: %v", f.children())
	}
	if c.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("it exited with %d", c.cmd.ProcessState.ExitCode())
	}
	if c.out.String() != "" {
		t.Errorf("stdout has more than the ready line: %q", c.out)
	}
	if _, err := os.Stat(f.state("desktop.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the discovery file is still there: %v", err)
	}
	if got := f.run("health"); got.code != 3 {
		t.Errorf("health exits with %d", got.code)
	}
}

func TestCompanionDiesWithItsParent(t *testing.T) {
	f := newFort(t)
	f.addServer("fake", "ignores-eof")
	f.approve("fake")
	// The parent holds a pipe as the companion's stdin that somebody else holds too, so
	// that only its death tells.
	held, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	defer hold.Close()
	// A shell gives a background command no stdin unless it is named.
	parent := exec.Command("/bin/sh", "-c", `exec 3<&0; "$0" serve --companion <&3 & echo $!; wait`, f.bin)
	parent.Env, parent.Dir, parent.Stdin = f.env, f.dir, held
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	first, _ := reader.ReadString('\n')
	second, _ := reader.ReadString('\n')
	sidecar, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		sidecar, err = strconv.Atoi(strings.TrimSpace(second))
	}
	if err != nil {
		t.Fatalf("got %q and %q", first, second)
	}
	child := f.pid("fake/main")
	if !alive(sidecar) || !alive(child) {
		t.Fatal("it does not run")
	}
	parent.Process.Kill()
	parent.Wait()
	took := eventually(t, 10*time.Second, "sidecar and children are gone", func() bool { return !alive(sidecar) && !alive(child) })
	t.Logf("gone %s after the parent", took)
	if left := f.children(); len(left) != 0 {
		t.Errorf("children are left: %v", left)
	}
}

func TestASecondCompanionAttaches(t *testing.T) {
	f := newFort(t)
	first := f.companion()
	second := f.companion()
	if !second.Attached || second.Instance != first.Instance || second.URL != first.URL || second.Port != first.Port {
		t.Fatalf("the second says %+v, the first %+v", second.ready, first.ready)
	}
	if got := f.run("serve"); got.code != 0 || !strings.Contains(got.stdout, first.URL) {
		t.Errorf("a plain second serve: %+v", got)
	}
	select {
	case <-second.done:
		t.Fatal("the second did not stay")
	case <-time.After(2500 * time.Millisecond): // longer than it takes to look once
	}
	first.stdin.Close()
	first.ends(10 * time.Second)
	second.ends(10 * time.Second)
	if second.out.String() != "" {
		t.Errorf("stdout has more than the ready line: %q", second.out)
	}
}

func TestTwoStartsAtOnceHaveOneOwner(t *testing.T) {
	for range 5 {
		f := newFort(t)
		lines := make(chan ready, 2)
		var all [2]*exec.Cmd
		for i := range all {
			cmd := f.command("serve", "--companion")
			in, inErr := cmd.StdinPipe()
			out, outErr := cmd.StdoutPipe()
			if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			all[i] = cmd
			go func() {
				var r ready
				line, _ := bufio.NewReader(out).ReadBytes('\n')
				json.Unmarshal(line, &r)
				lines <- r
			}()
			t.Cleanup(func() { in.Close(); cmd.Wait() })
		}
		a, b := <-lines, <-lines
		if a.Event != "ready" || b.Event != "ready" || a.Attached == b.Attached || a.Instance != b.Instance || a.Port != b.Port {
			t.Errorf("the two say %+v and %+v", a, b)
		}
	}
}

// stranger answers 200 to everything on a port.
func stranger(t *testing.T, port int) *http.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("a stranger was sent a token for %s", r.URL.Path)
		}
		fmt.Fprint(w, `{"ok":true,"service":"sallyport","version":"dev","instance":"x","ts":1,"proof":"00"}`)
	}))
	server.Listener.Close()
	listener, err := listenOn(port)
	if err != nil {
		t.Fatal(err)
	}
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server.Config
}

func TestAStrangerOnTheKeptPort(t *testing.T) {
	f := newFort(t)
	s := f.serve()
	old := s.Port
	s.kill()
	if raw, err := os.ReadFile(f.state("desktop.json")); err != nil || !bytes.Contains(raw, []byte(strconv.Itoa(old))) {
		t.Fatalf("the discovery file did not outlive the crash: %v", err)
	}
	if got := f.run("health"); got.code != 3 {
		t.Errorf("nobody is there: health exits with %d", got.code)
	}
	stranger(t, old)
	if got := f.run("health", "--json"); got.code != 4 {
		t.Errorf("a stranger is there: health exits with %d: %s", got.code, got.stdout)
	}
	f.ok("plugins", "list") // works without the stranger, and sends it no token
	again := f.serve()
	if again.Port == old {
		t.Fatal("two programs have one port")
	}
	if got := f.run("health"); got.code != 0 {
		t.Errorf("health exits with %d: %s", got.code, got.stdout+got.stderr)
	}
	if raw, err := os.ReadFile(f.state("port")); err != nil || strings.TrimSpace(string(raw)) != strconv.Itoa(again.Port) {
		t.Errorf("the saved port is %q, %v", raw, err)
	}
	var status struct {
		Problems []struct{ Code, Text string }
	}
	f.read(&status, "status")
	told := false
	for _, p := range status.Problems {
		told = told || p.Code == "port-changed" && strings.Contains(p.Text, strconv.Itoa(old)) && strings.Contains(p.Text, strconv.Itoa(again.Port))
	}
	if !told {
		t.Errorf("health does not say that the port changed: %+v", status.Problems)
	}
	again.stop()
	if third := f.serve(); third.Port != again.Port {
		t.Errorf("the new port was not kept: %d, then %d", again.Port, third.Port)
	}
}

// A port file that is no port is replaced, with a note.
func TestASavedPortThatIsNone(t *testing.T) {
	for what, text := range map[string]string{"torn": "2", "words": "none\n", "empty": "", "too high": "70000\n", "of the system": "80\n", "a folder": "\x00dir"} {
		t.Run(what, func(t *testing.T) {
			f := newFort(t)
			f.mkdir(f.state())
			path := f.state("port")
			if text == "\x00dir" {
				f.mkdir(filepath.Join(path, "in"))
			} else if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := f.serve()
			_, body := s.ask("GET", "/v1/status")
			if !bytes.Contains(body, []byte(`"port-value-bad"`)) {
				t.Errorf("nothing is said: %s", body)
			}
			if u, err := url.Parse(s.URL); err != nil || u.Hostname() != "127.0.0.1" {
				t.Errorf("it is at %s", s.URL)
			}
		})
	}
}

// listenOn takes a port that a killed program has just left.
func listenOn(port int) (listener net.Listener, err error) {
	holds(5*time.Second, func() bool {
		listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		return err == nil
	})
	return listener, err
}
