package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"golang.org/x/sys/unix"

	"sallyport/internal/coded"
)

// C77 on a disk that is really full, where a small one may be mounted.
func TestAFullDiskRefusesTheUpdateAndLosesNothing(t *testing.T) {
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Logf("no tmpfs here (%v)", err)
		return
	}
	defer unix.Unmount(folder, unix.MNT_DETACH)
	db := mustOpen(t, Config{Path: filepath.Join(folder, "sallyport.db")})
	defer db.Close()
	put(t, db, "a", "1")
	wantCode(t, "two megabytes in one", db.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO meta (key, value) VALUES ('big', randomblob(2000000))`)
		return err
	}), CodeFull)
	rows := 0
	for {
		err := db.Update(context.Background(), func(tx *sql.Tx) error {
			_, err := tx.Exec(`INSERT INTO meta (key, value) VALUES (hex(randomblob(8)), randomblob(20000))`)
			return err
		})
		if err != nil {
			wantCode(t, "little by little", err, CodeFull)
			break
		}
		rows++
	}
	if n := count(t, db, "meta"); n != rows+1 {
		t.Errorf("%d rows, want %d", n, rows+1)
	}
	must(t, db.Check(t.Context()))
}

// The same without a mount: SQLite's own limit gives the same error.
func TestALimitedStoreRefusesAsAFullDiskDoes(t *testing.T) {
	db := mustOpen(t, Config{Path: newPath(t)})
	defer db.Close()
	_, err := db.writer.Exec(`PRAGMA max_page_count = 30`)
	must(t, err)
	err = db.Update(t.Context(), func(tx *sql.Tx) error {
		insert(t, tx, "a", "1")
		_, err := tx.Exec(`INSERT INTO meta (key, value) VALUES ('big', randomblob(2000000))`)
		return err
	})
	wantCode(t, "full", err, CodeFull)
	var cause interface{ Code() int }
	if !errors.As(err, &cause) || cause.Code() != sqlite3.SQLITE_FULL || coded.Of(err) == "" {
		t.Errorf("the cause is %v", err)
	}
	if n := count(t, db, "meta"); n != 0 {
		t.Errorf("%d rows", n)
	}
}
