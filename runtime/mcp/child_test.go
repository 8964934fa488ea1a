package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sallyport/internal/fakeserver/fakeservertest"
)

// fakeServer is the path of the built program.
var fakeServer string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mcp-test-")
	if err == nil {
		fakeServer, err = fakeservertest.BuildIn(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(dir)
	if status == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			status = 1
		}
	}
	os.Exit(status)
}

// realChild is a process started the simplest way that Child allows. Package
// process has the real one.
type realChild struct {
	cmd     *exec.Cmd
	in, out *os.File
	done    chan struct{}
	status  string
	kills   atomic.Int64
	stops   atomic.Int64
	pidFile string

	mu   sync.Mutex
	tail []byte
}

func launch(t testing.TB, mode string, more ...string) *realChild {
	t.Helper()
	c := &realChild{done: make(chan struct{}), pidFile: filepath.Join(t.TempDir(), "pids")}
	args := append([]string{mode, "-pid-file", c.pidFile}, more...)
	c.cmd = exec.Command(fakeServer, args...)
	ownGroup(c.cmd)
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = inRead, outWrite, errWrite
	c.in, c.out = inWrite, outRead
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inRead.Close()
	outWrite.Close()
	errWrite.Close()
	drained := make(chan struct{})
	go func() { c.drain(errRead); close(drained) }()
	go func() {
		c.cmd.Wait()
		c.status = c.cmd.ProcessState.String()
		close(c.done)
	}()
	t.Cleanup(func() {
		c.Kill()
		<-c.done
		for _, pid := range c.pids() { // also whoever left the group
			killProcess(pid)
		}
		c.in.Close()
		c.out.Close()
		<-drained
		errRead.Close()
	})
	return c
}

func (c *realChild) drain(r io.Reader) {
	block := make([]byte, 32<<10)
	for {
		n, err := r.Read(block)
		c.mu.Lock()
		c.tail = append(c.tail, block[:n]...)
		c.tail = c.tail[max(0, len(c.tail)-4096):]
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *realChild) PID() int              { return c.cmd.Process.Pid }
func (c *realChild) Stdin() io.WriteCloser { return c.in }
func (c *realChild) Stdout() io.Reader     { return c.out }
func (c *realChild) Done() <-chan struct{} { return c.done }
func (c *realChild) Status() string        { return c.status }

func (c *realChild) Tail() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Split(strings.TrimSpace(string(c.tail)), "\n")
}

func (c *realChild) Stop(ctx context.Context, _ error) error {
	c.stops.Add(1)
	c.in.Close()
	select {
	case <-c.done:
	case <-time.After(300 * time.Millisecond):
	}
	killGroup(c.PID())
	<-c.done
	return nil
}

func (c *realChild) Kill() {
	c.kills.Add(1)
	killGroup(c.PID())
}

// pids are the server and the grandchildren that it knows of.
func (c *realChild) pids() (pids []int) {
	data, _ := os.ReadFile(c.pidFile)
	for _, line := range bytes.Fields(data) {
		if pid, err := strconv.Atoi(string(line)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// connect starts a server and shakes hands.
func connect(t testing.TB, mode string, o Options, more ...string) (*Conn, *realChild) {
	t.Helper()
	child := launch(t, mode, more...)
	conn := Connect(child, o)
	t.Cleanup(func() { closeAndWait(t, conn) })
	if _, err := Handshake(t.Context(), conn, "1.0.0"); err != nil {
		t.Fatalf("%s: %v", mode, err)
	}
	return conn, child
}

func closeAndWait(t testing.TB, conn *Conn) {
	t.Helper()
	conn.Close(errors.New("the test is over"))
	within(t, 10*time.Second, "the connection to be gone", func() bool {
		select {
		case <-conn.Gone():
			return true
		default:
			return false
		}
	})
}

// within waits for a condition with a deadline.
func within(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(limit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited %v for %s", limit, what)
		}
	}
}

func args(tool, arguments string) json.RawMessage {
	return json.RawMessage(`{"name":"` + tool + `","arguments":` + arguments + `}`)
}

func callTool(ctx context.Context, conn *Conn, tool, arguments string) (json.RawMessage, error) {
	return conn.Call(ctx, "tools/call", args(tool, arguments), agent(nil))
}

// testAgent is an Upstream that records.
type testAgent struct {
	mu      sync.Mutex
	notes   []string
	answers map[string]func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
}

func agent(answers map[string]func(context.Context, json.RawMessage) (json.RawMessage, error)) *testAgent {
	return &testAgent{answers: answers}
}

func (a *testAgent) Notify(method string, params json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, method+" "+string(params))
}

func (a *testAgent) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return a.answers[method](ctx, params)
}

func (a *testAgent) Supports(method string) bool { return a.answers[method] != nil }

func (a *testAgent) seen() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.notes...)
}
