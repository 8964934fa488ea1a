package artifact

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLinks compares resolution in the walked tree with the kernel's, for the
// one thing both know: where a link that is accepted ends.
func FuzzLinks(f *testing.F) {
	for _, text := range []string{"a", "../f", "../../f", "d/../f", "l/x", "l/../f", "m", "f/", "f/.", "f/..", "./././d", "d//e", "l", ".", "..", ""} {
		f.Add(text, "../d")
	}
	f.Fuzz(func(t *testing.T, text, inner string) {
		root := buildNodes(text, inner)
		e := root.find("w").child.find("z")
		target, refusal := checkLink(root.find("w").child, e)
		if refusal != nil {
			return
		}
		if target != text || filepath.IsAbs(text) {
			t.Fatalf("%q accepted as %q", text, target)
		}
		if strings.ContainsAny(text+inner, "\x00") {
			return
		}
		dir := t.TempDir()
		for _, err := range []error{
			os.MkdirAll(filepath.Join(dir, "w"), 0o755), os.MkdirAll(filepath.Join(dir, "d/e"), 0o755),
			os.WriteFile(filepath.Join(dir, "f"), nil, 0o644), os.WriteFile(filepath.Join(dir, "d/x"), nil, 0o644),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if os.Symlink(inner, filepath.Join(dir, "w/l")) != nil || os.Symlink(text, filepath.Join(dir, "w/z")) != nil {
			return // no file system takes such text
		}
		end, err := filepath.EvalSymlinks(filepath.Join(dir, "w/z"))
		if err != nil {
			// The contract lets "f/" lead to a file; the kernel does not.
			if strings.HasSuffix(strings.TrimRight(text, "."), "/") || strings.HasSuffix(strings.TrimRight(inner, "."), "/") || strings.Contains(text, "./") || strings.Contains(inner, "./") {
				return
			}
			t.Fatalf("%q through %q accepted, but: %v", text, inner, err)
		}
		base, _ := filepath.EvalSymlinks(dir)
		if rel, err := filepath.Rel(base, end); err != nil || rel == "." || rel == "w" || strings.HasPrefix(rel, "..") {
			t.Fatalf("%q through %q accepted, but ends at %q", text, inner, rel)
		}
	})
}

// buildNodes returns the walked form of
//
//	d/e/  d/x  f  w/l -> inner  w/z -> text
func buildNodes(text, inner string) *node {
	root := &node{}
	dir := func(parent *node, path string) (*node, *entry) {
		e := &entry{raw: filepath.Base(path), path: path, kind: KindDir}
		e.child = &node{parent: parent, path: path, entry: e, depth: parent.depth + 1}
		return e.child, e
	}
	leaf := func(path string, kind byte, target string) *entry {
		return &entry{raw: filepath.Base(path), path: path, kind: kind, target: target}
	}
	d, de := dir(root, "d")
	_, ee := dir(d, "d/e")
	w, we := dir(root, "w")
	d.sorted = []*entry{ee, leaf("d/x", KindFile, "")}
	w.sorted = []*entry{leaf("w/l", KindLink, inner), leaf("w/z", KindLink, text)}
	root.sorted = []*entry{de, leaf("f", KindFile, ""), we}
	return root
}
