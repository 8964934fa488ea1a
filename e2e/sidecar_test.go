//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// sidecar is a running `sallyport serve`.
type sidecar struct {
	ready
	home   *home
	cmd    *exec.Cmd
	stderr *buffer
	done   chan struct{} // closed when the process is gone
}

// ready is the line on stdout that says so.
type ready struct {
	Event, URL, Instance, Version string
	Port, PID                     int
	Attached                      bool
}

// serve starts the sidecar and returns when it says that it is ready. At the end
// of the test it is stopped, if it still runs, and must then exit with 0.
func (h *home) serve(flags ...string) *sidecar {
	h.t.Helper()
	s, err := h.tryServe(flags...)
	if err != nil {
		h.t.Fatalf("serve: %v\n%s", err, s.stderr)
	}
	h.t.Cleanup(s.stop)
	return s
}

// tryServe is serve without a check, and without an end.
func (h *home) tryServe(flags ...string) (*sidecar, error) {
	return h.startServe(h.command(append([]string{"serve", "--json"}, flags...)...))
}

// startServe is tryServe of a command that is made already.
func (h *home) startServe(cmd *exec.Cmd) (*sidecar, error) {
	s := &sidecar{home: h, cmd: cmd, stderr: &buffer{}, done: make(chan struct{})}
	s.cmd.Stderr = s.stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	if err := s.cmd.Start(); err != nil {
		return s, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	go func() {
		io.Copy(io.Discard, out)
		s.cmd.Wait()
		close(s.done)
	}()
	if err != nil {
		<-s.done
		return s, err
	}
	return s, json.Unmarshal(line, &s.ready)
}

// stop ends it as a person would (SIGTERM) and waits until it is gone.
func (s *sidecar) stop() {
	s.home.t.Helper()
	select {
	case <-s.done:
		return
	default:
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	if !s.gone(30 * time.Second) {
		s.kill()
		s.home.t.Errorf("the sidecar did not stop within 30 s\n%s", s.stderr)
	} else if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.home.t.Errorf("the sidecar exited with %d\n%s", code, s.stderr)
	}
}

// kill ends it as a crash would (SIGKILL) and waits until it is gone.
func (s *sidecar) kill() {
	s.cmd.Process.Kill()
	<-s.done
}

// gone waits until the process is gone.
func (s *sidecar) gone(within time.Duration) bool {
	select {
	case <-s.done:
		return true
	case <-time.After(within):
		return false
	}
}

// log is the log file that it writes.
func (s *sidecar) log() string {
	raw, _ := os.ReadFile(s.home.state("sallyport.log"))
	return string(raw)
}

// buffer collects output while others read it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
