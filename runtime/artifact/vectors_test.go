package artifact

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"sallyport/internal/coded"
)

// implementations are the ways to read a tree: all must pass the same vectors.
func implementations() map[string]Options {
	return map[string]Options{
		"system":             {},
		"system, 1 worker":   {Workers: 1},
		"system, 7 workers":  {Workers: 7},
		"portable":           {source: rootSource{}},
		"portable, 1 worker": {source: rootSource{}, Workers: 1},
		"no kinds in lists":  {source: kindless{systemSource()}},
		"older kernel":       {source: olderSource()},
	}
}

// kindless is a file system that lists names without saying what they are.
type kindless struct{ source }

func (k kindless) list(dir handle, again bool, s *scratch, each func([]byte, byte)) error {
	return k.source.list(dir, again, s, func(name []byte, _ byte) { each(name, kindUnknown) })
}

type vector struct {
	ID      string          `json:"id"`
	Why     string          `json:"why"`
	Steps   json.RawMessage `json:"steps"`
	Digest  Digest          `json:"digest"`
	Error   string          `json:"error"`
	Same    string          `json:"same"`
	Warning string          `json:"warning"`
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	f, err := os.Open(filepath.FromSlash("../../spec/vectors/artifact/vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var file struct {
		Contract string   `json:"contract"`
		Version  string   `json:"version"`
		Vectors  []vector `json:"vectors"`
	}
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if file.Version != "a1" || len(file.Vectors) == 0 {
		t.Fatalf("vectors are version %q and %d in number", file.Version, len(file.Vectors))
	}
	return file.Vectors
}

func TestVectors(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("recipes need modes, FIFOs and links")
	}
	digests := map[string]Digest{}
	for _, v := range readVectors(t) {
		digests[v.ID] = v.Digest
		t.Run(v.ID, func(t *testing.T) {
			if (v.Digest == "") == (v.Error == "") {
				t.Fatal("a vector has either a digest or an error")
			}
			if v.Same != "" && digests[v.Same] != v.Digest {
				t.Errorf("digest is not the same as that of %s", v.Same)
			}
			steps, err := decodeRecipe(v.Steps)
			if err != nil {
				t.Fatal(err)
			}
			root := filepath.Join(t.TempDir(), "ROOT")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			buildRecipe(t, root, steps)
			for name, opts := range implementations() {
				t.Run(name, func(t *testing.T) { checkVector(t, root, v, opts) })
			}
		})
	}
}

func checkVector(t *testing.T, root string, v vector, opts Options) {
	tree, err := Of(context.Background(), root, opts)
	if v.Error != "" {
		if coded.Of(err) != v.Error {
			t.Fatalf("got %v, want code %s: %s", err, v.Error, v.Why)
		}
		return
	}
	if err != nil {
		t.Fatalf("%v: %s", err, v.Why)
	}
	if tree.Digest != v.Digest {
		t.Errorf("got %s, want %s: %s", tree.Digest, v.Digest, v.Why)
	}
	if again := DigestOf(tree.Leaves); again != v.Digest {
		t.Errorf("leaves give %s", again)
	}
	warned := ""
	if len(tree.Warnings) > 0 {
		warned = tree.Warnings[0].Code
	}
	if warned != v.Warning {
		t.Errorf("got warning %q, want %q", warned, v.Warning)
	}
}

func TestUnknownRecipeKeysAreRefused(t *testing.T) {
	for _, steps := range []string{
		`[{"file": "a", "text": "x", "owner": "root"}]`,
		`[{"file": {"base64": "YQ==", "latin1": "a"}, "text": "x"}]`,
	} {
		if _, err := decodeRecipe([]byte(steps)); err == nil {
			t.Errorf("accepted %s", steps)
		}
	}
}
