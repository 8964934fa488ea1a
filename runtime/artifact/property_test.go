package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
)

// spec/artifact-digest.md 7.1: one thing differs, the digest differs.
func TestOneChangeIsAnotherDigest(t *testing.T) {
	onlyWithModes(t)
	changes := map[string]func(at func(string) string) error{
		"a byte":             func(at func(string) string) error { return os.WriteFile(at("lib/a.js"), []byte("twp"), 0o644) },
		"a byte more":        func(at func(string) string) error { return appendTo(at("lib/a.js"), "\n") },
		"a hidden file":      func(at func(string) string) error { return os.WriteFile(at(".DS_Store"), nil, 0o644) },
		"a compiled file":    func(at func(string) string) error { return os.WriteFile(at("lib/a.pyc"), []byte("x"), 0o644) },
		"a file less":        func(at func(string) string) error { return os.Remove(at("lib/a.js")) },
		"an empty directory": func(at func(string) string) error { return os.Mkdir(at("lib/b"), 0o755) },
		"a name":             func(at func(string) string) error { return os.Rename(at("lib/a.js"), at("lib/A.js")) },
		"the executable bit": func(at func(string) string) error { return os.Chmod(at("lib/a.js"), 0o744) },
		"the set-uid bit":    func(at func(string) string) error { return chmodExact(at("lib/a.js"), 0o4644) },
		"a link's text":      func(at func(string) string) error { os.Remove(at("link")); return os.Symlink("./lib/a.js", at("link")) },
		"a link into a file": func(at func(string) string) error {
			os.Remove(at("link"))
			return os.WriteFile(at("link"), []byte("two"), 0o644)
		},
		"a directory into a file": func(at func(string) string) error { os.Remove(at("dir")); return os.WriteFile(at("dir"), nil, 0o644) },
		"a file one level up":     func(at func(string) string) error { return os.Rename(at("lib/b.js"), at("b.js")) },
		"contents of two swapped": func(at func(string) string) error {
			return errors.Join(os.Rename(at("lib/a.js"), at("t")), os.Rename(at("lib/b.js"), at("lib/a.js")), os.Rename(at("t"), at("lib/b.js")))
		},
	}
	seen := map[Digest]string{}
	for name, change := range changes {
		root := plainTree(t)
		seen[mustDigest(t, root)] = "nothing"
		if err := change(func(p string) string { return filepath.Join(root, p) }); err != nil {
			t.Fatal(err)
		}
		d, err := Of(context.Background(), root, Options{})
		if name == "a file less" || name == "a name" { // the link now leads nowhere
			if coded.Of(err) != CodeSymlinkDangling {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, ok := seen[d.Digest]; ok {
			t.Errorf("changing %s gives the digest of changing %s", name, other)
		}
		seen[d.Digest] = name
	}
}

func plainTree(t *testing.T) string {
	root := t.TempDir()
	write(t, root, "lib/a.js", "two", 0o644)
	write(t, root, "lib/b.js", "owt", 0o644)
	symlink(t, "lib/a.js", filepath.Join(root, "link"))
	if err := os.Mkdir(filepath.Join(root, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// spec/artifact-digest.md 1.3 and 7.2: what is no part of a tree changes nothing.
func TestWhatTakesNoPartChangesNothing(t *testing.T) {
	onlyWithModes(t)
	root := plainTree(t)
	want := mustDigest(t, root)
	at := func(p string) string { return filepath.Join(root, p) }
	changes := map[string]error{
		"times":                errors.Join(os.Chtimes(at("lib/a.js"), time.Unix(1, 0), time.Unix(1, 0)), os.Chtimes(at("lib"), time.Unix(2, 0), time.Unix(2, 0))),
		"group and other bits": errors.Join(os.Chmod(at("lib/a.js"), 0o600), os.Chmod(at("lib/b.js"), 0o677), os.Chmod(at("dir"), 0o700)),
		"a link count":         os.Link(at("lib/a.js"), filepath.Join(t.TempDir(), "other")),
	}
	for name, err := range changes {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if got := mustDigest(t, root); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Paths chosen to stand on both sides of '/', and to share prefixes.
var awkwardNames = []string{
	"a", "a-", "a-b", "a.b", "a/", "a0", "a\x01", "A", "ab", "é", "é", "ÿ", "😀", "\uFFFD", "a\nb", " ", "~", ".", "..",
}

// buildRandom makes a random tree, mostly of the kind that has a digest.
func buildRandom(t testing.TB, root string, random *rand.Rand) {
	t.Helper()
	var dirs, all []string
	dirs = append(dirs, "")
	for range random.IntN(40) {
		name := strings.TrimSuffix(awkwardNames[random.IntN(len(awkwardNames)-2)], "/")
		path := filepath.Join(dirs[random.IntN(len(dirs))], name)
		full := filepath.Join(root, path)
		if _, err := os.Lstat(full); err == nil {
			continue
		}
		var err error
		switch n := random.IntN(20); {
		case n < 6:
			err = os.Mkdir(full, 0o755)
			dirs = append(dirs, path)
		case n < 9:
			to := awkwardNames[random.IntN(len(awkwardNames))]
			if len(all) > 0 && n < 8 {
				to = relative(filepath.Dir(path), all[random.IntN(len(all))])
			}
			err = os.Symlink(to, full)
		case n == 9 && random.IntN(8) == 0:
			err = makeFifo(full)
		default:
			err = os.WriteFile(full, bytes.Repeat([]byte{byte(n)}, random.IntN(4)*random.IntN(30000)), 0o644)
			if err == nil {
				err = chmodExact(full, []uint32{0o644, 0o755, 0o600, 0o4755, 0o1644}[random.IntN(5)])
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, path)
	}
}

func relative(from, to string) string {
	r, err := filepath.Rel(from, to)
	if err != nil {
		return to
	}
	return r
}

// Parallel, serial, fast and portable readings of one tree are one answer.
func TestEveryWayOfReadingGivesOneAnswer(t *testing.T) {
	onlyWithModes(t)
	random := rand.New(rand.NewPCG(7, 7))
	digests := 0
	for i := range 150 {
		root := t.TempDir()
		buildRandom(t, root, random)
		want, wantErr := Of(context.Background(), root, Options{source: rootSource{}, Workers: 1})
		for name, opts := range implementations() {
			got, err := Of(context.Background(), root, opts)
			if (err == nil) != (wantErr == nil) || coded.Of(err) != coded.Of(wantErr) || pathOf(err) != pathOf(wantErr) {
				t.Fatalf("tree %d, %s: got %v, want %v", i, name, err, wantErr)
			}
			if err == nil && (got.Digest != want.Digest || !slices.Equal(got.Leaves, want.Leaves)) {
				t.Fatalf("tree %d, %s: got %s, want %s", i, name, got.Digest, want.Digest)
			}
		}
		if wantErr == nil {
			digests++
			checkOrder(t, want.Leaves)
		}
	}
	if digests < 30 {
		t.Errorf("only %d of the trees had a digest", digests)
	}
}

func checkOrder(t *testing.T, leaves []Leaf) {
	t.Helper()
	for i := 1; i < len(leaves); i++ {
		if leaves[i-1].Path >= leaves[i].Path {
			t.Fatalf("%q stands before %q", leaves[i-1].Path, leaves[i].Path)
		}
	}
}

// The reference in spec/tools is slow, simple and not ours to bend.
func TestRandomTreesAgreeWithTheReference(t *testing.T) {
	onlyWithModes(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is missing")
	}
	random := rand.New(rand.NewPCG(42, 1))
	base := t.TempDir()
	roots := make([]string, 120)
	for i := range roots {
		roots[i] = filepath.Join(base, fmt.Sprintf("tree%03d", i))
		if err := os.Mkdir(roots[i], 0o755); err != nil {
			t.Fatal(err)
		}
		buildRandom(t, roots[i], random)
	}
	for i, want := range askReference(t, python, roots) {
		got := ""
		tree, err := Of(context.Background(), roots[i], Options{})
		if err != nil {
			got = "error " + coded.Of(err)
		} else {
			got = string(tree.Digest)
		}
		if got != want {
			t.Errorf("tree %d: got %s, the reference says %s", i, got, want)
		}
	}
}

// askReference digests all roots in one python process.
func askReference(t *testing.T, python string, roots []string) []string {
	t.Helper()
	const script = `
import sys; sys.path.insert(0, sys.argv[1])
import artifact_digest as ad
for root in sys.argv[2:]:
    try: print(ad.digest(root))
    except ad.Refused as r: print("error", r.code)
`
	tools, err := filepath.Abs(filepath.FromSlash("../../spec/tools"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(python, append([]string{"-B", "-c", script, tools}, roots...)...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("reference: %v\n%s", err, stderr.String())
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != len(roots) {
		t.Fatalf("the reference answered %d of %d", len(answers), len(roots))
	}
	return answers
}

// C54: both are kept apart, and a person is told.
func TestCaseCollisionsAreWarnings(t *testing.T) {
	root := t.TempDir()
	write(t, root, "ms/README.md", "1", 0o644)
	write(t, root, "ms/readme.md", "2", 0o644)
	write(t, root, "Straße", "3", 0o644)
	if entries, _ := os.ReadDir(filepath.Join(root, "ms")); len(entries) < 2 {
		t.Skip("this file system keeps only one of the two")
	}
	got := mustTree(t, root, Options{}).Warnings
	want := []Warning{{CodeCaseCollision, "ms/README.md", "ms/readme.md"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestExecutables(t *testing.T) {
	onlyWithModes(t)
	root := t.TempDir()
	write(t, root, "bin/b", "", 0o755)
	write(t, root, "bin/a", "", 0o700)
	write(t, root, "bin/c", "", 0o655)
	if got := mustTree(t, root, Options{}).Executables(); !slices.Equal(got, []string{"bin/a", "bin/b"}) {
		t.Errorf("got %v", got)
	}
}

// One directory of many entries and one very deep path: the two shapes that
// naive walks are slow on.
func TestWideAndDeepTrees(t *testing.T) {
	root := t.TempDir()
	write(t, root, strings.Repeat("d/", maxDepth-1)+"f", "deep", 0o644)
	for i := range 2000 {
		write(t, root, fmt.Sprintf("wide/%d", i), "x", 0o644)
	}
	want := mustTree(t, root, Options{source: rootSource{}, Workers: 1})
	got := mustTree(t, root, Options{Workers: 5})
	if got.Digest != want.Digest || got.Files != 2001 {
		t.Errorf("got %s with %d files, want %s", got.Digest, got.Files, want.Digest)
	}
}
