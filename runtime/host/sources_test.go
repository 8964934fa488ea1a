package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/host"
)

// TestAFolderIsAddedRemovedAndPutBack: in its place, with everything else of the
// operator's file as it was.
func TestAFolderIsAddedRemovedAndPutBack(t *testing.T) {
	r := newRig(t)
	if err := os.MkdirAll(r.places.Config, 0o700); err != nil {
		t.Fatal(err)
	}
	r.write(r.places.ConfigFile(), `{"pluginFolders":["/absent/one"],  "connectors": {}}`)
	h := r.open()
	defer r.close(h)
	by := approvals.By{User: "tester", Via: approvals.ViaCLI}
	dir := t.TempDir()
	folders := func() (all []string) {
		for _, source := range h.Sources() {
			if source.Folder != "" {
				all = append(all, source.Folder)
			}
		}
		return all
	}
	if err := h.AddSource(t.Context(), dir, host.LastSource, by); err != nil {
		t.Fatal(err)
	}
	if got := folders(); len(got) != 2 || got[0] != "/absent/one" || got[1] != dir {
		t.Errorf("after it was added: %q", got)
	}
	before, err := os.ReadFile(r.places.ConfigFile())
	if err != nil || !strings.Contains(string(before), `"connectors": {}`) {
		t.Errorf("the file is %s (%v)", before, err)
	}
	at, err := h.RemoveSource(t.Context(), "/absent/one", by)
	if err != nil || at != 0 || len(folders()) != 1 {
		t.Errorf("removed from place %d (%v), left are %q", at, err, folders())
	}
	if _, err := h.RemoveSource(t.Context(), "/absent/one", by); coded.Of(err) != "folder-unknown" {
		t.Errorf("removed twice: %v", err)
	}
	if at, err = h.RemoveSource(t.Context(), dir, by); err != nil || at != 0 {
		t.Errorf("%d %v", at, err)
	}
	if err := h.AddSource(t.Context(), dir, at, by); err != nil || len(folders()) != 1 {
		t.Errorf("put back: %v, %q", err, folders())
	}
	if sources := h.Sources(); sources[len(sources)-1].Folder != "" || sources[0].Folder != "" {
		t.Errorf("Sallyport's own folders are the operator's: %+v", sources)
	}
}

func TestWhatIsNoFolderForPluginsChangesNothing(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	by := approvals.By{User: "tester", Via: approvals.ViaCLI}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	r.write(file, "x")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(r.places.Plugins(), link); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string][2]string{
		"nothing":                          {"", "folder-invalid"},
		"a relative path":                  {"plugins", "folder-invalid"},
		"dots in between":                  {dir + "/../" + filepath.Base(dir), "folder-invalid"},
		"a file":                           {file, "folder-invalid"},
		"one that is not there":            {filepath.Join(dir, "absent"), "folder-missing"},
		"the root of everything":           {"/", "folder-refused"},
		"above the data folder":            {filepath.Dir(r.places.Data), "folder-refused"},
		"the state folder":                 {r.places.State, "folder-refused"},
		"a link to what is looked through": {link, "folder-refused"},
	} {
		if err := h.AddSource(t.Context(), row[0], host.LastSource, by); coded.Of(err) != row[1] {
			t.Errorf("%s: %v, want %s", name, err, row[1])
		}
	}
	if err := h.AddSource(t.Context(), dir, host.LastSource, by); err != nil {
		t.Fatal(err)
	}
	if err := h.AddSource(t.Context(), dir, host.LastSource, by); coded.Of(err) != "folder-known" {
		t.Errorf("twice: %v", err)
	}
	r.write(r.places.ConfigFile(), "{ // mine\n}")
	if err := h.AddSource(t.Context(), t.TempDir(), host.LastSource, by); coded.Of(err) != "config-unusable" {
		t.Errorf("into a file that cannot be read: %v", err)
	}
}
