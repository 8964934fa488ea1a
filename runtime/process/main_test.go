//go:build !windows

package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// The test binary is the shim, every misbehaving child, and the host that is
// killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case ShimArg:
			ShimMain(os.Args[2:])
		case "__child":
			behave(os.Args[2:])
			os.Exit(0)
		case "__host":
			beHost(os.Args[2])
		}
	}
	goleak.VerifyTestMain(m)
}

func testShim() []string {
	shim, err := Shim()
	if err != nil {
		panic(err)
	}
	return shim
}

var self = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		panic(err)
	}
	return path
})

var selfHash = sync.OnceValue(func() string { return hashFile(self()) })

func hashFile(path string) string {
	f, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	sum := sha256.New()
	io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil))
}

func program(path string) env.Executable {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		panic(err)
	}
	return env.Executable{Command: path, Found: path, Real: real, SHA256: hashFile(real)}
}

func newManager(t *testing.T, change func(*Config)) *Manager {
	t.Helper()
	c := Config{StateDir: t.TempDir(), Shim: testShim()}
	if change != nil {
		change(&c)
	}
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// childLaunch is the launch of a child that behaves as told.
func childLaunch(t *testing.T, behaviour ...string) approvals.Launch {
	t.Helper()
	return launchIn(t, t.TempDir(), nil, behaviour...)
}

func launchIn(t *testing.T, folder string, declared []env.Declared, behaviour ...string) approvals.Launch {
	t.Helper()
	l, err := makeLaunch(folder, declared, behaviour)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func makeLaunch(folder string, declared []env.Declared, behaviour []string) (approvals.Launch, error) {
	data := filepath.Join(folder, "data")
	plan, err := env.Build(env.Request{
		Parent: env.Parent{System: "linux", Vars: map[string]string{"SENTINEL": "SENTINEL-7f3a", "HOME": folder}},
		Path:   "/usr/local/bin:/usr/bin:/bin", Declared: declared, Root: folder, Data: data, Secrets: []string{"S"},
	})
	return approvals.Launch{
		ID: plugins.ID{Plugin: "demo", Server: "main"}, Transport: plugins.Stdio, Path: self(), Dir: folder, Data: data, Env: plan,
		Args:       append([]string{"__child"}, behaviour...),
		Executable: env.Executable{Command: self(), Found: self(), Real: self(), SHA256: selfHash()},
	}, err
}

func start(t *testing.T, m *Manager, l approvals.Launch) *Child {
	t.Helper()
	c, err := m.start(context.Background(), l)
	if err != nil {
		t.Fatalf("%v (cause %v)", err, errors.Unwrap(err))
	}
	t.Cleanup(func() { c.Stdout().Close() })
	return c
}

// firstLine reads what a child says when it is ready.
func firstLine(t *testing.T, c *Child) string {
	t.Helper()
	var line []byte
	one := make([]byte, 1)
	for {
		n, err := c.Stdout().Read(one)
		if n == 1 && one[0] == '\n' {
			return string(line)
		}
		line = append(line, one[:n]...)
		if err != nil {
			t.Fatalf("the child said %q and then %v; stderr %q", line, err, c.Stderr().Lines())
		}
	}
}

func readAll(t *testing.T, c *Child) string {
	t.Helper()
	text, err := io.ReadAll(c.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// eventually waits for a condition with a deadline.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
	}
}

func alive(pid int) bool {
	p, ok := look(pid)
	return ok && !p.zombie
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if coded.Of(err) != code {
		t.Fatalf("got %v (code %q, cause %v), want %s", err, coded.Of(err), errors.Unwrap(err), code)
	}
}

func steps(r Report) string {
	var names []string
	for _, step := range r.Steps {
		names = append(names, step.What)
	}
	return strings.Join(names, ", ")
}

func pidsIn(line string) (pids []int) {
	for _, word := range strings.Fields(line) {
		var pid int
		if _, err := fmt.Sscanf(word, "%d", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
