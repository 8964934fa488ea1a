package host_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/host"
	"sallyport/runtime/plugins"
)

// bundle puts an MCP bundle in the home that asks for two values.
func (r *rig) bundle() plugins.ID {
	r.t.Helper()
	for _, dir := range []string{filepath.Join(r.home, ".agents", "plugins", "demo"), r.places.Config} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	r.write(filepath.Join(r.home, ".agents", "plugins", "demo", "manifest.json"), `{"manifest_version": "0.3", "name": "demo", "version": "1.0.0",
		"server": {"type": "node", "entry_point": "i.js", "mcp_config": {"command": "node", "args": ["${user_config.name}", "${user_config.level}"]}},
		"user_config": {"name": {"type": "string", "required": true}, "level": {"type": "number", "max": 9}}}`)
	return plugins.ID{Plugin: "demo", Server: "main"}
}

func given(key string, values ...string) host.Choices {
	return host.Choices{Set: map[string][]string{key: values}}
}

func TestSettingsAreGivenOnRecordAndTakenBack(t *testing.T) {
	r := newRig(t)
	id := r.bundle()
	h := r.open()
	defer r.close(h)
	by := approvals.By{User: "tester", Via: approvals.ViaCLI}
	state := func() string { return h.Gate.Status(t.Context(), id).Reason }
	if got := state(); got != "user-config-missing" {
		t.Fatalf("before: %s", got)
	}
	if err := h.Configure(t.Context(), id, given("name", "a b"), by); err != nil {
		t.Fatal(err)
	}
	if got := state(); got == "user-config-missing" {
		t.Errorf("at once after it was given: %s", got)
	}
	if err := h.Configure(t.Context(), id, host.Choices{Unset: []string{"name"}}, by); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != "user-config-missing" {
		t.Errorf("taken back: %s", got)
	}
	page, err := h.Audit.Query(t.Context(), audit.Filter{Plugin: "demo"})
	if err != nil || len(page.Records) != 2 || page.Records[0].Action != audit.Setting || page.Records[0].Target != "name" || page.Records[0].Actor != "tester" {
		t.Errorf("%+v %v", page.Records, err)
	}
}

func TestWhatCannotBeASettingChangesNothing(t *testing.T) {
	r := newRig(t)
	id := r.bundle()
	h := r.open()
	defer r.close(h)
	for code, change := range map[string]host.Choices{
		"setting-unknown": given("other", "x"), "setting-invalid": given("level", "10"), "bad-request": {},
	} {
		if err := h.Configure(t.Context(), id, change, approvals.By{}); coded.Of(err) != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
	twice := given("name", "x")
	twice.Unset = []string{"name"}
	if err := h.Configure(t.Context(), id, twice, approvals.By{}); coded.Of(err) != "bad-request" {
		t.Errorf("given and taken back at once: %v", err)
	}
	if err := h.Configure(t.Context(), plugins.ID{Plugin: "absent", Server: "main"}, given("name", "x"), approvals.By{}); coded.Of(err) != "plugin-unknown" {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(r.places.ConfigFile()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a config.json now: %v", err)
	}
}

// What somebody wrote by hand and Sallyport cannot read stays as it is.
func TestAConfigurationThatCannotBeReadIsNotOverwritten(t *testing.T) {
	r := newRig(t)
	id := r.bundle()
	r.write(r.places.ConfigFile(), "{ // mine\n}")
	h := r.open()
	defer r.close(h)
	if err := h.Configure(t.Context(), id, given("name", "x"), approvals.By{}); coded.Of(err) != "config-unusable" {
		t.Errorf("%v", err)
	}
	if raw, err := os.ReadFile(r.places.ConfigFile()); err != nil || string(raw) != "{ // mine\n}" {
		t.Errorf("%q %v", raw, err)
	}
}

// A configuration that is a link into somebody's dotfiles stays one, with its mode.
func TestALinkedConfigurationStaysLinked(t *testing.T) {
	r := newRig(t)
	id := r.bundle()
	real := filepath.Join(t.TempDir(), "mine.json")
	if err := os.WriteFile(real, []byte("{}\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(r.places.Config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, r.places.ConfigFile()); err != nil {
		t.Fatal(err)
	}
	h := r.open()
	defer r.close(h)
	if err := h.Configure(t.Context(), id, given("name", "x"), approvals.By{}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(real)
	if err != nil || !strings.Contains(string(raw), `"name": "x"`) {
		t.Errorf("%q %v", raw, err)
	}
	if info, err := os.Lstat(r.places.ConfigFile()); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v %v", info, err)
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %v", info, err)
	}
}

func TestManyWhoConfigureAtOnceLoseNothing(t *testing.T) {
	r := newRig(t)
	id := r.bundle()
	h := r.open()
	defer r.close(h)
	var all sync.WaitGroup
	for _, change := range []host.Choices{given("name", "x"), given("level", "7"), given("name", "x"), given("level", "7")} {
		all.Go(func() {
			if err := h.Configure(t.Context(), id, change, approvals.By{User: "tester", Via: approvals.ViaCLI}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	settings, err := h.Settings(t.Context(), id)
	if err != nil || len(settings) != 2 || len(settings[0].Value)+len(settings[1].Value) != 2 {
		t.Errorf("%+v %v", settings, err)
	}
}
