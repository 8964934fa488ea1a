package install

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"sallyport/internal/coded"
)

func TestMain(m *testing.M) {
	if step := os.Getenv(dieAt); step != "" {
		die(step)
	}
	goleak.VerifyTestMain(m)
}

const manifestJSON = `{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "demo", "version": "1.0.0"}`

func newInstaller(t *testing.T) *Installer {
	t.Helper()
	return installerIn(t, t.TempDir())
}

func installerIn(t *testing.T, data string) *Installer {
	t.Helper()
	i, err := New(configIn(data))
	must(t, err)
	return i
}

func configIn(data string) Config {
	return Config{
		Staging: filepath.Join(data, "staging"), Plugins: filepath.Join(data, "plugins"),
		Previous: filepath.Join(data, "previous"), Info: filepath.Join(data, "plugins-info"), Home: data,
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// files makes a folder of files; a name that ends in "*" is executable.
func files(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "source")
	must(t, os.Mkdir(dir, 0o755))
	for name, text := range content {
		name, executable := strings.CutSuffix(name, "*")
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		mode := os.FileMode(0o644)
		if executable {
			mode = 0o755
		}
		must(t, os.WriteFile(path, []byte(text), mode))
	}
	return dir
}

func source(t *testing.T, text string) Source {
	t.Helper()
	s, err := ParseSource(text, "/")
	must(t, err)
	return s
}

// refused stages what must be refused, and looks that nothing is left.
func refused(t *testing.T, i *Installer, s Source, code string) *coded.Error {
	t.Helper()
	_, err := i.Stage(t.Context(), s, nil)
	return wantRefusal(t, i, err, code)
}

func wantRefusal(t *testing.T, i *Installer, err error, code string) *coded.Error {
	t.Helper()
	wantEmpty(t, i.config.Staging)
	refusal := asCoded(err)
	if coded.Of(err) != code || refusal == nil {
		t.Fatalf("got %q (%v), want %q", coded.Of(err), err, code)
	}
	if strings.Contains(err.Error(), i.config.Home) || refusal.Next == "" && refusal.Err == nil {
		t.Errorf("the refusal %q tells a path or not what to do", err)
	}
	return refusal
}

func wantEmpty(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		left, err := os.ReadDir(folder)
		must(t, err)
		for _, entry := range left {
			t.Errorf("%s was left in %s", entry.Name(), filepath.Base(folder))
		}
	}
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	must(t, err)
	return string(data)
}

// onWindows reports whether there are no mode bits.
func onWindows() bool { return runtime.GOOS == "windows" }
