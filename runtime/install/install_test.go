package install

import (
	"os"
	"path/filepath"
	"testing"
)

const manifestJSON = `{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "demo", "version": "1.0.0"}`

func newInstaller(t *testing.T) *Installer {
	t.Helper()
	data := t.TempDir()
	i, err := New(Config{
		Staging: filepath.Join(data, "staging"), Plugins: filepath.Join(data, "plugins"),
		Previous: filepath.Join(data, "previous"), Info: filepath.Join(data, "plugins-info"), Home: data,
	})
	must(t, err)
	return i
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree makes a folder of files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

func TestAFolderIsStagedActivatedUndoneAndRemoved(t *testing.T) {
	i := newInstaller(t)
	source, err := ParseSource(tree(t, map[string]string{"plugin.json": manifestJSON, "a/b.txt": "one"}), "/")
	must(t, err)
	first, err := i.Stage(t.Context(), source, nil)
	must(t, err)
	again, err := i.Staged(t.Context(), first.ID)
	must(t, err)
	if again.Digest != first.Digest || again.Plugin.Name != "demo" {
		t.Errorf("staged %v %q, found again as %v %q", first.Digest, first.Plugin.Name, again.Digest, again.Plugin.Name)
	}
	installed, err := i.Activate(t.Context(), again)
	must(t, err)
	if installed.Digest != first.Digest || installed.Previous != nil {
		t.Errorf("installed %+v", installed)
	}
	must(t, os.WriteFile(filepath.Join(source.Path, "a", "b.txt"), []byte("two"), 0o644))
	second, err := i.Stage(t.Context(), source, nil)
	must(t, err)
	updated, err := i.Activate(t.Context(), second)
	must(t, err)
	if updated.Digest != second.Digest || updated.Previous == nil || updated.Previous.Digest != first.Digest {
		t.Errorf("updated %+v", updated)
	}
	undone, err := i.Undo(t.Context(), "demo")
	must(t, err)
	if data, _ := os.ReadFile(filepath.Join(undone.Dir, "a", "b.txt")); string(data) != "one" || undone.Digest != first.Digest {
		t.Errorf("undone has %q and %+v", data, undone)
	}
	must(t, i.Remove(t.Context(), "demo"))
	if list, err := i.List(); err != nil || len(list) != 0 {
		t.Errorf("left are %v, %v", list, err)
	}
	for _, folder := range []string{i.config.Staging, i.config.Plugins, i.config.Previous, i.config.Info} {
		if left, _ := os.ReadDir(folder); len(left) > 0 {
			t.Errorf("%s still has %v", filepath.Base(folder), left[0].Name())
		}
	}
}
