//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// noticeWithin is spec/approval.md 5.3.
const noticeWithin = 2 * time.Second

func TestOneByteOfAFileThatNobodyNames(t *testing.T) {
	f := newFort(t)
	f.addServer("fake", "polite")
	s := f.serve()
	f.approve("fake/main")
	http, stdio := s.overHTTP("claude"), s.overStdio("cursor")
	pid := f.pid("fake/main")
	http.wantOK("fake__main__go")
	stdio.wantOK("fake__main__go")
	started := f.starts("fake")

	path := f.plugin("fake", "notes.txt")
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	file.WriteAt([]byte("N"), 0)
	file.Close()
	took := eventually(t, noticeWithin, "the running server is gone", func() bool { return !alive(pid) })
	t.Logf("noticed and ended in %s", took)

	http.wantRefused("fake__main__go", "artifact-changed")
	stdio.wantRefused("fake__main__go", "artifact-changed")
	f.refused("artifact-changed", "call", "fake/main", "go")
	f.wantStanding("fake/main", "approval_required", "artifact-changed")
	diff := f.ok("diff", "fake/main")
	for _, part := range []string{"notes.txt", "nobody names this file", "Nobody names this file"} {
		if !strings.Contains(diff, part) {
			t.Fatalf("the diff does not show %q:\n%s", part, diff)
		}
	}
	f.refused("artifact-changed", "enable", "fake/main")
	if f.starts("fake") != started || len(f.children()) != 0 {
		t.Fatalf("something ran: %d starts after %d, children %v", f.starts("fake"), started, f.children())
	}
	f.approve("fake/main")
	http.wantOK("fake__main__go")
	stdio.wantOK("fake__main__go")
	f.ok("audit", "verify")
}

// change is one field of spec/approval.md 2.1, changed while the server runs.
type change struct {
	what string
	// code is the reason that people and scripts see. What a manifest says is a file
	// of the bundle too, so there the artifact differs as well and comes first.
	code string
	// also is the field's own code, which diff shows.
	also  string
	setup func(r *changing)
	do    func(r *changing)
}

// changing is one row at work: a plugin of its own in a home that all rows share.
type changing struct {
	*fort
	name     string
	overlays map[string]object
}

func (r *changing) overlay(o object) {
	r.overlays[r.name+"/main"] = o
	r.configure(object{"connectors": r.overlays})
}

func (r *changing) server(edit func(server object)) { r.serveWith(r.name, "polite", edit) }

// program puts an executable into dir. The tail makes it another one and does not
// matter to the system.
func (r *changing) program(dir, name, tail string) {
	r.t.Helper()
	raw, err := os.ReadFile(need(r.t, built.fakeserver))
	if err != nil {
		r.t.Fatal(err)
	}
	r.replace(filepath.Join(dir, name), append(raw, tail...))
}

// replace puts another file in the place of an executable, as installers do.
func (r *changing) replace(path string, content []byte) {
	r.t.Helper()
	if err := os.WriteFile(path+".new", content, 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		r.t.Fatal(err)
	}
}

func set(field string, value any) func(object) { return func(server object) { server[field] = value } }

// changes is the table of spec/approval.md 2.1 as far as a package can be changed
// from outside; each row changes one thing.
func changes(early string) []change {
	overlaid := func(o object) func(*changing) { return func(r *changing) { r.overlay(o) } }
	edited := func(field string, value any) func(*changing) {
		return func(r *changing) { r.server(set(field, value)) }
	}
	bare := func(r *changing) {
		r.program(r.path, r.name, "one")
		r.server(set("command", r.name))
	}
	return []change{
		{what: "source", code: "binding-changed", also: "binding-changed", do: func(r *changing) {
			r.mkdir(r.data("plugins"))
			if err := os.Rename(r.plugin(r.name), r.data("plugins", r.name)); err != nil {
				r.t.Fatal(err)
			}
		}},
		{what: "version", code: "version-changed", also: "version-changed", do: func(r *changing) {
			r.declare(r.name, object{"version": "1.0.1"})
		}},
		{what: "file-changed", code: "artifact-changed", also: "artifact-changed", do: func(r *changing) {
			r.write(r.name, "notes.txt", []byte("nobody names this File\n"), 0o644)
		}},
		{what: "file-added", code: "artifact-changed", also: "artifact-changed", do: func(r *changing) {
			r.write(r.name, "deep/er/.hidden", nil, 0o644)
		}},
		{what: "file-removed", code: "artifact-changed", also: "artifact-changed", do: func(r *changing) {
			if err := os.Remove(r.plugin(r.name, "notes.txt")); err != nil {
				r.t.Fatal(err)
			}
		}},
		{what: "file-executable", code: "artifact-changed", also: "artifact-changed", do: func(r *changing) {
			if err := os.Chmod(r.plugin(r.name, "notes.txt"), 0o755); err != nil {
				r.t.Fatal(err)
			}
		}},
		{what: "transport", code: "artifact-changed", also: "transport-changed", do: func(r *changing) {
			r.declareServer(r.name, object{"type": "streamable-http", "url": "http://127.0.0.1:9/mcp"})
		}},
		{what: "command", code: "artifact-changed", also: "command-changed", do: func(r *changing) {
			r.program(r.plugin(r.name), "other", "")
			r.server(set("command", "./other"))
		}},
		{what: "program-replaced", code: "executable-changed", also: "executable-changed", setup: bare, do: func(r *changing) {
			r.program(r.path, r.name, "two")
		}},
		{what: "program-replaced-in-disguise", code: "executable-changed", also: "executable-changed", setup: bare, do: func(r *changing) {
			path := filepath.Join(r.path, r.name)
			before, err := os.Stat(path)
			if err != nil {
				r.t.Fatal(err)
			}
			r.program(r.dir, r.name, "eno")
			staged := filepath.Join(r.dir, r.name)
			if err := os.Chtimes(staged, before.ModTime(), before.ModTime()); err != nil {
				r.t.Fatal(err)
			}
			if err := os.Rename(staged, path); err != nil {
				r.t.Fatal(err)
			}
		}},
		{what: "program-shadowed", code: "executable-changed", also: "executable-changed", setup: bare, do: func(r *changing) {
			r.program(early, r.name, "one")
		}},
		{what: "interpreter", code: "executable-changed", also: "executable-changed", setup: func(r *changing) {
			r.program(r.path, r.name+"-i", "one")
			r.write(r.name, "script", []byte("#!"+filepath.Join(r.path, r.name+"-i")+" polite\n"), 0o755)
			r.server(set("command", "./script"))
		}, do: func(r *changing) { r.program(r.path, r.name+"-i", "two") }},
		{what: "args", code: "artifact-changed", also: "args-changed",
			do: edited("args", []string{"polite", "-pid-file", "${PLUGIN_DATA}/pids", "--more"})},
		{what: "cwd", code: "artifact-changed", also: "cwd-changed", do: edited("cwd", "${PLUGIN_DATA}")},
		{what: "env", code: "artifact-changed", also: "env-changed", do: edited("env", object{"MODE": "fast"})},
		{what: "my-env", code: "env-changed", also: "env-changed", do: overlaid(object{"env": object{"MODE": "fast"}})},
		{what: "inherit", code: "env-changed", also: "env-changed", do: overlaid(object{"inherit": []string{"DISPLAY"}})},
		{what: "permissions", code: "permissions-changed", also: "permissions-changed", do: overlaid(object{"permissions": object{"tools": []string{"go", "pid"}}})},
		{what: "max-frame", code: "options-changed", also: "options-changed", do: overlaid(object{"maxFrame": 32 << 20})},
		{what: "stdout-noise", code: "options-changed", also: "options-changed", do: overlaid(object{"stdoutNoise": "skip"})},
		{what: "budget", code: "options-changed", also: "options-changed", do: overlaid(object{"budget": object{"openFiles": 64}})},
	}
}

func TestAChangeOfEachFieldWhileItRuns(t *testing.T) {
	f := newFort(t)
	early := filepath.Join(f.dir, "early")
	f.mkdir(early)
	f.with("PATH=" + early + ":" + f.path + ":" + os.Getenv("PATH"))
	f.addServer("neighbour", "polite")
	s := f.serve()
	f.approve("neighbour")
	agent := s.overHTTP("claude")
	neighbour := f.pid("neighbour")
	overlays := map[string]object{}
	for _, row := range changes(early) {
		t.Run(row.what, func(t *testing.T) {
			here := *f.home
			here.t = t
			r := &changing{&fort{&here, f.path}, row.what, overlays}
			r.addServer(row.what, "polite")
			if row.setup != nil {
				row.setup(r)
			}
			r.ok("plugins", "scan")
			r.wantChange(agent, row)
		})
	}
	if now := f.pid("neighbour"); now != neighbour || f.starts("neighbour") != 2 {
		t.Errorf("the neighbour was started again: %d, %d starts", now, f.starts("neighbour"))
	}
	f.ok("audit", "verify")
}

func (r *changing) wantChange(agent *agent, row change) {
	t, id := r.t, r.name+"/main"
	t.Helper()
	r.approve(id)
	pid := r.pid(id)
	starts, started := r.starts(r.name), r.audited("start", "ok", r.name)
	row.do(r)
	took := eventually(t, noticeWithin, "the running server is gone", func() bool { return !alive(pid) })
	t.Logf("noticed and ended in %s", took)

	agent.t = t
	agent.wantRefused(exposed(r.name, "go"), row.code)
	r.refused(row.code, "call", id, "go")
	r.wantStanding(id, "approval_required", row.code)
	if codes := r.diffCodes(id); !slices.Contains(codes, row.also) || !slices.Contains(codes, row.code) {
		t.Errorf("diff tells of %v, not of %s and %s", codes, row.code, row.also)
	}
	if n := r.starts(r.name); n != starts {
		t.Errorf("a process was started: %d, %d before", n, starts)
	}
	if n := r.audited("start", "ok", r.name); n != started {
		t.Errorf("a start is on record: %d, %d before", n, started)
	}
	if n := r.audited("call", "ok", r.name); n != 1 {
		t.Errorf("%d calls were sent, want only the one before the change", n)
	}
	if !slices.ContainsFunc(r.audit(), func(a auditLine) bool {
		return a.Action == "refuse" && a.Plugin == r.name && a.Reason == row.code
	}) {
		t.Errorf("no refusal with %s is on record", row.code)
	}
}

func exposed(plugin, tool string) string { return plugin + "__main__" + tool }

// diffCodes are the codes of what changed, as diff and show say.
func (f *fort) diffCodes(id string) (codes []string) {
	f.t.Helper()
	var shown struct {
		Changes []struct{ Code string }
	}
	f.read(&shown, "plugins", "show", id)
	for _, c := range shown.Changes {
		codes = append(codes, c.Code)
	}
	var diff json.RawMessage
	f.read(&diff, "diff", id)
	if len(codes) > 0 && !strings.Contains(string(diff), codes[len(codes)-1]) && !strings.Contains(string(diff), "\"files\"") {
		f.t.Errorf("diff does not tell of %s: %s", codes[len(codes)-1], diff)
	}
	return codes
}

// The reason names the field even where the question comes at once after the
// change, before anything was noticed: a start looks at the disk at that moment.
func TestTheReasonIsRightAtOnce(t *testing.T) {
	f := newFort(t)
	f.addServer("fake", "polite")
	s := f.serve()
	f.approve("fake")
	for range 5 {
		waitFor(t, "it stands", 5*time.Second, func() bool { return f.connector("fake/main").State == "enabled" })
		f.declare("fake", object{"version": "1.0.1"})
		if status, body := s.call("fake/main", "go"); status != 409 || !strings.Contains(string(body), `"version-changed"`) {
			t.Errorf("got %d %s", status, body)
		}
		f.declare("fake", object{"version": "1.0.0"})
	}
	if n := f.starts("fake"); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}
