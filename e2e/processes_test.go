//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a running program that belongs to a home.
type process struct {
	pid  int
	line string // its command line
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.pid, p.line) }

// processes lists what runs in this home: whatever has its path in the command
// line, the environment or the working folder. Zombies do not run.
func (h *home) processes() []process {
	stats, _ := filepath.Glob("/proc/[0-9]*")
	var found []process
	for _, dir := range stats {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(dir + "/cmdline")
		environment, _ := os.ReadFile(dir + "/environ")
		cwd, _ := os.Readlink(dir + "/cwd")
		ours := bytes.Contains(line, []byte(h.dir)) || bytes.Contains(environment, []byte(h.dir)) || strings.HasPrefix(cwd, h.dir)
		if ours && len(line) > 0 {
			found = append(found, process{pid, strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")})
		}
	}
	return found
}

// sidecars are those of its processes that are `sallyport serve`.
func (h *home) sidecars() []process {
	var found []process
	for _, p := range h.processes() {
		if strings.HasPrefix(p.line, h.bin+" serve") {
			found = append(found, p)
		}
	}
	return found
}

// plugins are those of its processes that are no sallyport.
func (h *home) plugins() []process {
	var found []process
	for _, p := range h.processes() {
		if !strings.HasPrefix(p.line, h.bin) {
			found = append(found, p)
		}
	}
	return found
}

// alive reports whether a process runs.
func alive(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && len(line) > 0
}

// nothingRuns fails the test for each process that is left, and kills it.
func (h *home) nothingRuns() {
	h.t.Helper()
	if holds(3*time.Second, func() bool { return len(h.processes()) == 0 }) {
		return
	}
	for _, p := range h.processes() {
		h.t.Errorf("left running: %s", p)
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// procFile reads one file of a process; a process that is gone has an empty one.
func procFile(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return string(text)
}

func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
