package install

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sallyport/runtime/artifact"
)

// repository is a git repository for one test.
type repository struct {
	t    *testing.T
	path string
}

func newRepository(t *testing.T, format string) repository {
	t.Helper()
	r := repository{t, filepath.Join(t.TempDir(), "repo")}
	must(t, os.Mkdir(r.path, 0o755))
	r.git("init", "-q", "--object-format="+format)
	r.write("plugin.json", manifestJSON)
	r.write("text", "one\n")
	return r
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = r.path
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+nullDevice)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.path, name)
	must(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(r.t, os.WriteFile(path, []byte(text), 0o644))
}

// commit commits everything and returns the hash.
func (r repository) commit() string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "x")
	return r.git("rev-parse", "HEAD")
}

func TestACommitIsItsObjectsAndNothingElse(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			r := newRepository(t, format)
			r.write("sub/$Format:%H$.txt", "$Format:%H$ $Id$\n")
			r.write(".gitattributes", "*.txt export-subst ident eol=crlf filter=evil\nplugin.json export-ignore\n")
			r.write("run", "#!")
			must(t, os.Chmod(filepath.Join(r.path, "run"), 0o755))
			must(t, os.Symlink("run", filepath.Join(r.path, "link")))
			hash := r.commit()
			r.write("text", "not committed")
			r.write("untracked", "x")
			i := newInstaller(t)
			staged, err := i.Stage(t.Context(), source(t, r.path+"#"+hash), nil)
			must(t, err)
			if read(t, staged.Dir, "text") != "one\n" || read(t, staged.Dir, "sub", "$Format:%H$.txt") != "$Format:%H$ $Id$\n" {
				t.Error("the bytes are not the commit's")
			}
			if _, err := os.Lstat(filepath.Join(staged.Dir, "untracked")); err == nil {
				t.Error("a file that is not in the commit is there")
			}
			if target, _ := os.Readlink(filepath.Join(staged.Dir, "link")); target != "run" {
				t.Errorf("the link leads to %q", target)
			}
			if info, _ := os.Stat(filepath.Join(staged.Dir, "run")); info.Mode().Perm() != 0o755 && !onWindows() {
				t.Errorf("run has %v", info.Mode())
			}
			if staged.Origin.Commit != hash || staged.Origin.Kind != Git {
				t.Errorf("it comes from %+v", staged.Origin)
			}
			again, err := i.Stage(t.Context(), source(t, "git+file://"+filepath.ToSlash(r.path)+"#"+hash), nil)
			must(t, err)
			if again.Digest != staged.Digest {
				t.Error("the same commit has two digests")
			}
		})
	}
}

// Everything in a repository that could run a program, at once. Each would make a
// file.
func TestARepositoryRunsNothing(t *testing.T) {
	r := newRepository(t, "sha1")
	proof := filepath.Join(t.TempDir(), "ran")
	touch := "touch '" + proof + "'"
	r.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
	r.write("large", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
	hash := r.commit()
	for _, setting := range [][2]string{
		{"filter.evil.smudge", touch}, {"filter.evil.clean", touch}, {"filter.evil.process", touch}, {"filter.evil.required", "true"},
		{"diff.evil.textconv", touch}, {"diff.external", touch}, {"core.fsmonitor", touch}, {"core.sshCommand", touch}, {"core.pager", touch},
		{"core.editor", touch}, {"core.askPass", touch}, {"core.alternateRefsCommand", touch}, {"uploadpack.packObjectsHook", touch},
		{"alias.cat-file", "!" + touch}, {"credential.helper", "!" + touch}, {"gpg.program", touch}, {"tar.tar.gz.command", touch},
		{"core.hooksPath", filepath.Join(r.path, "hooks")}, {"pager.cat-file", touch}, {"trace2.eventTarget", proof}, {"protocol.ext.allow", "always"},
		{"remote.origin.url", "ext::sh -c \"" + touch + "\""}, {"remote.origin.promisor", "true"}, {"remote.origin.partialclonefilter", "blob:none"},
		{"extensions.partialClone", "origin"}, {"core.repositoryFormatVersion", "1"},
	} {
		r.git("config", setting[0], setting[1])
	}
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"} {
		for _, dir := range []string{"hooks", ".git/hooks"} {
			r.write(dir+"/"+hook, "#!/bin/sh\n"+touch+"\n")
			must(t, os.Chmod(filepath.Join(r.path, dir, hook), 0o755))
		}
	}
	os.Remove(proof) // git config above may have told trace2 of itself
	i := newInstaller(t)
	staged, err := i.Stage(t.Context(), source(t, r.path+"#"+hash), nil)
	must(t, err)
	if !slices.Equal(staged.Warnings, []Warning{{Code: "lfs-pointer", Path: "large"}}) {
		t.Errorf("got %+v", staged.Warnings)
	}
	must(t, staged.Discard())
	// An object that is missing would be fetched, by the program that the remote is.
	tree := strings.Fields(r.catFile(hash))[1]
	blob := strings.Fields(r.lsTree(tree, "text"))[2]
	must(t, os.Remove(r.object(blob)))
	refused(t, i, source(t, r.path+"#"+hash), "git-object-missing")
	if _, err := os.Lstat(proof); err == nil {
		t.Error("a program of the repository's ran")
	}
}

func (r repository) catFile(id string) string { return r.plain("cat-file", "-p", id) }

func (r repository) lsTree(tree, name string) string { return r.plain("ls-tree", tree, name) }

// plain runs git although its configuration is hostile.
func (r repository) plain(args ...string) string {
	return r.git(append([]string{"-c", "alias.cat-file=", "-c", "core.pager=cat", "-c", "core.fsmonitor=false", "--no-pager"}, args...)...)
}

func (r repository) object(id string) string {
	return filepath.Join(r.path, ".git", "objects", id[:2], id[2:])
}

func TestReplacedAndDamagedObjectsAreNoticed(t *testing.T) {
	r := newRepository(t, "sha1")
	hash := r.commit()
	good := r.git("rev-parse", "HEAD:text")
	r.write("text", "evil\n")
	evil := r.git("hash-object", "-w", "text")
	i := newInstaller(t)
	r.git("replace", good, evil)
	staged, err := i.Stage(t.Context(), source(t, r.path+"#"+hash), nil)
	must(t, err)
	if read(t, staged.Dir, "text") != "one\n" {
		t.Error("an object was replaced by another")
	}
	must(t, staged.Discard())
	// The file of one object under the name of the other.
	data, err := os.ReadFile(r.object(evil))
	must(t, err)
	must(t, os.Remove(r.object(good)))
	must(t, os.WriteFile(r.object(good), data, 0o444))
	refused(t, i, source(t, r.path+"#"+hash), "git-object-damaged")
}

func TestCommitsThatAreRefused(t *testing.T) {
	r := newRepository(t, "sha1")
	hash := r.commit()
	i := newInstaller(t)
	at := func(id string) Source { return Source{Kind: Git, Path: r.path, Commit: id} }
	refused(t, i, at(strings.Repeat("0", 40)), "git-object-missing")
	refused(t, i, at(r.git("rev-parse", "HEAD:text")), "git-not-a-commit")
	refused(t, i, at(r.git("rev-parse", "HEAD^{tree}")), "git-not-a-commit")
	r.git("tag", "-a", "-m", "x", "v1")
	refused(t, i, at(r.git("rev-parse", "v1")), "git-not-a-commit")
	refused(t, i, Source{Kind: Git, Path: t.TempDir(), Commit: hash}, "git-not-a-repository")
	refused(t, i, Source{Kind: Git, Path: filepath.Join(t.TempDir(), "gone"), Commit: hash}, "git-failed")
	sub := filepath.Join(r.path, "sub")
	must(t, os.Mkdir(sub, 0o755))
	refused(t, i, Source{Kind: Git, Path: sub, Commit: hash}, "git-not-a-repository")

	r.git("update-index", "--add", "--cacheinfo", "160000,"+hash+",module")
	r.git("commit", "-q", "-m", "x")
	if refusal := refused(t, i, at(r.git("rev-parse", "HEAD")), "git-submodule"); refusal.Path != "module" {
		t.Errorf("it names %q", refusal.Path)
	}
	i.config.Environ = []string{"PATH=/nonexistent"}
	refused(t, i, at(hash), "helper-missing")
}

// Trees that git itself would not make.
func TestHostileTreesOfGit(t *testing.T) {
	tests := []struct{ name, entries, code string }{
		{"a step out", "100644 ..|", "entry-traversal"},
		{"a slash in a name", "100644 a/../../b|", "git-object-damaged"},
		{"one name twice", "100644 a|100644 a|", "entry-duplicate"},
		{"a link and a folder of one name", "120000 a|40000 a|", "entry-duplicate"},
		{"an unknown mode", "777777 a|", "git-object-damaged"},
		{"a link that leaves", "120000 a|", artifact.CodeSymlinkEscape},
		{"a backslash", `100644 ..\evil|`, "entry-backslash"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRepository(t, "sha1")
			r.commit()
			r.write("target", "../outside")
			target, empty := r.git("hash-object", "-w", "target"), r.git("rev-parse", "HEAD^{tree}")
			var tree bytes.Buffer
			for entry := range strings.SplitSeq(strings.TrimSuffix(tt.entries, "|"), "|") {
				id := target
				if strings.HasPrefix(entry, "40000") {
					id = empty
				}
				tree.WriteString(entry)
				tree.WriteByte(0)
				tree.Write(unhex(t, id))
			}
			tree.WriteString("100644 plugin.json\x00")
			tree.Write(unhex(t, r.git("rev-parse", "HEAD:plugin.json")))
			commit := r.git("commit-tree", "-m", "x", r.writeObject("tree", tree.Bytes()))
			i := newInstaller(t)
			refused(t, i, Source{Kind: Git, Path: r.path, Commit: commit}, tt.code)
			wantNotThere(t, filepath.Join(i.config.Staging, "evil"))
		})
	}
}

func wantNotThere(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s is there", filepath.Base(path))
	}
}

// writeObject writes an object that git's own commands would refuse.
func (r repository) writeObject(kind string, data []byte) string {
	r.t.Helper()
	cmd := exec.Command("git", "hash-object", "-t", kind, "--literally", "--stdin")
	cmd.Dir, cmd.Stdin = r.path, bytes.NewReader(data)
	out, err := cmd.Output()
	must(r.t, err)
	id := strings.TrimSpace(string(out))
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, err = w.Write(append([]byte(kind+" "+itoa(len(data))+"\x00"), data...))
	must(r.t, errors.Join(err, w.Close(), os.MkdirAll(filepath.Dir(r.object(id)), 0o755)))
	if err := os.WriteFile(r.object(id), packed.Bytes(), 0o444); err != nil && !errors.Is(err, os.ErrExist) {
		r.t.Fatal(err)
	}
	return id
}

func TestLimitsOfACommit(t *testing.T) {
	r := newRepository(t, "sha1")
	r.write("large", strings.Repeat("x", 1<<20))
	hash := r.commit()
	for code, limits := range map[string]artifact.Limits{"file-too-large": {FileBytes: 1000}, "tree-too-large": {TreeBytes: 1000}, "too-many-entries": {Entries: 2}} {
		i := newInstaller(t)
		i.config.Limits = limits
		refused(t, i, source(t, r.path+"#"+hash), code)
	}
}

// A tree that holds itself many times over: some objects that would be millions of
// files.
func TestATreeOfTrees(t *testing.T) {
	r := newRepository(t, "sha1")
	r.commit()
	id, mode := r.git("rev-parse", "HEAD:text"), "100644"
	for range 8 {
		var tree bytes.Buffer
		for n := range 10 {
			tree.WriteString(mode + " " + itoa(n) + "\x00")
			tree.Write(unhex(t, id))
		}
		id, mode = r.writeObject("tree", tree.Bytes()), "40000"
	}
	i := newInstaller(t)
	i.config.Limits.Entries = 2000
	refused(t, i, Source{Kind: Git, Path: r.path, Commit: r.git("commit-tree", "-m", "x", id)}, "too-many-entries")
}

// Lists of files that lie one in another are held together while the inmost is read:
// each is allowed, and all of them are not.
func TestLargeListsOneInAnother(t *testing.T) {
	r := newRepository(t, "sha1")
	r.commit()
	text := unhex(t, r.git("rev-parse", "HEAD:text"))
	inner := ""
	for range 3 {
		var tree bytes.Buffer
		if inner != "" { // first, so that it is read while the rest is still to come
			tree.WriteString("40000 0\x00")
			tree.Write(unhex(t, inner))
		}
		for n := 0; tree.Len() < 14<<20; n++ {
			tree.WriteString("100644 f" + itoa(n) + strings.Repeat("x", 200) + "\x00")
			tree.Write(text)
		}
		inner = r.writeObject("tree", tree.Bytes())
	}
	refused(t, newInstaller(t), Source{Kind: Git, Path: r.path, Commit: r.git("commit-tree", "-m", "x", inner)}, "too-many-entries")
}

func TestACancelledCommitLeavesNothing(t *testing.T) {
	r := newRepository(t, "sha1")
	for n := range 300 {
		r.write("d/"+itoa(n), "text")
	}
	hash := r.commit()
	i := newInstaller(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := i.Stage(ctx, source(t, r.path+"#"+hash), func(Step) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantEmpty(t, i.config.Staging)
}

func unhex(t *testing.T, id string) []byte {
	t.Helper()
	data, err := hex.DecodeString(id)
	must(t, err)
	return data
}

func itoa(n int) string { return strconv.Itoa(n) }
