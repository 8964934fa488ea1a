//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// person is a person with a browser: a program in frontend/e2e that does what its text
// says and is told when to go on.
type person struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	errs  said
}

// said is what a program has written so far, read while it goes on.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// chromium is Debian's browser, which scripts/setup installs.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("chromium is missing: scripts/setup test installs it")
	return ""
}

// sitDown opens the pages by a one-time address and begins.
func (h *home) sitDown(t *testing.T, script string, env ...string) *person {
	t.Helper()
	pages, err := filepath.Abs("../frontend")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(pages, "dist", "index.html")); err != nil {
		t.Fatal("the pages are not built: scripts/pages builds them")
	}
	var link struct{ URL string }
	h.read(&link, "open", "--print")
	p := &person{t: t, cmd: exec.Command("node", filepath.Join(pages, "e2e", script)), lines: make(chan string, 16)}
	p.cmd.Dir = pages
	p.cmd.Env = append(os.Environ(), append(env, "CHROMIUM="+chromium(t), "URL_ONCE="+link.URL, "SHOTS="+shots(t))...)
	p.cmd.Stderr = &p.errs
	p.cmd.WaitDelay = 5 * time.Second
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// shots is where pictures are kept to be looked at: SALLYPORT_SHOTS. Where it is not set
// none are taken.
func shots(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SALLYPORT_SHOTS")
	if dir == "" {
		return ""
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// says waits for the person's next word.
func (p *person) says(want string) {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if ok && line == want {
			return
		}
		_ = p.cmd.Wait()
		p.t.Fatalf("the person at the browser says %q and not %q:\n%s", line, want, p.errs.String())
	case <-time.After(8 * time.Minute):
		p.t.Fatalf("the person at the browser never says %q:\n%s", want, p.errs.String())
	}
}

func (p *person) goOn() {
	p.t.Helper()
	if _, err := io.WriteString(p.in, "go on\n"); err != nil {
		p.t.Fatal(err)
	}
}

// TestAPersonWithABrowser: first run, approve, a call by an agent, a changed file,
// approved again from its difference, another plugin denied, a call answered; every
// page passes axe, keeps to its policy and is no wider than its window.
func TestAPersonWithABrowser(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.addFake("fake", "polite")
	h.write("fake", "notice.txt", []byte("first line\n"), 0o644)
	h.addFake("other", "polite")
	h.write("other", "plugin.json", encode(t, map[string]any{
		"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "other", "version": "1.0.0",
		"description": "<img src=x onerror=alert(1)> \u202e \x1b[2J <script>alert(2)</script>" + strings.Repeat("long ", 500),
	}), 0o644)
	s := h.serve()
	token := h.addClient("claude")
	p := h.sitDown(t, "main-path.mjs")

	p.says("approved")
	agent := s.sdkOverHTTP(t, token, "")
	ended := agent.start(t, exposedEcho, map[string]any{"text": "first"})
	h.ok("decisions", "answer", h.openCall().ID, "allow")
	if got := <-ended; got.err != nil {
		t.Fatalf("the first call: %v", got.err)
	}
	h.write("fake", "notice.txt", []byte("first line\nsecond line\n"), 0o644)
	waitFor(t, "the change is noticed", 10*time.Second, func() bool { return h.connector("fake/main").Reason == "artifact-changed" })
	p.goOn()

	p.says("denied")
	if got := h.connector("other/main"); got.State != "denied" {
		t.Errorf("the other one is %+v", got)
	}
	again := s.sdkOverHTTP(t, token, "").start(t, exposedEcho, map[string]any{"text": "see me"})
	h.openCall()
	p.goOn()
	p.says("done")
	if got := <-again; got.err != nil {
		t.Errorf("the call that was allowed in the browser: %v", got.err)
	}
	var records []struct{ Action, Via string }
	if err := json.Unmarshal([]byte(h.ok("audit", "list", "--json")), &records); err != nil {
		t.Fatal(err)
	}
	by := map[string]bool{}
	for _, record := range records {
		by[record.Action+" "+record.Via] = true
	}
	for _, want := range []string{"allow browser", "deny browser", "enable browser"} {
		if !by[want] {
			t.Errorf("the audit does not say %q", want)
		}
	}
	s.stop()
}

const exposedEcho = "fake__main__echo"
