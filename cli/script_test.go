package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sallyport/cli"
	"sallyport/internal/buildinfo"
	"sallyport/internal/fakeserver/fakeservertest"
	"sallyport/runtime/process"
)

// testBuild is what the program of these tests says of itself.
var testBuild = buildinfo.Info{Version: "1.2.3", Commit: "6f0c2ab5a3f0de2a1d4b0d3c0a9be4f6f2c7a1b2", Date: "2026-11-30T20:00:00Z"}

// TestMain makes the test binary the program too: the scripts' sallyport, and the
// shim that it starts children with.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.ShimArg {
		process.ShimMain(os.Args[2:])
	}
	dir, err := os.MkdirTemp("", "sallyport-cli-")
	if err != nil {
		panic(err)
	}
	fakeServer = sync.OnceValues(func() (string, error) { return fakeservertest.BuildIn(dir) })
	testscript.Main(cleaning{m, dir}, map[string]func(){
		"sallyport": func() {
			os.Exit(cli.Run(context.Background(), testBuild, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
		},
	})
}

// cleaning removes a folder when the tests are over.
type cleaning struct {
	*testing.M
	dir string
}

func (c cleaning) Run() int {
	defer os.RemoveAll(c.dir)
	return c.M.Run()
}

var fakeServer func() (string, error)

// sentinel is in the environment of every script: nothing may ever print it.
const sentinel = "sentinel-7d41b0"

// TestScripts runs testdata/script/*.txtar. Beside testscript's own there are:
//
//	plugin NAME [SERVER…]    installs a plugin with fakeserver (main) in ~/.agents/plugins
//	exits CODE COMMAND…      the command must exit with exactly that code
//	json [PATH WANT]         stdout is JSON, and what stands at a.b.0 is WANT
//	take NAME REGEX          sets NAME to what the first group found in stdout
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) < 10 {
		t.Fatalf("only %d scripts were found: %v", len(scripts), err)
	}
	login := keyring(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("AWS_SECRET_ACCESS_KEY", sentinel)
			for name, value := range login {
				e.Setenv(name, value)
			}
			for _, name := range []string{"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "SALLYPORT_HOME"} {
				e.Setenv(name, "")
			}
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"plugin": installPlugin, "exits": exits, "json": isJSON, "take": take,
		},
	})
}

func installPlugin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: plugin NAME [SERVER…]")
	}
	servers := args[1:]
	if len(servers) == 0 {
		servers = []string{"main"}
	}
	ts.Check(addPlugin(filepath.Join(ts.Getenv("HOME"), ".agents", "plugins"), args[0], servers))
}

func addPlugin(folder, name string, servers []string) error {
	program, err := fakeServer()
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	declared := map[string]any{}
	for _, server := range servers {
		declared[server] = map[string]any{"type": "stdio", "command": "./bin/server.exe", "args": []string{"polite"}}
	}
	mcp, err := json.Marshal(map[string]any{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": declared})
	if err != nil {
		return err
	}
	dir := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	manifest := fmt.Sprintf(`{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":%q,"version":"1.0.0"}`, name)
	for _, file := range []struct {
		name string
		raw  []byte
		mode os.FileMode
	}{{"bin/server.exe", raw, 0o755}, {"plugin.json", []byte(manifest), 0o644}, {"mcp.json", mcp, 0o644}, {"notice.txt", []byte("first line\n"), 0o644}} {
		if err := os.WriteFile(filepath.Join(dir, file.name), file.raw, file.mode); err != nil {
			return err
		}
	}
	return nil
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("it exits with %d, not %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	var at any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &at); err != nil {
		ts.Fatalf("stdout is not JSON: %v", err)
	}
	if len(args) == 0 {
		return
	}
	for step := range strings.SplitSeq(args[0], ".") {
		switch value := at.(type) {
		case map[string]any:
			at = value[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(value) {
				ts.Fatalf("there is no %s in %v", step, value)
			}
			at = value[n]
		default:
			ts.Fatalf("there is no %s in %v", step, value)
		}
	}
	if got := fmt.Sprint(at); (got == args[1]) == neg {
		ts.Fatalf("%s is %q", args[0], got)
	}
}

func take(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: take NAME REGEX")
	}
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("stdout has no %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}
