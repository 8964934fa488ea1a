package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/fakeserver/fakeservertest"
	"sallyport/runtime/audit"
	"sallyport/runtime/plugins"
)

// handRig is a host with one connector of its own, mine.
func handRig(t *testing.T) (*rig, string) {
	r := newRig(t)
	dir := filepath.Join(r.places.Data, "..", "programs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return r, fakeservertest.Build(t, dir)
}

// What is written down enters as data: nothing starts, nothing is enabled, and it is
// on record.
func TestAConnectorThatIsWrittenDownStartsNothing(t *testing.T) {
	r, program := handRig(t)
	h := r.open()
	defer r.close(h)
	h.Start()
	id, err := h.AddConnector(t.Context(), "mine", plugins.HandEntry{Command: program, Args: []string{"polite"}}, operator)
	if err != nil || id.String() != "connectors/mine" {
		t.Fatalf("%v %v", id, err)
	}
	if running := h.Pool.Running(); len(running) != 0 {
		t.Errorf("something runs: %+v", running)
	}
	if err := call(t, h, id, "echo"); coded.Of(err) != "never-approved" {
		t.Errorf("got %v", err)
	}
	page, err := h.Audit.Query(t.Context(), audit.Filter{Plugin: plugins.ByHand})
	if err != nil || len(page.Records) == 0 || page.Records[len(page.Records)-1].Action != audit.Setting || page.Records[len(page.Records)-1].Target != "add" {
		t.Errorf("on record is %+v %v", page.Records, err)
	}
	for what, entry := range map[string]plugins.HandEntry{
		"a token in the environment": {Command: program, Env: map[string]string{"GITHUB_TOKEN": "ghp_0123456789abcdef0123456789abcdef0123"}},
		"a token in a header":        {URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer ghp_0123456789abcdef0123456789abcdef0123"}},
		"a token in an argument":     {Command: program, Args: []string{"--token", "ghp_0123456789abcdef0123456789abcdef0123"}},
	} {
		_, err := h.AddConnector(t.Context(), "other", entry, operator)
		raw, _ := os.ReadFile(r.places.ConnectorsFile())
		if coded.Of(err) != "literal-secret" || strings.Contains(string(raw), "ghp_") || strings.Contains(err.Error(), "ghp_") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := h.AddConnector(t.Context(), "other", plugins.HandEntry{Command: program, Env: map[string]string{"GITHUB_TOKEN": "secret:GITHUB"}}, operator); err != nil {
		t.Errorf("a reference: %v", err)
	}
}

// spec/approval.md 5.3: an entry that is changed by hand ends its approval, and what
// runs is stopped within 2 s.
func TestAnEntryThatIsChangedByHandStopsItsServer(t *testing.T) {
	r, program := handRig(t)
	h := r.open()
	defer r.close(h)
	h.Start()
	entry := func(level string) string {
		return `{ // mine
  "connectors": {"mine": {"command": "` + filepath.ToSlash(program) + `", "args": ["polite"], "env": {"LEVEL": "` + level + `"}}},
}`
	}
	r.write(r.places.ConnectorsFile(), entry("info"))
	id, err := h.Find(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	r.approve(h, id, "echo")
	if err := call(t, h, id, "echo"); err != nil {
		t.Fatal(err)
	}
	r.write(r.places.ConnectorsFile(), entry("debug"))
	changed := time.Now()
	for len(h.Pool.Running()) > 0 {
		if time.Since(changed) > 5*time.Second {
			t.Fatal("it runs 5 s after the change")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(changed); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	if err := call(t, h, id, "echo"); coded.Of(err) != "env-changed" {
		t.Errorf("got %v", err)
	}
	r.write(r.places.ConnectorsFile(), entry("info")) // as it was approved
	if err := call(t, h, id, "echo"); err != nil {
		t.Errorf("put back: %v", err)
	}
	r.write(r.places.ConnectorsFile(), `{"connectors": {`)
	for changed = time.Now(); call(t, h, id, "echo") == nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(changed) > 5*time.Second {
			t.Fatal("a file that cannot be read lets it run")
		}
	}
}

func TestAConnectorIsFoundByItsNameWhereNoPluginHasIt(t *testing.T) {
	r, program := handRig(t)
	r.install("both", "polite")
	h := r.open()
	defer r.close(h)
	for _, name := range []string{"mine", "both", "a/b"} {
		if _, err := h.AddConnector(t.Context(), name, plugins.HandEntry{Command: program}, operator); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"mine": "connectors/mine", "connectors/mine": "connectors/mine", "connectors/both": "connectors/both", "both/main": "both/main",
		"connectors/a/b": "connectors/a/b", "both": "plugin-ambiguous", "none": "plugin-unknown",
	} {
		id, err := h.Find(t.Context(), text)
		if got := id.String(); err == nil && got != want || err != nil && coded.Of(err) != want {
			t.Errorf("%q is %s %v, want %s", text, got, err, want)
		}
	}
}

// What a connector stored goes with its name, and nothing that is there is replaced.
func TestARenamedConnectorKeepsItsFolder(t *testing.T) {
	r, program := handRig(t)
	h := r.open()
	defer r.close(h)
	if _, err := h.AddConnector(t.Context(), "first", plugins.HandEntry{Command: program}, operator); err != nil {
		t.Fatal(err)
	}
	folder := func(name string) string {
		return r.places.PluginData(plugins.Connector{ID: plugins.ID{Plugin: plugins.ByHand, Server: name}, Format: plugins.ByHand}.DataName())
	}
	if err := os.MkdirAll(folder("first"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(folder("first"), "notes"), "kept")
	if _, err := h.RenameConnector(t.Context(), "first", "second", operator); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(filepath.Join(folder("second"), "notes")); string(raw) != "kept" {
		t.Errorf("got %q %v", raw, err)
	}
	if err := os.MkdirAll(folder("third"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := h.RenameConnector(t.Context(), "second", "third", operator); coded.Of(err) != "data-not-moved" {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder("second"), "notes")); err != nil {
		t.Errorf("what was stored is gone: %v", err)
	}
	if err := h.RemoveConnector(t.Context(), "third", operator); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder("second"), "notes")); err != nil {
		t.Errorf("removing a connector removes what it stored: %v", err)
	}
}
