package atomicfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestWriteReplacesWithTheExactPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	for _, v := range []struct {
		data string
		perm fs.FileMode
	}{{"a long first version", 0o600}, {"short", 0o644}, {"", 0o666}, {"back", 0o600}} {
		if err := Write(path, []byte(v.data), v.perm); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path, v.data)
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != v.perm {
			t.Errorf("permissions are %v, want %v", info.Mode().Perm(), v.perm)
		}
	}
	wantOnly(t, path)
}

func TestWriteGivesANewInodeAndReadersKeepTheOldBytes(t *testing.T) { // C73
	path := filepath.Join(t.TempDir(), "sallyport")
	must(t, Write(path, []byte("running image"), 0o700))
	before, err := os.Stat(path)
	must(t, err)
	open, err := os.Open(path)
	must(t, err)
	defer open.Close()
	if runtime.GOOS == "windows" {
		open.Close() // Windows refuses to replace an open file, which is as safe
	}
	must(t, Write(path, []byte("next"), 0o700))
	after, err := os.Stat(path)
	must(t, err)
	if os.SameFile(before, after) {
		t.Error("the file was overwritten in place")
	}
	if runtime.GOOS != "windows" {
		if old, err := io.ReadAll(open); err != nil || string(old) != "running image" {
			t.Errorf("the open reader sees %q, %v", old, err)
		}
	}
}

func TestALinkIsReplacedAndItsTargetIsNotTouched(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	folder := t.TempDir()
	target, link := filepath.Join(folder, "target"), filepath.Join(folder, "link")
	must(t, os.WriteFile(target, []byte("theirs"), 0o600))
	must(t, os.Symlink(target, link))
	must(t, Write(link, []byte("ours"), 0o600))
	wantFile(t, target, "theirs")
	wantFile(t, link, "ours")
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link is still a link: %v, %v", info, err)
	}
}

func TestWriteNewRefusesWhatIsThere(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "key")
	must(t, WriteNew(path, []byte("first"), 0o600))
	if err := WriteNew(path, []byte("second"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	wantFile(t, path, "first")
	wantOnly(t, path)
	if runtime.GOOS == "windows" {
		return
	}
	dangling := filepath.Join(folder, "dangling")
	must(t, os.Symlink(filepath.Join(folder, "nowhere"), dangling))
	if err := WriteNew(dangling, []byte("x"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("at a dangling link: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "nowhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link was followed: %v", err)
	}
}

func TestOfConcurrentNewWritersOneSucceeds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	var wins int
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			if err := WriteNew(path, bytes.Repeat([]byte{byte('a' + i)}, 1000), 0o600); err == nil {
				mu.Lock()
				wins++
				mu.Unlock()
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if wins != 1 {
		t.Errorf("%d writers succeeded", wins)
	}
	wantOnly(t, path)
}

func TestConcurrentWritersLeaveAWholeFile(t *testing.T) { // C75
	path := filepath.Join(t.TempDir(), "state.json")
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for n := range 20 {
				if err := Write(path, bytes.Repeat([]byte{byte('a' + i)}, 100+37*n), 0o600); err != nil && runtime.GOOS != "windows" {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	data, err := os.ReadFile(path)
	must(t, err)
	if len(data) < 100 || bytes.Count(data, data[:1]) != len(data) {
		t.Errorf("a mixture: %q", data)
	}
	wantOnly(t, path)
}

// brokenFile is a disk that fails at one step.
type brokenFile struct {
	*os.File
	at string
}

var errDisk = errors.New("no space left on device")

func (f brokenFile) Write(p []byte) (int, error) {
	switch f.at {
	case "write":
		n, _ := f.File.Write(p[:len(p)/2])
		return n, errDisk
	case "short write":
		return f.File.Write(p[:len(p)/2])
	case "lost bytes":
		f.File.Write(p[:len(p)/2])
		return len(p), nil
	}
	return f.File.Write(p)
}

func (f brokenFile) Chmod(m fs.FileMode) error { return f.fail("chmod", f.File.Chmod(m)) }
func (f brokenFile) Sync() error               { return f.fail("sync", f.File.Sync()) }
func (f brokenFile) Close() error              { return f.fail("close", f.File.Close()) }

func (f brokenFile) fail(step string, err error) error {
	if f.at == step {
		return errDisk
	}
	return err
}

func TestAFailureAtAnyStepLeavesTheOldFileAndNothingElse(t *testing.T) { // C77
	for _, step := range []string{"write", "short write", "lost bytes", "chmod", "sync", "close"} {
		path := filepath.Join(t.TempDir(), "state.json")
		must(t, Write(path, []byte("old and good"), 0o600))
		create := func(name string) (file, error) {
			f, err := createFile(name)
			if err != nil {
				return nil, err
			}
			return brokenFile{f.(*os.File), step}, nil
		}
		err := write(create, replace, path, []byte("new and longer than the old one"), 0o600)
		if err == nil {
			t.Errorf("%s: no error", step)
		}
		wantFile(t, path, "old and good")
		wantOnly(t, path)
	}
}

func TestARefusedRenameLeavesNothingBehind(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "taken")
	must(t, os.MkdirAll(filepath.Join(path, "inside"), 0o700))
	err := Write(path, []byte("x"), 0o600)
	if err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	if bytes.Contains([]byte(err.Error()), []byte(folder)) {
		t.Errorf("the error tells an absolute path: %v", err)
	}
	wantOnly(t, path)
	if err := Write(filepath.Join(folder, "no", "such", "x"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestErrorsKeepTheirCause(t *testing.T) {
	err := pathless(&fs.PathError{Op: "write", Path: "/home/someone/x", Err: syscall.ENOSPC})
	if !errors.Is(err, syscall.ENOSPC) || bytes.Contains([]byte(err.Error()), []byte("someone")) {
		t.Errorf("got %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), got, err, want)
	}
}

// wantOnly fails if something but path is in its folder.
func wantOnly(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	for _, entry := range entries {
		if entry.Name() != filepath.Base(path) {
			t.Errorf("%s was left behind", entry.Name())
		}
	}
}

func TestSweepTakesOldTemporaryFilesOnly(t *testing.T) {
	folder := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{".a.json.ABCDEFGH23.tmp", ".young.ABCDEFGH23.tmp", ".a.tmp", "a.json", ".a.json.abc.tmp"} {
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, nil, 0o600))
		if name != ".young.ABCDEFGH23.tmp" {
			must(t, os.Chtimes(path, old, old))
		}
	}
	// What a Write is killed with is named as Sweep expects.
	create := func(name string) (file, error) {
		must(t, os.WriteFile(name, nil, 0o600))
		must(t, os.Chtimes(name, old, old))
		return nil, errDisk
	}
	if err := write(create, replace, filepath.Join(folder, "b"), nil, 0o600); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	must(t, Sweep(folder, time.Minute))
	entries, err := os.ReadDir(folder)
	must(t, err)
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if want := ".a.json.abc.tmp .a.tmp .young.ABCDEFGH23.tmp a.json"; strings.Join(left, " ") != want {
		t.Errorf("left are %q", left)
	}
}
