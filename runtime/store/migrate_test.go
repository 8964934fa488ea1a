package store

import (
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// nextStep is a migration that exists only in these tests.
var nextStep = migration{"0002_test.sql", `CREATE TABLE second (x INTEGER) STRICT; INSERT INTO second SELECT 1 FROM meta;`}

func TestMigratingKeepsACopyAndRunsOnce(t *testing.T) { // C78
	path := newPath(t)
	db := mustOpen(t, Config{Path: path})
	put(t, db, "a", "1")
	must(t, db.Close())

	for range 2 {
		db, err := open(t.Context(), Config{Path: path}, append(embedded(), nextStep))
		must(t, err)
		if n := count(t, db, "second"); n != 1 {
			t.Errorf("the step ran %d times", n)
		}
		must(t, db.Close())
	}
	wantFolder(t, path, "sallyport.db", "sallyport.db.before-v2")

	_, err := Open(t.Context(), Config{Path: path})
	wantCode(t, "the older program on the newer store", err, CodeNewer)

	kept, err := OpenReadOnly(t.Context(), path+".before-v2")
	must(t, err)
	defer kept.Close()
	if got := get(t, kept, "a"); got != "1" {
		t.Errorf("the copy holds %q", got)
	}
	must(t, kept.Check(t.Context()))
}

func TestAMigrationThatFailsChangesNothingAndMayBeTriedAgain(t *testing.T) {
	path := newPath(t)
	db := mustOpen(t, Config{Path: path})
	put(t, db, "a", "1")
	must(t, db.Close())
	broken := migration{"0002_broken.sql", `CREATE TABLE second (x INTEGER); DELETE FROM meta; SELECT no_such_function();`}
	if _, err := open(t.Context(), Config{Path: path}, append(embedded(), broken)); err == nil {
		t.Fatal("it did not fail")
	}
	db = mustOpen(t, Config{Path: path})
	if got := get(t, db, "a"); got != "1" {
		t.Errorf("got %q", got)
	}
	put(t, db, "b", "2")
	must(t, db.Close())

	db, err := open(t.Context(), Config{Path: path}, append(embedded(), nextStep))
	must(t, err)
	must(t, db.Close())
	kept, err := OpenReadOnly(t.Context(), path+".before-v2")
	must(t, err)
	defer kept.Close()
	if got := get(t, kept, "b"); got != "2" {
		t.Errorf("the copy is of the failed try, it holds %q", got)
	}
}

func TestAnOlderStoreMayBeReadWithoutMigrating(t *testing.T) {
	path := newPath(t)
	must(t, mustOpen(t, Config{Path: path}).Close())
	before := hash(t, path)
	db, err := OpenReadOnly(t.Context(), path)
	must(t, err)
	must(t, db.Close())
	if hash(t, path) != before {
		t.Error("the file has changed")
	}
}

func TestTwoProcessesMayMigrateAtOnce(t *testing.T) {
	path := newPath(t)
	must(t, mustOpen(t, Config{Path: path}).Close())
	first, second := connect(path), connect(path)
	defer first.Close()
	defer second.Close()
	_, err := userVersion(t.Context(), second.writer) // decided to migrate, then waits
	must(t, err)
	log := slog.New(slog.DiscardHandler)
	steps := append(embedded(), nextStep)
	must(t, migrate(t.Context(), first.writer, path, steps, log))
	must(t, apply(t.Context(), second.writer, nextStep, 2))
	must(t, first.View(t.Context(), func(tx *sql.Tx) error { _, err := tx.Exec(`SELECT * FROM second`); return err }))
}

func TestACopyThatCannotBeMadeStopsTheMigration(t *testing.T) {
	path := newPath(t)
	must(t, mustOpen(t, Config{Path: path}).Close())
	must(t, os.MkdirAll(filepath.Join(path+".before-v2", "in the way"), 0o700))
	_, err := open(t.Context(), Config{Path: path}, append(embedded(), nextStep))
	wantCode(t, "no copy", err, CodeUnreadable)
	must(t, mustOpen(t, Config{Path: path}).Close())
}
