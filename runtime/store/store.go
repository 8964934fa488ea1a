// Package store is the embedded database: one SQLite file, its opening, its
// migrations and its one writer.
//
// The one idea: a store that is not exactly what is expected is left alone. A
// file that is damaged, unreadable, newer than this program or missing where
// there must be one is a coded refusal (spec/approval.md 5.5), made before
// anything is written; there is no repair and no silent fresh start. A fresh
// store is built beside its place and moved there whole, so a half-made one
// never exists under the name.
//
// It keeps bytes and knows nothing of what they mean: tables belong to the
// packages that fill them. It imports nothing of ours but internal/*; host opens
// it, and approvals and audit work through Update and View.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"sallyport/internal/coded"
)

// Codes of the refusals.
const (
	CodeDamaged    = "store-damaged"    // cut, not a database, or not ours
	CodeNewer      = "store-newer"      // written by a newer version
	CodeUnreadable = "store-unreadable" // no permission, not a file, or the disk fails
	CodeMissing    = "store-missing"    // Config.MustExist, and there is none
	CodeBusy       = "store-busy"       // another program holds it locked
	CodeFull       = "store-full"       // no space left; nothing was changed
	CodeReadOnly   = "store-read-only"  // Update on a store opened only to read
)

// Config says which store to open.
type Config struct {
	// Path is the database file; its folder must exist. Required.
	Path string
	// MustExist refuses with store-missing where there is no file, for when
	// something else tells that there was one. Without it a fresh store is made.
	MustExist bool
	// Logger may be nil.
	Logger *slog.Logger
}

// DB is an open store. All methods may be called concurrently.
type DB struct {
	writer  *sql.DB // one connection; nil when only reading
	readers *sql.DB
	writing chan struct{} // holds one token while an Update runs
	name    string
}

// readConnections is how many Views run at once: a long one (an export, a
// verification) must not keep the short ones waiting.
const readConnections = 4

// Open opens the store at cfg.Path, migrates an older one after keeping a copy
// beside it, and makes a fresh one where there is none. It looks at header,
// length and schema only; Check reads everything.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	return open(ctx, cfg, embedded())
}

func open(ctx context.Context, cfg Config, steps []migration) (*DB, error) {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	path, err := resolve(cfg.Path)
	if err != nil {
		return nil, err
	}
	exists, err := inspect(path, len(steps))
	if err != nil {
		return nil, err
	}
	if !exists {
		if cfg.MustExist {
			return nil, refusal(CodeMissing, path, "the store is missing although there was one", nil)
		}
		if err := create(ctx, path, steps); err != nil {
			return nil, err
		}
		log.Info("store created", "file", filepath.Base(path), "version", len(steps))
	}
	db := connect(path)
	if err := migrate(ctx, db.writer, path, steps, log); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// OpenReadOnly opens the store at path to read, whether or not another process
// has it open, and changes nothing in it. A store of an older version is not
// migrated. Update refuses with store-read-only.
func OpenReadOnly(ctx context.Context, path string) (*DB, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	exists, err := inspect(path, len(embedded()))
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, refusal(CodeMissing, path, "there is no store", nil)
	}
	readers, err := connectReadOnly(ctx, path)
	if err != nil {
		return nil, explain(path, err)
	}
	return &DB{readers: readers, name: path}, nil
}

// Update runs fn in the one writing transaction, after those before it, and
// commits: when it returns nil, what fn wrote is synced. If fn returns an error
// or panics, or the commit fails, nothing of it has happened. ctx ends the
// waiting; once fn runs, fn decides. fn must not call Update.
func (db *DB) Update(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if db.writer == nil {
		return refusal(CodeReadOnly, db.name, "the store is open only to read", nil)
	}
	select {
	case db.writing <- struct{}{}:
		defer func() { <-db.writing }()
	case <-ctx.Done():
		return fmt.Errorf("cannot change the store: %w", context.Cause(ctx))
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot change the store: %w", err)
	}
	// Not ctx: an interrupted commit would leave open whether it happened.
	tx, err := db.writer.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return explain(db.name, err)
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := fn(tx); err != nil {
		return explain(db.name, err)
	}
	return explain(db.name, tx.Commit())
}

// View runs fn in a transaction that sees one state of the store and cannot
// change it. It does not wait for Updates, nor they for it.
func (db *DB) View(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := db.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return explain(db.name, err)
	}
	defer tx.Rollback()
	return explain(db.name, fn(tx))
}

// Close waits for what runs and closes the store.
func (db *DB) Close() error {
	err := db.readers.Close()
	if db.writer != nil {
		db.writing <- struct{}{}
		defer func() { <-db.writing }()
		err = errors.Join(err, db.writer.Close()) // last, so that it tidies the log away
	}
	return explain(db.name, err)
}

// refusal makes a coded error that names the store by its file name only.
func refusal(code, path, sentence string, cause error) error {
	return &coded.Error{
		Code: code, Sentence: sentence, Next: next[code],
		Path: filepath.Base(path), Err: cause,
	}
}

var next = map[string]string{
	CodeDamaged:    "keep the file, and put back a copy or move it away to begin anew",
	CodeNewer:      "install the newer version of Sallyport again",
	CodeUnreadable: "check the file's owner, permissions and disk",
	CodeMissing:    "put back a copy of the store",
	CodeBusy:       "end the other program that uses the store",
	CodeFull:       "make space on the disk",
}
