package approvals_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/plugins"
)

func wantLaunchFromSnapshot(t *testing.T, r *approvalstest.Rig, l approvals.Launch) {
	t.Helper()
	if strings.Contains(strings.Join(append(l.Args, l.Dir), " "), r.Root) {
		t.Fatalf("the launch speaks of the source folder: %v in %s", l.Args, l.Dir)
	}
	if len(l.Args) != 1 || !strings.HasPrefix(l.Args[0], l.Dir) || l.Data != r.PluginData("demo") {
		t.Fatalf("got %v in %s, data %s", l.Args, l.Dir, l.Data)
	}
	got, err := os.ReadFile(l.Args[0])
	if err != nil || !strings.Contains(string(got), "version one") {
		t.Fatalf("got %q, %v", got, err)
	}
}

// TestAChangeOfAnyField is spec/approval.md 2.1 at the gate: one field is changed
// alone, the start is refused with its code and what runs is ended with it.
func TestAChangeOfAnyField(t *testing.T) {
	edit := func(edit func(*plugins.Connector)) func(*approvalstest.Rig) {
		return func(r *approvalstest.Rig) { r.Edit(edit) }
	}
	for _, row := range []struct {
		what, code string
		change     func(r *approvalstest.Rig)
	}{
		{"the source", "binding-changed", edit(func(c *plugins.Connector) { c.Source = "elsewhere" })},
		{"the version", "version-changed", edit(func(c *plugins.Connector) { c.Version = "1.4.1" })},
		{"one byte of a file", "artifact-changed", func(r *approvalstest.Rig) { r.Write("server.js", "// version 0ne\nconsole.log('hello')\n", 0o644) }},
		{"a file added", "artifact-changed", func(r *approvalstest.Rig) { r.Write(".hidden", "", 0o644) }},
		{"the command", "command-changed", func(r *approvalstest.Rig) {
			os.Link(filepath.Join(r.Dir, "bin", "node"), filepath.Join(r.Dir, "bin", "nodejs"))
			r.Edit(func(c *plugins.Connector) { c.Launch.Command = "nodejs" })
		}},
		{"the program's bytes", "executable-changed", func(r *approvalstest.Rig) { r.WriteOutside("bin/node", "another node\n", 0o755) }},
		{"another program before it on the PATH", "executable-changed", func(r *approvalstest.Rig) { r.WriteOutside("early/node", "stand-in for node\n", 0o755) }},
		{"an argument", "args-changed", edit(func(c *plugins.Connector) { c.Launch.Args = append(slices.Clone(c.Launch.Args), "--inspect") })},
		{"the working directory", "cwd-changed", edit(func(c *plugins.Connector) { c.Launch.Cwd = "./work" })},
		{"a variable", "env-changed", edit(func(c *plugins.Connector) { c.Launch.Env = []plugins.Value{{Name: "A", Value: "b"}} })},
		{"an inherited name", "env-changed", edit(func(c *plugins.Connector) { c.Launch.Inherit = []string{"DISPLAY"} })},
		{"the permissions", "permissions-changed", edit(func(c *plugins.Connector) { c.Requested.Net = []string{"api.example.com:443"} })},
		{"an option", "options-changed", edit(func(c *plugins.Connector) { c.Options.StdoutNoise = "skip" })},
		{"a word that a literal is no secret", "options-changed", edit(func(c *plugins.Connector) { c.Options.NotSecret = []string{"API_KEY"} })},
	} {
		t.Run(row.what, func(t *testing.T) {
			r := approvalstest.New(t)
			r.Approve(offer, "read_notes")
			running := r.Grant()
			r.Gate.Live(running, offer)
			row.change(r)
			s := r.Gate.Recheck(t.Context(), r.ID)
			if s.State != approvals.ApprovalRequired || s.Reason != row.code {
				t.Fatalf("got %s (%s)", s.State, s.Reason)
			}
			if len(s.Changes) == 0 || s.Changes[0].Code != row.code {
				t.Fatalf("got changes %+v", s.Changes)
			}
			select {
			case <-running.Done():
			case <-time.After(5 * time.Second):
				t.Fatal("the running server was not ended")
			}
			wantCode(t, running.Err(), row.code)
			_, err := running.Launch()
			wantCode(t, err, row.code)
			_, err = r.Gate.CallGrant(t.Context(), running, "read_notes", approvalstest.Client)
			wantCode(t, err, row.code)
			_, err = r.Gate.Grant(t.Context(), r.ID)
			wantCode(t, err, row.code)
		})
	}
}

// The fields that only a connector without a bundle, or one that is dialled, has.
func TestAChangeOfAnInput(t *testing.T) {
	for _, row := range []struct {
		what   string
		launch func(dir string, l *plugins.Launch)
	}{
		{"an absolute argument", func(dir string, l *plugins.Launch) { l.Args = []string{filepath.Join(dir, "work", "script.py")} }},
		{"behind an equals sign", func(dir string, l *plugins.Launch) {
			l.Args = []string{"--config=" + filepath.Join(dir, "work", "script.py")}
		}},
		{"relative to the working directory", func(dir string, l *plugins.Launch) {
			l.Args, l.Cwd = []string{"script.py"}, filepath.Join(dir, "work")
		}},
		{"a variable", func(dir string, l *plugins.Launch) {
			l.Args, l.Env = nil, []plugins.Value{{Name: "STARTUP", Value: filepath.Join(dir, "work", "script.py"), FromOperator: true}}
		}},
	} {
		t.Run(row.what, func(t *testing.T) {
			r := approvalstest.New(t)
			r.WriteOutside("work/script.py", "print(1)\n", 0o644)
			r.Edit(func(c *plugins.Connector) {
				c.Root = ""
				row.launch(r.Dir, &c.Launch)
			})
			r.Approve(offer, "read_notes")
			launch, err := r.Grant().Launch()
			if err != nil || launch.Digest != "" || launch.Dir == "" {
				t.Fatal(launch.Dir, launch.Digest, err)
			}
			r.WriteOutside("work/script.py", "print(2)\n", 0o644)
			_, err = r.Gate.Grant(t.Context(), r.ID)
			wantCode(t, err, "input-changed")
		})
	}
}

func TestAChangeOfARemote(t *testing.T) {
	remote := func(r *approvalstest.Rig) {
		r.Edit(func(c *plugins.Connector) {
			c.Transport, c.Launch = plugins.StreamableHTTP, plugins.Launch{URL: "https://api.example.com/mcp"}
		})
	}
	for _, row := range []struct {
		code string
		edit func(*plugins.Connector)
	}{
		{"endpoint-changed", func(c *plugins.Connector) { c.Launch.URL = "https://api.example.net/mcp" }},
		{"headers-changed", func(c *plugins.Connector) { c.Launch.Headers = []plugins.Value{{Name: "x-team", Value: "a"}} }},
		{"transport-changed", func(c *plugins.Connector) { c.Transport = plugins.SSE }},
		{"permissions-changed", func(c *plugins.Connector) { c.Requested.Net = []string{"login.example.com:443"} }}, // also where the operator asked
	} {
		r := approvalstest.New(t)
		remote(r)
		r.Approve(offer, "read_notes")
		if l, err := r.Grant().Launch(); err != nil || l.URL != "https://api.example.com/mcp" {
			t.Fatal(l.URL, err)
		}
		r.Edit(row.edit)
		_, err := r.Gate.Grant(t.Context(), r.ID)
		wantCode(t, err, row.code)
	}
}

func TestBytesThatComeBackAreApprovedAgain(t *testing.T) {
	r := approvalstest.New(t)
	before, err := os.ReadFile(filepath.Join(r.Root, "server.js"))
	if err != nil {
		t.Fatal(err)
	}
	r.Approve(offer, "read_notes")
	r.Write("server.js", "evil", 0o644)
	r.Gate.Recheck(t.Context(), r.ID)
	r.Write("server.js", string(before), 0o644)
	r.Grant()
}

func TestADamagedSnapshotIsRebuiltOnlyFromTheApprovedBytes(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	launch, _ := r.Grant().Launch()
	os.Chmod(launch.Dir, 0o700)
	os.Chmod(launch.Args[0], 0o600)
	if err := os.WriteFile(launch.Args[0], []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	launch, err := r.Grant().Launch()
	if err != nil {
		t.Fatal(err)
	}
	wantLaunchFromSnapshot(t, r, launch)
}

func TestSnapshotsThatNothingNeedsAreDropped(t *testing.T) {
	r := approvalstest.New(t)
	count := func() int {
		found, _ := filepath.Glob(filepath.Join(r.Dir, "data", "snapshots", "a1-*.leaves"))
		return len(found)
	}
	r.Approve(offer, "read_notes")
	for _, text := range []string{"second", "third", "fourth"} {
		r.Write("server.js", text, 0o644)
		r.Approve(offer, "read_notes")
	}
	if err := r.Gate.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 2 { // the approved one, and the one before it to compare with
		t.Fatalf("%d snapshots are kept", n)
	}
	r.Grant()
}

func TestTheApprovedPathIsReused(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	launch, err := r.Grant().Launch()
	if err != nil {
		t.Fatal(err)
	}
	if launch.Path != filepath.Join(r.Dir, "bin", "node") {
		t.Fatalf("got %s", launch.Path)
	}
	path, err := launch.Env.Path()
	if err != nil || !strings.HasSuffix(path, filepath.Join(r.Dir, "bin")) {
		t.Fatal(path, err)
	}
}

func TestAProgramInTheBundleRunsFromTheSnapshot(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a program has another name there")
	}
	r := approvalstest.New(t)
	r.Write("bin/run", "#!"+filepath.Join(r.Dir, "bin", "node")+"\n", 0o755)
	r.Bundle("./bin/run")
	r.Approve(offer, "read_notes")
	launch, err := r.Grant().Launch()
	if err != nil {
		t.Fatal(err)
	}
	if launch.Path != filepath.Join(launch.Dir, "bin", "run") || !launch.Executable.InBundle || strings.HasPrefix(launch.Path, r.Root) {
		t.Fatalf("got %+v", launch.Executable)
	}
	// The interpreter is outside: it is part of the identity by its bytes.
	r.WriteOutside("bin/node", "another node\n", 0o755)
	_, err = r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "executable-changed")
}

func TestALinkIntoTheSourceFolderDoesNotRunTheSource(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	r := approvalstest.New(t)
	r.Write("bin/run", "binary\n", 0o755)
	if err := os.Symlink(filepath.Join(r.Root, "bin", "run"), filepath.Join(r.Dir, "bin", "linked")); err != nil {
		t.Fatal(err)
	}
	r.Bundle("linked")
	r.Approve(offer, "read_notes")
	launch, err := r.Grant().Launch()
	if err != nil {
		t.Fatal(err)
	}
	if launch.Path != filepath.Join(launch.Dir, "bin", "run") {
		t.Fatalf("it would run %s", launch.Path)
	}
}

func TestWorkingDirectories(t *testing.T) {
	for _, row := range []struct{ declared, want, code string }{
		{"", "ROOT", ""},
		{"./", "ROOT", ""},
		{"./server", "ROOT/server", ""},
		{"${PLUGIN_ROOT}/server", "ROOT/server", ""},
		{"${PLUGIN_DATA}", "DATA", ""},
		{"${PLUGIN_DATA}/in", "DATA/in", ""},
		{"../elsewhere", "", "cwd-outside"},
		{"./../elsewhere", "", "cwd-outside"},
		{"${PLUGIN_ROOT}/../elsewhere", "", "cwd-outside"},
		{"${PLUGIN_DATA}/../elsewhere", "", "cwd-outside"},
	} {
		r := approvalstest.New(t)
		r.Edit(func(c *plugins.Connector) { c.Launch.Cwd = row.declared })
		d, err := r.Gate.Answer(t.Context(), r.Ask().ID, approvals.Answer{Allow: true}, operator)
		if err != nil {
			t.Fatal(err)
		}
		grant, err := r.Gate.ProbeGrant(t.Context(), d.ID)
		wantCode(t, err, row.code)
		if err == nil {
			launch, _ := grant.Launch()
			root := filepath.Dir(launch.Args[0])
			want := strings.NewReplacer("ROOT", root, "DATA", r.PluginData("demo")).Replace(row.want)
			if launch.Dir != filepath.FromSlash(want) {
				t.Errorf("%q: got %s, want %s", row.declared, launch.Dir, want)
			}
		}
		r.Close()
	}
}
