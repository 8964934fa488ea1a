package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sallyport/internal/coded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAFreshStoreHasTheSchemaAndIsPrivate(t *testing.T) {
	path := newPath(t)
	db := mustOpen(t, Config{Path: path})
	for _, table := range []string{"sealed", "decision_journal", "meta", "audit"} {
		if n := count(t, db, table); n != 0 {
			t.Errorf("%s has %d rows", table, n)
		}
	}
	put(t, db, "a", "1")
	if runtime.GOOS != "windows" {
		for _, name := range folderOf(t, path) {
			info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
			must(t, err)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has permissions %v", name, info.Mode().Perm())
			}
		}
	}
	must(t, db.Close())
	wantFolder(t, path, "sallyport.db")
}

func TestWhatWasCommittedIsThereAfterReopening(t *testing.T) {
	path := newPath(t)
	db := mustOpen(t, Config{Path: path})
	put(t, db, "a", "1")
	must(t, db.Close())
	db = mustOpen(t, Config{Path: path, MustExist: true})
	defer db.Close()
	if got := get(t, db, "a"); got != "1" {
		t.Errorf("got %q", got)
	}
	must(t, db.Check(t.Context()))
}

func TestPathsWithURICharacters(t *testing.T) {
	name := "a b%20c#d&e'é.db"
	if runtime.GOOS != "windows" {
		name = "a?mode=memory" + name
	}
	path := filepath.Join(t.TempDir(), name)
	db := mustOpen(t, Config{Path: path})
	put(t, db, "a", "1")
	must(t, db.Close())
	wantFolder(t, path, name)
}

func TestSyncAndKeysAreOn(t *testing.T) {
	db := mustOpen(t, Config{Path: newPath(t)})
	defer db.Close()
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000", "fullfsync": "1",
	} {
		var got string
		must(t, db.writer.QueryRow("PRAGMA "+pragma).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

func TestAnUpdateHappensWholeOrNotAtAll(t *testing.T) {
	db := mustOpen(t, Config{Path: newPath(t)})
	defer db.Close()
	mine := errors.New("changed my mind")
	err := db.Update(t.Context(), func(tx *sql.Tx) error {
		insert(t, tx, "a", "1")
		return mine
	})
	if !errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic was swallowed")
			}
		}()
		db.Update(t.Context(), func(tx *sql.Tx) error {
			insert(t, tx, "a", "1")
			panic("boom")
		})
	}()
	if n := count(t, db, "meta"); n != 0 {
		t.Errorf("%d rows are there", n)
	}
	put(t, db, "a", "1") // and the writer is free again
}

func TestAContextEndsTheWaitForTheWriterButNoCommit(t *testing.T) {
	db := mustOpen(t, Config{Path: newPath(t)})
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Update(ctx, func(tx *sql.Tx) error {
		waiting, stop := context.WithCancel(t.Context())
		stop()
		if err := db.Update(waiting, func(*sql.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("a second writer got in: %v", err)
		}
		insert(t, tx, "a", "1")
		cancel()
		return nil
	})
	must(t, err)
	if got := get(t, db, "a"); got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestUpdatesAreOneAfterTheOther(t *testing.T) {
	db := mustOpen(t, Config{Path: newPath(t)})
	defer db.Close()
	put(t, db, "n", "0")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 10 {
				err := db.Update(t.Context(), func(tx *sql.Tx) error {
					_, err := tx.Exec(`UPDATE meta SET value = CAST(CAST(CAST(value AS TEXT) + 1 AS TEXT) AS BLOB) WHERE key = 'n'`)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := get(t, db, "n"); got != "80" {
		t.Errorf("got %s, updates were lost", got)
	}
}

func TestAViewSeesOneStateAndChangesNothing(t *testing.T) {
	db := mustOpen(t, Config{Path: newPath(t)})
	defer db.Close()
	put(t, db, "a", "1")
	must(t, db.View(t.Context(), func(tx *sql.Tx) error {
		before := scan(t, tx, "a")
		must(t, db.Update(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec(`UPDATE meta SET value = x'32'`)
			return err
		}))
		if after := scan(t, tx, "a"); before != after {
			t.Errorf("the view went from %s to %s", before, after)
		}
		if _, err := tx.Exec(`DELETE FROM meta`); err == nil {
			t.Error("a view deleted")
		}
		return nil
	}))
	if got := get(t, db, "a"); got != "2" {
		t.Errorf("got %s", got)
	}
}

func TestAnotherProcessMayHoldTheLockForAWhileOnly(t *testing.T) {
	path := newPath(t)
	first, second := mustOpen(t, Config{Path: path}), mustOpen(t, Config{Path: path})
	defer first.Close()
	defer second.Close()
	_, err := second.writer.Exec("PRAGMA busy_timeout = 10")
	must(t, err)
	must(t, first.Update(t.Context(), func(tx *sql.Tx) error {
		insert(t, tx, "a", "1")
		wantCode(t, "beside a long writer", second.Update(t.Context(), func(*sql.Tx) error { return nil }), CodeBusy)
		return nil
	}))
	put(t, second, "b", "2")
}

func TestManyOpenersMakeOneStore(t *testing.T) {
	path := newPath(t)
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			db, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			put(t, db, fmt.Sprint(i), "x")
		})
	}
	group.Wait()
	db := mustOpen(t, Config{Path: path})
	if n := count(t, db, "meta"); n != 6 {
		t.Errorf("%d of 6 rows are there", n)
	}
	must(t, db.Close())
	wantFolder(t, path, "sallyport.db")
}

func TestWhatAKilledCreateLeftIsRemovedByTheNext(t *testing.T) {
	path := newPath(t)
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{path + ".ABCDEFGHIJ.new", path + ".ABCDEFGHIJ.new-wal", path + ".before-v2", path + ".young.....new"} {
		must(t, os.WriteFile(name, []byte("x"), 0o600))
		if !strings.Contains(name, "young") {
			must(t, os.Chtimes(name, old, old))
		}
	}
	must(t, mustOpen(t, Config{Path: path}).Close())
	wantFolder(t, path, "sallyport.db", "sallyport.db.before-v2", "sallyport.db.young.....new")
}

func TestOpenReadOnly(t *testing.T) {
	path := newPath(t)
	_, err := OpenReadOnly(t.Context(), path)
	wantCode(t, "no store", err, CodeMissing)
	wantFolder(t, path)
	writer := mustOpen(t, Config{Path: path})
	put(t, writer, "a", "1")

	beside, err := OpenReadOnly(t.Context(), path)
	must(t, err)
	if got := get(t, beside, "a"); got != "1" {
		t.Errorf("beside a writer it sees %q", got)
	}
	wantCode(t, "Update", beside.Update(t.Context(), func(*sql.Tx) error { return nil }), CodeReadOnly)
	must(t, beside.Close())
	must(t, writer.Close())

	before := hash(t, path)
	alone, err := OpenReadOnly(t.Context(), path)
	must(t, err)
	must(t, alone.Check(t.Context()))
	if got := get(t, alone, "a"); got != "1" {
		t.Errorf("alone it sees %q", got)
	}
	must(t, alone.Close())
	if hash(t, path) != before {
		t.Error("reading changed the file")
	}
}

func TestErrorsTellNoAbsolutePath(t *testing.T) {
	path := newPath(t)
	must(t, os.Mkdir(path, 0o700))
	_, err := Open(t.Context(), Config{Path: path})
	if err == nil || strings.Contains(err.Error(), filepath.Dir(path)) {
		t.Errorf("got %v", err)
	}
	_, err = Open(t.Context(), Config{Path: filepath.Join(path, "no", "such", "folder")})
	if err == nil || strings.Contains(err.Error(), filepath.Dir(path)) {
		t.Errorf("got %v", err)
	}
	wantCode(t, "no folder", err, CodeUnreadable)
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "sallyport.db") }

func mustOpen(t testing.TB, cfg Config) *DB {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	db, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatalf("%v: %v", err, errors.Unwrap(err))
	}
	return db
}

func insert(t testing.TB, tx *sql.Tx, key, value string) {
	t.Helper()
	if _, err := tx.Exec(`INSERT INTO meta (key, value) VALUES (?, ?)`, key, []byte(value)); err != nil {
		t.Error(err)
	}
}

func put(t testing.TB, db *DB, key, value string) {
	t.Helper()
	if err := db.Update(context.Background(), func(tx *sql.Tx) error { insert(t, tx, key, value); return nil }); err != nil {
		t.Error(err)
	}
}

func scan(t testing.TB, tx *sql.Tx, key string) (value string) {
	t.Helper()
	if err := tx.QueryRow(`SELECT value FROM meta WHERE key = ?`, key).Scan(&value); err != nil {
		t.Error(err)
	}
	return value
}

func get(t testing.TB, db *DB, key string) (value string) {
	t.Helper()
	if err := db.View(context.Background(), func(tx *sql.Tx) error { value = scan(t, tx, key); return nil }); err != nil {
		t.Error(err)
	}
	return value
}

func count(t testing.TB, db *DB, table string) (n int) {
	t.Helper()
	err := db.View(context.Background(), func(tx *sql.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM " + table).Scan(&n)
	})
	if err != nil {
		t.Error(err)
	}
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

func wantCode(t *testing.T, name string, err error, code string) {
	t.Helper()
	if coded.Of(err) != code {
		t.Errorf("%s: got code %q (%v), want %s", name, coded.Of(err), err, code)
	}
}

func hash(t *testing.T, path string) [32]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return sha256.Sum256(data)
}

func folderOf(t *testing.T, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func wantFolder(t *testing.T, path string, want ...string) {
	t.Helper()
	if got := folderOf(t, path); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

// snapshot is every file of a folder with its bytes.
func snapshot(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	must(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			all[entry.Name()], err = os.ReadFile(path)
		}
		return err
	}))
	return all
}

func wantSame(t *testing.T, name, folder string, before map[string][]byte) {
	t.Helper()
	after := snapshot(t, folder)
	for file, data := range before {
		if !bytes.Equal(after[file], data) {
			t.Errorf("%s: %s has changed", name, file)
		}
	}
	for file := range after {
		if _, was := before[file]; !was {
			t.Errorf("%s: %s has appeared", name, file)
		}
	}
}
