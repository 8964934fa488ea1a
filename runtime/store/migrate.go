package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
)

//go:embed schema/*.sql
var schema embed.FS

// migration is one numbered step; step i of a list leads to version i+1.
type migration struct{ name, script string }

// embedded returns the steps in schema/, whose names begin with 0001_, 0002_ …
func embedded() []migration {
	names, err := fs.Glob(schema, "schema/*.sql")
	if err != nil {
		panic("internal error: " + err.Error())
	}
	steps := make([]migration, len(names))
	for i, name := range names { // Glob sorts
		script, err := schema.ReadFile(name)
		if err != nil || !strings.HasPrefix(filepath.Base(name), fmt.Sprintf("%04d_", i+1)) {
			panic("internal error: schema/ has a gap at " + name)
		}
		steps[i] = migration{name, string(script)}
	}
	return steps
}

// Version is the version of the schema that this program works with.
func Version() int { return len(embedded()) }

// create builds a fresh store beside path and gives it the name when it is
// whole. If another process was quicker, its store stays.
func create(ctx context.Context, path string, steps []migration) (err error) {
	removeUnfinished(path)
	building := path + "." + rand.Text()[:10] + ".new"
	defer func() {
		for _, suffix := range []string{"", walSuffix, "-shm", journalSuffix} {
			os.Remove(building + suffix)
		}
		if err != nil && coded.Of(err) == "" {
			err = refusal(CodeUnreadable, path, "the store cannot be made", err)
		}
	}()
	if err := build(ctx, building, steps); err != nil {
		return explain(path, err)
	}
	if err := atomicfile.RenameNew(building, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// removeUnfinished removes what a killed create left, but nothing so young that
// another process may be building it.
func removeUnfinished(path string) {
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, entry := range entries {
		rest, ours := strings.CutPrefix(entry.Name(), filepath.Base(path)+".")
		if !ours || len(rest) < 14 || !strings.HasPrefix(rest[10:], ".new") {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > time.Minute {
			os.Remove(filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
}

func build(ctx context.Context, path string, steps []migration) error {
	// Made here for the permissions; SQLite gives its companions the same.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	db := pool(dsn(path, "mode=rw", "_txlock=immediate", "_pragma=journal_mode(WAL)"), 1)
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		db.Close()
		return err
	}
	for i, step := range steps {
		if err := apply(ctx, db, step, i+1); err != nil {
			db.Close()
			return err
		}
	}
	if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		db.Close()
		return err
	}
	return db.Close()
}

// migrate brings an older store to the newest version, one transaction a step,
// after putting a whole copy beside it (C78).
func migrate(ctx context.Context, db *sql.DB, path string, steps []migration, log *slog.Logger) error {
	version, err := userVersion(ctx, db)
	if err != nil {
		return explain(path, err)
	}
	if version > len(steps) {
		return refusal(CodeNewer, path, "the store was written by a newer version", nil)
	}
	if version < 1 { // ours has a version from its first moment
		return refusal(CodeDamaged, path, "the store has no version", nil)
	}
	if err := hasSchema(ctx, db); err != nil {
		return explain(path, err)
	}
	if version == len(steps) {
		return nil
	}
	if err := keepCopy(ctx, db, path, len(steps)); err != nil {
		return err
	}
	for i := version; i < len(steps); i++ {
		if err := apply(ctx, db, steps[i], i+1); err != nil {
			return explain(path, fmt.Errorf("cannot migrate the store by %q: %w", steps[i].name, err))
		}
		log.Info("store migrated", "step", steps[i].name)
	}
	return nil
}

// hasSchema makes SQLite read and parse the whole schema.
func hasSchema(ctx context.Context, db *sql.DB) error {
	var tables int
	return db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables)
}

func apply(ctx context.Context, db *sql.DB, step migration, version int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var found int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil {
		return err
	}
	if found >= version { // another process was quicker
		return nil
	}
	if _, err := tx.ExecContext(ctx, step.script); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	return tx.Commit()
}

// keepCopy writes the store as it is to <path>.before-v<version>. A copy left by
// a migration that did not finish is of the same version and is replaced whole.
func keepCopy(ctx context.Context, db *sql.DB, path string, version int) error {
	kept := fmt.Sprintf("%s.before-v%d", path, version)
	temp := kept + "." + rand.Text()[:10] + ".tmp"
	defer os.Remove(temp)
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return refusal(CodeUnreadable, path, "the store cannot be copied before its migration", err)
	}
	defer f.Close()
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", temp)
	if err != nil {
		return explain(path, err)
	}
	if err = f.Sync(); err == nil {
		f.Close() // Windows does not rename an open file
		err = atomicfile.Rename(temp, kept)
	}
	if err != nil {
		return refusal(CodeUnreadable, path, "the store cannot be copied before its migration", err)
	}
	return nil
}
