package store

import (
	"database/sql"
	"fmt"
	"testing"
)

func BenchmarkOpen(b *testing.B) {
	path := newPath(b)
	mustOpen(b, Config{Path: path}).Close()
	for b.Loop() {
		mustOpen(b, Config{Path: path}).Close()
	}
}

func BenchmarkOpenFresh(b *testing.B) {
	folder := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		mustOpen(b, Config{Path: fmt.Sprint(folder, "/", n)}).Close()
	}
}

func BenchmarkUpdate(b *testing.B) {
	db := mustOpen(b, Config{Path: newPath(b)})
	defer db.Close()
	for b.Loop() {
		must(b, db.Update(b.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec(`REPLACE INTO meta (key, value) VALUES ('a', x'00')`)
			return err
		}))
	}
}

func BenchmarkView(b *testing.B) {
	db := mustOpen(b, Config{Path: newPath(b)})
	defer db.Close()
	put(b, db, "a", "1")
	for b.Loop() {
		get(b, db, "a")
	}
}
