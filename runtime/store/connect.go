package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// driverName is the name that modernc.org/sqlite registers itself under.
const driverName = "sqlite"

// connect makes the pools; nothing is opened before it is used. The writer
// begins IMMEDIATE, so that a transaction that reads first cannot be refused
// half way for a change by another process.
func connect(path string) *DB {
	writer := pool(dsn(path, "mode=rw", "_txlock=immediate", "_pragma=journal_mode(WAL)"), 1)
	readers := pool(dsn(path, "mode=rw", "_query_only=1"), readConnections)
	return &DB{writer: writer, readers: readers, writing: make(chan struct{}, 1), name: path}
}

// connectReadOnly reads beside a running writer through its write-ahead log. In
// a folder that cannot be written the log's index cannot be made: then a store
// that has no log is read as the unchanging file that it is.
func connectReadOnly(ctx context.Context, path string) (*sql.DB, error) {
	readers := pool(dsn(path, "mode=ro", "_query_only=1"), readConnections)
	_, err := userVersion(ctx, readers)
	if err == nil {
		return readers, nil
	}
	readers.Close()
	if info, statErr := os.Stat(path + walSuffix); statErr == nil && info.Size() > 0 {
		return nil, err
	}
	readers = pool(dsn(path, "mode=ro", "immutable=1"), readConnections)
	if _, err := userVersion(ctx, readers); err != nil {
		readers.Close()
		return nil, err
	}
	return readers, nil
}

func pool(dsn string, connections int) *sql.DB {
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		panic("internal error: " + err.Error()) // the driver is not registered
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

// dsn writes a path, whatever is in it, as a SQLite URI. FULL syncs each commit
// before it returns; fullfsync asks macOS for more than its fsync gives and
// means nothing elsewhere.
func dsn(path string, parameters ...string) string {
	slashed := filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" && !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed
	}
	always := []string{
		"_dqs=0", "_defensive=1", "_error_rc=1", "_pragma=busy_timeout(5000)",
		"_pragma=synchronous(FULL)", "_pragma=fullfsync(1)",
		"_pragma=foreign_keys(1)", "_pragma=trusted_schema(0)",
	}
	return "file:" + (&url.URL{Path: slashed}).EscapedPath() + "?" + strings.Join(append(always, parameters...), "&")
}

// resolve makes path absolute and follows links, so that the companions of the
// real file are looked for where SQLite keeps them.
func resolve(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", refusal(CodeUnreadable, path, "the store's place cannot be found", err)
	}
	real, err := filepath.EvalSymlinks(absolute)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(absolute); err == nil {
			return "", refusal(CodeUnreadable, path, "the store is a link to nowhere", nil)
		}
		return absolute, nil
	}
	if err != nil {
		return "", refusal(CodeUnreadable, path, "the store's place cannot be read", err)
	}
	return real, nil
}

func userVersion(ctx context.Context, db *sql.DB) (version int, err error) {
	err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}
