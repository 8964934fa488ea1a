//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A person who has just cloned the repository types what the README says, and
// then only what the program prints.
func TestReadmeAsANewUserReadsIt(t *testing.T) {
	h := newHome(t)
	checkout := filepath.Join(h.dir, "my sallyport")
	copyRepository(t, checkout)
	h.with(fetched(t)...)
	run := startMake(t, h, checkout)

	if got := run.next(t, h, checkout); !strings.Contains(got, "notes/main") || !strings.Contains(got, "approval_required") {
		t.Errorf("the command that make run prints says:\n%s", got)
	}
	shell := func(lines ...string) outcome {
		return h.finish(shellIn(h, checkout, append(slices.Clone(run.lines), lines...)...), commandLimit)
	}
	say := func(line, want string) string {
		t.Helper()
		got := shell(line)
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Fatalf("$ %s\nexit code %d, want %q\n%s%s", line, got.code, want, got.stdout, got.stderr)
		}
		return got.stdout
	}
	say("bin/sallyport status", run.url)
	say("bin/sallyport plugins show notes", "notes/main")
	say("bin/sallyport approve notes --tools list_notes,add_note --yes", "enabled")
	say(`bin/sallyport call notes add_note --args '{"text":"buy bread"}'`, "")
	say(`bin/sallyport call notes list_notes --args '{}'`, "buy bread")

	token := regexp.MustCompile(`(?m)^  (\S{40,})$`).FindStringSubmatch(say("bin/sallyport clients add claude", run.url+"/mcp"))
	if token == nil {
		t.Fatal("clients add shows no token")
	}
	inspect := exec.Command(inspector(t), "--cli", run.url+"/mcp", "--transport", "http",
		"--header", "Authorization: Bearer "+token[1], "--method", "tools/list")
	inspect.Env, inspect.Dir = h.env, h.dir
	contains(t, "what the inspector sees", h.finish(inspect, commandLimit).stdout, "notes__main__add_note")

	source := filepath.Join(checkout, ".cache", "run", "data", "bundled", "notes")
	script := firstFile(t, source, ".mjs")
	appendTo(t, script, "// one more line\n")
	refused := outcome{}
	waitFor(t, "a call is refused after the change", 4*time.Second, func() bool {
		refused = shell(`bin/sallyport call notes list_notes --args '{}'`)
		return refused.code == 1
	})
	contains(t, "the refusal", refused.stderr, "artifact-changed")
	contains(t, "diff", shell("bin/sallyport diff notes").stdout, "+// one more line")

	run.interrupt(t)
	if holds(5*time.Second, func() bool { return len(h.processes()) == 0 }) {
		return
	}
	t.Errorf("make run left %v", h.processes())
}

// making is `make run`.
type making struct {
	cmd   *exec.Cmd
	url   string   // that it prints
	lines []string // to type next, but for the last
	last  string   // of them
	done  chan struct{}
}

func startMake(t *testing.T, h *home, checkout string) *making {
	t.Helper()
	m := &making{cmd: exec.Command("make", "run"), done: make(chan struct{})}
	m.cmd.Dir, m.cmd.Env = checkout, h.env
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var errs buffer
	m.cmd.Stderr = &errs
	out, err := m.cmd.StdoutPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := m.read(bufio.NewScanner(out))
	go func() {
		bufio.NewReader(out).WriteTo(&errs)
		m.cmd.Wait()
		close(m.done)
	}()
	t.Cleanup(func() {
		syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL)
		<-m.done
	})
	if m.url == "" || len(m.lines) == 0 {
		t.Fatalf("make run says no address or no next command:\n%s%s", said, &errs)
	}
	return m
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// read reads until everything is said: an address, and the lines that are set off
// after "In another terminal".
func (m *making) read(lines *bufio.Scanner) (said string) {
	typing := false
	for lines.Scan() {
		line := lines.Text()
		said += line + "\n"
		if m.url == "" {
			m.url = address.FindString(line)
		}
		switch command, indented := strings.CutPrefix(line, "  "); {
		case strings.HasPrefix(line, "In another terminal"):
			typing = true
		case typing && indented:
			m.lines, m.last = append(m.lines, command), command
		case strings.HasPrefix(line, "Ctrl-C"):
			m.lines = m.lines[:max(0, len(m.lines)-1)]
			return said
		}
	}
	return said
}

// next types what make run says to type next.
func (m *making) next(t *testing.T, h *home, checkout string) string {
	t.Helper()
	got := h.finish(shellIn(h, checkout, append(slices.Clone(m.lines), m.last)...), commandLimit)
	if got.code != 0 {
		t.Errorf("%s: exit code %d\n%s", m.last, got.code, got.stderr)
	}
	return got.stdout
}

// interrupt is Ctrl-C: every process of the terminal's group gets the signal.
func (m *making) interrupt(t *testing.T) {
	t.Helper()
	syscall.Kill(-m.cmd.Process.Pid, syscall.SIGINT)
	select {
	case <-m.done:
	case <-time.After(30 * time.Second):
		t.Error("make run goes on after Ctrl-C")
	}
}

func shellIn(h *home, dir string, lines ...string) *exec.Cmd {
	cmd := exec.Command("bash", "-ec", strings.Join(lines, "\n"))
	cmd.Dir, cmd.Env = dir, h.env
	return cmd
}

// fetched lets a new user's go and npm find what this machine has fetched.
func fetched(t *testing.T) []string {
	t.Helper()
	cache, err := exec.Command("npm", "config", "get", "cache").Output()
	if err != nil {
		t.Fatal(err)
	}
	pairs := []string{"npm_config_cache=" + string(bytes.TrimSpace(cache))}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "GOTOOLCHAIN"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, name+"="+string(bytes.TrimSpace(out)))
	}
	return pairs
}

// copyRepository copies what a clone would have, as it is in the working tree.
func copyRepository(t *testing.T, to string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", ".cache", "bin", "build/bin", "dist", "e2e"}, rel) || entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return copyFile(path, filepath.Join(to, rel))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

// firstFile is the first file below dir with such an ending.
func firstFile(t *testing.T, dir, ending string) (path string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if path == "" && strings.HasSuffix(p, ending) {
			path = p
		}
		return err
	})
	if err != nil || path == "" {
		t.Fatalf("no %s below %s: %v", ending, dir, err)
	}
	return path
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString(text)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
