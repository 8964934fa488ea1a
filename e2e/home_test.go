//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// commandLimit is how long any one command may take.
const commandLimit = 2 * time.Minute

// home is a new user: an empty home folder and a small environment.
type home struct {
	t   testing.TB
	dir string   // HOME
	bin string   // the program
	env []string // of every command
}

// newHome makes an empty home. What still runs in it at the end of the test is a
// failure, and is killed.
func newHome(t testing.TB) *home { return newHomeOf(t, program(t)) }

func newHomeOf(t testing.TB, bin string) *home {
	t.Helper()
	dir, err := os.MkdirTemp("", "sallyport-home-") //nolint:usetesting // a short path: sockets live below it, and read-only snapshots need removeAll
	if err != nil {
		t.Fatal(err)
	}
	h := &home{t: t, dir: dir, bin: bin, env: []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TMPDIR=" + os.TempDir(),
		"GORACE=halt_on_error=0 exitcode=66",
	}}
	t.Cleanup(func() {
		h.nothingRuns()
		removeAll(t, dir)
	})
	return h
}

// with adds NAME=VALUE pairs to the environment of later commands.
func (h *home) with(pairs ...string) { h.env = append(h.env, pairs...) }

// data is a path in the data folder.
func (h *home) data(parts ...string) string { return h.place(".local/share/sallyport", parts) }

// state is a path in the state folder.
func (h *home) state(parts ...string) string { return h.place(".local/state/sallyport", parts) }

// plugin is a path in ~/.agents/plugins.
func (h *home) plugin(parts ...string) string { return h.place(".agents/plugins", parts) }

func (h *home) place(below string, parts []string) string {
	return filepath.Join(append([]string{h.dir, below}, parts...)...)
}

// outcome is how a command ended.
type outcome struct {
	stdout, stderr string
	code           int
}

// command is the program with arguments, not started.
func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.bin, args...)
	cmd.Env, cmd.Dir = h.env, h.dir
	return cmd
}

// run runs sallyport to its end.
func (h *home) run(args ...string) outcome {
	h.t.Helper()
	return h.finish(h.command(args...), commandLimit)
}

// finish runs a command to its end, within a time.
func (h *home) finish(cmd *exec.Cmd, limit time.Duration) outcome {
	h.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, 5*time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		h.t.Fatalf("%v: %v after at most %s\n%s%s", cmd.Args, err, limit, out.String(), errs.String())
	}
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// ok runs sallyport, which must exit with 0, and returns its stdout.
func (h *home) ok(args ...string) string {
	h.t.Helper()
	got := h.run(args...)
	if got.code != 0 {
		h.t.Fatalf("sallyport %v exited with %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// read runs sallyport with --json, which must exit with 0, and reads its answer.
func (h *home) read(into any, args ...string) {
	h.t.Helper()
	text := h.ok(append(args, "--json")...)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		h.t.Fatalf("sallyport %v --json: %v\n%s", args, err, text)
	}
}

// connector is one row of `plugins list --json`.
type connector struct {
	ID, State, Reason, Version, Digest string
}

// connector returns how one stands.
func (h *home) connector(id string) connector {
	h.t.Helper()
	var all []connector
	h.read(&all, "plugins", "list")
	for _, one := range all {
		if one.ID == id {
			return one
		}
	}
	h.t.Fatalf("%s is not listed: %+v", id, all)
	return connector{}
}

// addClient adds an agent and returns its token.
func (h *home) addClient(name string, flags ...string) string {
	h.t.Helper()
	var added struct{ Name, Token string }
	h.read(&added, append([]string{"clients", "add", name}, flags...)...)
	if added.Name != name || added.Token == "" {
		h.t.Fatalf("clients add %s printed %+v", name, added)
	}
	return added.Token
}

// addFake installs a fakeserver plugin NAME/main that is started with args.
func (h *home) addFake(name string, args ...string) {
	h.t.Helper()
	h.addProgram(name, need(h.t, built.fakeserver), args...)
}

// addProgram installs a plugin NAME/main that is one program, with args.
func (h *home) addProgram(name, path string, args ...string) {
	h.t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	if args == nil {
		args = []string{}
	}
	h.write(name, "bin/server", raw, 0o755)
	h.write(name, "plugin.json", encode(h.t, map[string]any{
		"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": name, "version": "1.0.0",
	}), 0o644)
	h.write(name, "mcp.json", encode(h.t, map[string]any{
		"$schema":    "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
		"mcpServers": map[string]any{"main": map[string]any{"type": "stdio", "command": "./bin/server", "args": args}},
	}), 0o644)
}

// write writes one file of a plugin.
func (h *home) write(plugin, name string, content []byte, mode fs.FileMode) {
	h.t.Helper()
	path := h.plugin(plugin, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		h.t.Fatal(err)
	}
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// waitFor waits until ok is true, looking often, and fails after the time.
func waitFor(t testing.TB, what string, within time.Duration, ok func() bool) {
	t.Helper()
	if !holds(within, ok) {
		t.Fatalf("not within %s: %s", within, what)
	}
}

// holds reports whether ok becomes true within the time.
func holds(within time.Duration, ok func() bool) bool {
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true
}

// removeAll removes a tree in which snapshots are read-only.
func removeAll(t testing.TB, dir string) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
