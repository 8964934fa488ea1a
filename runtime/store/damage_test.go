package store

import (
	"database/sql"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// C75, C79, spec/approval.md 5.5: each of these is refused by its code, and every
// byte in the folder is as it was.
func TestWhatIsNotAWholeStoreIsRefusedAndKept(t *testing.T) {
	whole := wholeStore(t)
	for _, v := range []struct {
		name string
		data []byte
		code string
	}{
		{"cut at 0 bytes", whole[:0], CodeDamaged},
		{"cut at 1 byte", whole[:1], CodeDamaged},
		{"cut at 77 bytes", whole[:77], CodeDamaged},
		{"cut after the header", whole[:100], CodeDamaged},
		{"cut after the first page", whole[:4096], CodeDamaged},
		{"cut at half", whole[:len(whole)/2], CodeDamaged},
		{"cut by one page", whole[:len(whole)-4096], CodeDamaged},
		{"cut by one byte", whole[:len(whole)-1], CodeDamaged},
		{"not a database", []byte(`{"approvals": []}` + string(make([]byte, 5000))), CodeDamaged},
		{"zeros", make([]byte, len(whole)), CodeDamaged},
		{"a database of another program", patched(whole, atApplicationID, 7), CodeDamaged},
		{"a database of nobody", patched(whole, atApplicationID, 0), CodeDamaged},
		{"version 0", patched(whole, atUserVersion, 0), CodeDamaged},
		{"version 99", patched(whole, atUserVersion, 99), CodeNewer},
		{"a schema overwritten with rubbish", overwritten(whole, 100, 3000), CodeDamaged},
		{"a wrong page size", overwritten(whole, atPageSize, 2), CodeDamaged},
	} {
		for _, mustExist := range []bool{false, true} {
			path := newPath(t)
			must(t, os.WriteFile(path, v.data, 0o600))
			before := snapshot(t, filepath.Dir(path))
			_, err := Open(t.Context(), Config{Path: path, MustExist: mustExist})
			wantCode(t, v.name, err, v.code)
			wantSame(t, v.name, filepath.Dir(path), before)
			if v.name != "version 0" && v.name != "a schema overwritten with rubbish" {
				_, err = OpenReadOnly(t.Context(), path)
				wantCode(t, v.name+", to read", err, v.code)
				wantSame(t, v.name+", to read", filepath.Dir(path), before)
			}
		}
	}
}

func TestAMissingStoreIsMadeOnlyWhereThereWasNone(t *testing.T) {
	path := newPath(t)
	_, err := Open(t.Context(), Config{Path: path, MustExist: true})
	wantCode(t, "missing", err, CodeMissing)
	wantFolder(t, path)

	must(t, os.WriteFile(path+walSuffix, []byte("committed, not yet in the store"), 0o600))
	_, err = Open(t.Context(), Config{Path: path})
	wantCode(t, "its log is still there", err, CodeDamaged)
	wantFolder(t, path, "sallyport.db-wal")
}

func TestWhatIsNotAFileIsUnreadable(t *testing.T) {
	path := newPath(t)
	must(t, os.Mkdir(path, 0o700))
	_, err := Open(t.Context(), Config{Path: path})
	wantCode(t, "a folder", err, CodeUnreadable)
	must(t, os.Remove(path))
	if os.Symlink(filepath.Join(t.TempDir(), "nowhere"), path) == nil {
		_, err = Open(t.Context(), Config{Path: path})
		wantCode(t, "a link to nowhere", err, CodeUnreadable)
	}
}

func TestAStoreWithoutPermissionIsUnreadableAndKept(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		return // permissions do not stop them
	}
	path := newPath(t)
	must(t, mustOpen(t, Config{Path: path}).Close())
	must(t, os.Chmod(path, 0))
	_, err := Open(t.Context(), Config{Path: path})
	wantCode(t, "a file of mode 0", err, CodeUnreadable)
	must(t, os.Chmod(path, 0o600))
	whole := mustOpen(t, Config{Path: path, MustExist: true})
	must(t, whole.Check(t.Context()))
	must(t, whole.Close())

	must(t, os.Chmod(path, 0o400))
	db, err := Open(t.Context(), Config{Path: path})
	if err == nil {
		err = db.Update(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec(`INSERT INTO meta (key, value) VALUES ('a', x'01')`)
			return err
		})
		db.Close()
	}
	wantCode(t, "a file that is only readable", err, CodeUnreadable)
	must(t, os.Chmod(filepath.Dir(path), 0o500))
	defer os.Chmod(filepath.Dir(path), 0o700)
	alone, err := OpenReadOnly(t.Context(), path)
	must(t, err)
	must(t, alone.Check(t.Context()))
	must(t, alone.Close())
}

// A store that was not closed has its newest pages in the log; what the log can
// give back is not torn, what it cannot is.
func TestACutStoreBesideALog(t *testing.T) {
	path := newPath(t)
	db := mustOpen(t, Config{Path: path})
	grow(t, db)
	files := snapshot(t, filepath.Dir(path)) // as a kill would leave them
	must(t, db.Close())
	main, log := files["sallyport.db"], files["sallyport.db-wal"]
	if len(log) == 0 {
		t.Fatal("nothing is in the log")
	}

	for _, v := range []struct {
		name      string
		main, log []byte
		code      string
		rows      int
	}{
		{"a kill", main, log, "", 500},
		{"a kill, and the last commit only half written", main, log[:len(log)-1], "", 0},
		{"the log is gone", main, nil, "", 0},
		{"cut by a page that only the store has", main[:len(main)-4096], log, CodeDamaged, 0},
		{"cut at 0 bytes", nil, log, CodeDamaged, 0},
		{"cut at 77 bytes", main[:77], log, CodeDamaged, 0},
		{"a newer version that is only in the log", main, newerInLog(log), CodeNewer, 0},
	} {
		path := newPath(t)
		must(t, os.WriteFile(path, v.main, 0o600))
		must(t, os.WriteFile(path+walSuffix, v.log, 0o600))
		before := snapshot(t, filepath.Dir(path))
		db, err := Open(t.Context(), Config{Path: path, MustExist: true})
		wantCode(t, v.name, err, v.code)
		if err != nil {
			wantSame(t, v.name, filepath.Dir(path), before)
			continue
		}
		if n := count(t, db, "meta"); n != v.rows {
			t.Errorf("%s: %d rows, want %d", v.name, n, v.rows)
		}
		must(t, db.Check(t.Context()))
		must(t, db.Close())
	}
}

func TestDamageThatOpeningDoesNotSeeIsFoundByCheckAndByUse(t *testing.T) {
	path := newPath(t)
	db := mustOpen(t, Config{Path: path})
	grow(t, db)
	must(t, db.Close())
	data, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, overwritten(data, len(data)-3*4096, 3*4096), 0o600))
	db = mustOpen(t, Config{Path: path})
	defer db.Close()
	wantCode(t, "Check", db.Check(t.Context()), CodeDamaged)
	wantCode(t, "View", db.View(t.Context(), func(tx *sql.Tx) error {
		var n int
		return tx.QueryRow(`SELECT sum(length(value)) FROM meta`).Scan(&n)
	}), CodeDamaged)
}

func FuzzOpen(f *testing.F) {
	whole := wholeStore(f)
	f.Add(0, []byte{})
	f.Add(16, []byte{0, 1})
	f.Add(100, []byte("rubbish"))
	f.Fuzz(func(t *testing.T, at int, patch []byte) {
		data := append([]byte(nil), whole...)
		if at < 0 || at >= len(data) {
			return
		}
		n := copy(data[at:], patch)
		path := newPath(t)
		must(t, os.WriteFile(path, data, 0o600))
		before := snapshot(t, filepath.Dir(path))
		db, err := Open(t.Context(), Config{Path: path})
		if err == nil {
			db.Close()
			return
		}
		if n == 0 {
			t.Fatal(err)
		}
		if after := snapshot(t, filepath.Dir(path)); string(after["sallyport.db"]) != string(before["sallyport.db"]) {
			t.Fatal("a refused store has changed")
		}
	})
}

func wholeStore(t testing.TB) []byte {
	t.Helper()
	path := newPath(t)
	db := mustOpen(t, Config{Path: path})
	put(t, db, "a", "1")
	must(t, db.Close())
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func grow(t *testing.T, db *DB) {
	t.Helper()
	must(t, db.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 500)
			INSERT INTO meta (key, value) SELECT i, randomblob(200) FROM n`)
		return err
	}))
}

func patched(data []byte, at int, value uint32) []byte {
	out := append([]byte(nil), data...)
	binary.BigEndian.PutUint32(out[at:], value)
	return out
}

func overwritten(data []byte, at, length int) []byte {
	out := append([]byte(nil), data...)
	for i := range length {
		out[at+i] = 0xa5
	}
	return out
}

// newerInLog sets the version in each first page in the log; nobody gets as far
// as its checksums.
func newerInLog(log []byte) []byte {
	out := append([]byte(nil), log...)
	for at := walHeaderSize; at+frameHeaderSize+4096 <= len(out); at += frameHeaderSize + 4096 {
		if binary.BigEndian.Uint32(out[at:]) == 1 {
			binary.BigEndian.PutUint32(out[at+frameHeaderSize+atUserVersion:], 99)
		}
	}
	return out
}
