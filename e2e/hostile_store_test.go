//go:build linux

package e2e

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite"
)

// approvedFort is a home with one plugin that was approved and called.
func approvedFort(t testing.TB) *fort {
	t.Helper()
	f := newFort(t)
	f.addServer("fake", "polite")
	f.approve("fake")
	f.ok("call", "fake", "go")
	return f
}

func (f *fort) database() string { return f.data("sallyport.db") }

// stored is every file of the database's folder that holds what was decided, and
// the keys.
func (f *fort) stored() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	for _, dir := range []string{f.data(), f.state("keys")} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if strings.HasPrefix(name, "sallyport.db") || dir != f.data() {
				all[name] = f.bytesOf(filepath.Join(dir, name))
			}
		}
	}
	return all
}

// bytesOf reads what only root or a change of mode can; "" for what is no file.
func (f *fort) bytesOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		mode := info.Mode()
		os.Chmod(path, 0o600)
		raw, err = os.ReadFile(path)
		os.Chmod(path, mode)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return string(raw)
}

// A store that cannot be read: nothing starts, nothing is written, the operator is
// told what to do (spec/approval.md 5.5).
func TestAStoreThatCannotBeRead(t *testing.T) {
	for _, row := range []struct {
		what, code string
		harm       func(f *fort)
	}{
		{"cut in half", "store-damaged", func(f *fort) { f.resize(0.5) }},
		{"cut to nothing", "store-damaged", func(f *fort) { f.resize(0) }},
		{"garbage", "store-damaged", func(f *fort) { f.overwrite(0, bytes.Repeat([]byte("garbage!"), 8192)) }},
		{"of another program", "store-damaged", func(f *fort) { f.overwrite(68, []byte("else")) }},
		{"of a newer version", "store-newer", func(f *fort) { f.overwrite(60, binary.BigEndian.AppendUint32(nil, 9999)) }},
		{"gone", "store-missing", func(f *fort) { f.remove(f.database()) }},
		{"a folder", "store-unreadable", func(f *fort) { f.remove(f.database()); f.mkdir(filepath.Join(f.database(), "in")) }},
		{"a FIFO", "store-unreadable", func(f *fort) { f.remove(f.database()); f.pipe(f.database()) }},
		{"not to be read", "store-unreadable", func(f *fort) { f.asSomebody(); f.mode(f.database(), 0) }},
	} {
		t.Run(row.what, func(t *testing.T) {
			f := approvedFort(t)
			row.harm(f)
			before, starts := f.stored(), f.starts("fake")
			f.wantNothing(row.code)
			s := f.serve()
			f.wantNothing(row.code)
			f.wantUnhealthy(s, row.code)
			s.stop()
			if f.starts("fake") != starts || len(f.children()) != 0 {
				t.Error("something was started")
			}
			if after := f.stored(); !maps.Equal(before, after) {
				t.Errorf("something was written: %v before, %v after", sizes(before), sizes(after))
			}
		})
	}
}

// wantNothing tries what would start or decide something.
func (f *fort) wantNothing(code string) {
	f.t.Helper()
	for _, args := range [][]string{
		{"call", "fake", "go"}, {"approve", "fake", "--yes", "--all-tools"}, {"enable", "fake"}, {"plugins", "list"}, {"clients", "add", "claude"},
	} {
		got := f.run(args...)
		if got.code != 1 || !strings.Contains(got.stderr, code+":") || !strings.Contains(got.stderr, "next: ") {
			f.t.Errorf("sallyport %v: want %s and what to do, got %d: %s", args, code, got.code, got.stderr)
		}
		if strings.Contains(got.stderr, f.dir) {
			f.t.Errorf("sallyport %v tells a path: %s", args, got.stderr)
		}
	}
}

func (f *fort) wantUnhealthy(s *sidecar, code string) {
	f.t.Helper()
	status, body := s.ask("GET", "/api/desktop-health")
	var answer struct {
		OK       bool
		Problems []string
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != 503 || answer.OK || !slices.Contains(answer.Problems, code) {
		f.t.Errorf("health answers %d: %s", status, body)
	}
	if status, body := s.ask("GET", "/v1/plugins"); status != 503 || !bytes.Contains(body, []byte(code)) {
		f.t.Errorf("/v1/plugins answers %d: %s", status, body)
	}
	if got := f.run("health"); got.code != 1 {
		f.t.Errorf("health exits with %d", got.code)
	}
	if got := f.run("doctor"); got.code == 0 || !strings.Contains(got.stdout, "next: ") {
		f.t.Errorf("doctor exits with %d: %s", got.code, got.stdout)
	}
}

func sizes(files map[string]string) map[string]int {
	out := map[string]int{}
	for name, text := range files {
		out[name] = len(text)
	}
	return out
}

// Records that do not count: the store opens, the approval does not.
func TestRecordsThatWereChangedFromOutside(t *testing.T) {
	body := func(old, now string) func(*fort) {
		return func(f *fort) {
			f.sql("UPDATE sealed SET body = CAST(replace(CAST(body AS TEXT), '" + old + "', '" + now + "') AS BLOB) WHERE kind = 'approval'")
		}
	}
	for _, row := range []struct {
		what, code string
		failing    bool
		harm       func(f *fort)
	}{
		{"a word of the record", "approval-tampered", false, body(`"polite"`, `"endless"`)},
		{"its seal", "approval-tampered", false, func(f *fort) { f.sql("UPDATE sealed SET seal = randomblob(32) WHERE kind = 'approval'") }},
		{"its epoch", "approval-tampered", false, func(f *fort) { f.sql("UPDATE sealed SET epoch = epoch + 1 WHERE kind = 'approval'") }},
		{"its name", "approval-tampered", false, func(f *fort) { f.sql("UPDATE sealed SET id = 'other/main' WHERE kind = 'approval'") }},
		{"its removal", "approval-tampered", false, func(f *fort) { f.sql("DELETE FROM sealed WHERE kind = 'approval'") }},
		{"the list", "approval-rolled-back", true, func(f *fort) { f.sql("UPDATE sealed SET body = CAST('{}' AS BLOB) WHERE kind = 'list'") }},
		{"everything", "approval-rolled-back", true, func(f *fort) { f.sql("DELETE FROM sealed") }},
		{"an older copy", "approval-rolled-back", true, func(f *fort) {
			older := f.content(f.database())
			f.ok("revoke", "fake")
			f.overwriteAll(older)
		}},
		{"the copy of another home", "approval-rolled-back", true, func(f *fort) {
			other := approvedFort(f.t)
			f.overwriteAll(other.content(other.database()))
		}},
		{"the sealed head", "approval-rolled-back", true, func(f *fort) { f.remove(f.state("keys", "head.json")) }},
		{"the key", "seal-key-missing", true, func(f *fort) { f.remove(f.state("keys", "seal.key")) }},
	} {
		t.Run(row.what, func(t *testing.T) {
			f := approvedFort(t)
			row.harm(f)
			starts := f.starts("fake")
			one := f.connector("fake/main")
			if one.State == "enabled" || one.Reason != row.code && row.what != "an older copy" {
				t.Errorf("it is %+v, want %s", one, row.code)
			}
			f.refused(row.code, "call", "fake", "go")
			s := f.serve()
			f.refused(row.code, "call", "fake", "go")
			status, body := s.ask("GET", "/api/desktop-health")
			if failing := status == 503; failing != row.failing {
				t.Errorf("health answers %d: %s", status, body)
			}
			_, told := s.ask("GET", "/v1/status")
			if !bytes.Contains(told, []byte("approval-")) && !bytes.Contains(told, []byte("seal-key-")) {
				t.Errorf("health does not tell: %s", told)
			}
			if f.starts("fake") != starts || len(f.children()) != 0 {
				t.Error("something was started")
			}
		})
	}
}

// The approval can be given again where only its record was changed.
func TestATamperedApprovalCanBeGivenAgain(t *testing.T) {
	f := approvedFort(t)
	f.sql("UPDATE sealed SET seal = randomblob(32) WHERE kind = 'approval'")
	f.refused("approval-tampered", "call", "fake", "go")
	f.approve("fake")
	f.ok("call", "fake", "go")
	f.ok("audit", "verify")
	if n := f.count("SELECT count(*) FROM sealed WHERE kind = 'kept'"); n != 1 {
		t.Errorf("%d records are kept for inspection", n)
	}
}

// C77: on a disk that is really full nothing new starts, nothing is lost, and all
// works again when there is room.
func TestAFullDisk(t *testing.T) {
	f := newFort(t)
	f.addServer("fake", "polite")
	f.mkdir(f.data())
	if err := unix.Mount("tmpfs", f.data(), "tmpfs", 0, "size=16m"); err != nil {
		t.Logf("no tmpfs here (%v)", err)
		return
	}
	t.Cleanup(func() {
		f.nothingRuns()
		if err := unix.Unmount(f.data(), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	f.approve("fake")
	s := f.serve()
	f.ok("call", "fake", "go")
	f.fill()
	f.write("late", "notes.txt", nil, 0o644)
	f.addServer("late", "polite")
	f.ok("plugins", "scan")
	if got := f.run("approve", "late", "--yes", "--all-tools"); got.code != 1 || got.stderr == "" {
		t.Errorf("approved on a full disk: %+v", got)
	}
	if f.starts("late") != 0 {
		t.Error("something was started on a full disk")
	}
	s.kill()
	if got := f.run("call", "fake", "go"); got.code == 0 {
		t.Error("a start that could not be recorded took place")
	}
	f.remove(f.data("filling"))
	f.wantStanding("fake/main", "enabled", "")
	f.ok("call", "fake", "go")
	f.approve("late")
	f.ok("audit", "verify")
}

// fill writes until the data folder's disk is full.
func (f *fort) fill() {
	f.t.Helper()
	file, err := os.Create(f.data("filling"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for {
			if _, err := file.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
}

func (f *fort) resize(share float64) {
	f.t.Helper()
	info, err := os.Stat(f.database())
	if err == nil {
		err = os.Truncate(f.database(), int64(float64(info.Size())*share))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fort) overwrite(at int64, text []byte) {
	f.t.Helper()
	file, err := os.OpenFile(f.database(), os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteAt(text, at)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fort) overwriteAll(text []byte) {
	f.t.Helper()
	if err := os.WriteFile(f.database(), text, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fort) remove(path string) {
	f.t.Helper()
	if err := os.Remove(path); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fort) mode(path string, mode os.FileMode) {
	f.t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fort) pipe(path string) {
	f.t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// sql changes the database from outside.
func (f *fort) sql(statement string) {
	f.t.Helper()
	db, err := sql.Open("sqlite", f.database())
	if err == nil {
		_, err = db.Exec(statement)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fort) count(query string) (n int) {
	f.t.Helper()
	db, err := sql.Open("sqlite", f.database())
	if err == nil {
		err = errors.Join(db.QueryRow(query).Scan(&n), db.Close())
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

func (f *fort) content(path string) []byte {
	f.t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	return raw
}

// asSomebody runs further commands as an ordinary user where the test is root, for
// whom modes mean nothing.
func (f *fort) asSomebody() {
	f.t.Helper()
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	program := filepath.Join(f.dir, "sallyport")
	if err := os.WriteFile(program, f.content(f.bin), 0o755); err != nil {
		f.t.Fatal(err)
	}
	script := filepath.Join(f.dir, "as-nobody")
	text := "#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups " + program + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		f.t.Fatal(err)
	}
	err := filepath.WalkDir(f.dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.home.bin = script
}

// What the message says to do where the store is gone works, and trusts nothing.
func TestBeginningAnewAfterTheStoreIsGone(t *testing.T) {
	f := approvedFort(t)
	f.remove(f.database())
	f.refused("store-missing", "plugins", "list")
	if err := os.Rename(f.state("keys"), filepath.Join(f.dir, "old-keys")); err != nil {
		t.Fatal(err)
	}
	f.wantStanding("fake/main", "approval_required", "never-approved")
	f.refused("never-approved", "call", "fake", "go")
}
