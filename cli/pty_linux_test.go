package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a program on a terminal of its own, and what it has printed there.
type screen struct {
	t       *testing.T
	keys    *os.File
	ended   chan error
	mu      sync.Mutex
	printed strings.Builder
	more    chan struct{}
}

// onTerminal starts sallyport on a real pseudo-terminal.
func onTerminal(t *testing.T, home string, args ...string) *screen {
	t.Helper()
	master, slave := openPTY(t)
	cmd := exec.CommandContext(t.Context(), "sallyport", args...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "LANG=C.UTF-8"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	s := &screen{t: t, keys: master, ended: make(chan error, 1), more: make(chan struct{}, 1)}
	go s.read(cmd)
	return s
}

func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// read collects until the program has closed the terminal.
func (s *screen) read(cmd *exec.Cmd) {
	buffer := make([]byte, 4096)
	for {
		n, err := s.keys.Read(buffer)
		s.mu.Lock()
		s.printed.Write(buffer[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			s.ended <- cmd.Wait()
			return
		}
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.printed.String()
}

// answer waits for a question and types.
func (s *screen) answer(question, keys string) {
	s.t.Helper()
	deadline := time.After(60 * time.Second)
	for !strings.HasSuffix(s.text(), question) {
		select {
		case <-s.more:
		case <-deadline:
			s.t.Fatalf("it never asks %q:\n%s", question, s.text())
		}
	}
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the program and returns its exit code.
func (s *screen) end() int {
	s.t.Helper()
	select {
	case err := <-s.ended:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return 0
	case <-time.After(60 * time.Second):
		s.t.Fatalf("it does not end:\n%s", s.text())
		return -1
	}
}

const (
	mayItRun   = "Allow it to run? Deny is the default. [y/N] "
	whichTools = "Allow: "
	askFirst   = "Ask you before each call that does more than read? [Y/n] "
)

// TestApproveOnATerminal: no is the default of the first question, nothing of the
// second.
func TestApproveOnATerminal(t *testing.T) {
	for _, row := range []struct {
		name   string
		first  string
		second string // "": it is not asked
		third  string
		code   int
		says   string
		state  string
	}{
		{"Enter denies", "\n", "", "", 1, "denied: notes/main is denied; nothing of it runs", "denied"},
		{"n denies", "n\n", "", "", 1, "denied: ", "denied"},
		{"what is no yes denies", "yup\n", "", "", 1, "denied: ", "denied"},
		{"the end of the input is no answer", "\x04", "", "", 1, "answer-needed: ", "pending"},
		{"yes, and those that only read", "y\n", "read\n", "", 0, "notes/main is enabled: agents may call 2 tools", "enabled"},
		{"yes, and no tool", "YES\n", "\n", "", 0, "nobody has chosen its tools yet", "tools_required"},
		{"yes, and tools by number and name", "y\n", "1, add_note\n", "\n", 0, "notes/main is enabled: agents may call 2 tools", "enabled"},
		{"yes, and all of them, not to be asked", "y\n", "all\n", "n\n", 0, "notes/main is enabled: agents may call 4 tools", "enabled"},
		{"yes, and a tool that is not there", "y\n", "nonsense\n", "", 2, `there is no tool "nonsense"`, "tools_required"},
	} {
		t.Run(row.name, func(t *testing.T) {
			home := t.TempDir()
			s := onTerminal(t, home, "approve", "notes")
			s.answer(mayItRun, row.first)
			if row.second != "" {
				s.answer(whichTools, row.second)
			}
			if row.third != "" {
				s.answer(askFirst, row.third)
			}
			if code := s.end(); code != row.code || !strings.Contains(s.text(), row.says) {
				t.Errorf("it exits with %d:\n%s", code, s.text())
			}
			t.Setenv("HOME", home)
			_, out, _ := run(t, "plugins", "list", "--json")
			if !strings.Contains(out, `"state": "`+row.state+`"`) {
				t.Errorf("it is not %s: %s", row.state, out)
			}
		})
	}
}

// TestRawAnswersOnATerminal: an export and a result are a script's byte for byte,
// and a person's without what acts on a terminal.
func TestRawAnswersOnATerminal(t *testing.T) {
	if _, err := fakeServer(); err != nil { // with the go command's own home, where its cache is
		t.Fatal(err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := addPlugin(filepath.Join(home, ".agents", "plugins"), "fake", []string{"main"}); err != nil {
		t.Fatal(err)
	}
	run(t, "approve", "fake", "--yes", "--tools", "echo")
	run(t, "call", "fake", "absent\x1b[2J\u202e")
	for _, line := range [][]string{
		{"audit", "export", "--format", "csv"}, {"audit", "export"},
		{"call", "fake", "echo", "--args", "{\"a\":\"x\u202ey\"}", "--json"}, {"call", "fake", "echo", "--args", "{\"a\":\"x\u202ey\"}"},
	} {
		s := onTerminal(t, home, line...)
		code, text := s.end(), s.text()
		if code != 0 || strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, `\u{202E}`) && !strings.Contains(text, `\u202e`) {
			t.Errorf("sallyport %q exits with %d and prints %q", line, code, text)
		}
		if _, out, _ := run(t, line...); line[0] == "call" && !strings.Contains(out, "x\u202ey") {
			t.Errorf("a script gets %q", out)
		}
	}
}
