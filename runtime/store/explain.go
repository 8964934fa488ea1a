package store

import (
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sallyport/internal/coded"
)

// explain gives an error of SQLite's its code and sentence, wherever in the
// chain it is, and lets every other error pass.
func explain(path string, err error) error {
	var cause *sqlite.Error
	if err == nil || coded.Of(err) != "" || !errors.As(err, &cause) {
		return err
	}
	switch cause.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return refusal(CodeDamaged, path, "the store is damaged", err)
	case sqlite3.SQLITE_FULL:
		return refusal(CodeFull, path, "the disk is full, nothing was changed in the store", err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return refusal(CodeBusy, path, "another program holds the store locked", err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_NOLFS:
		return refusal(CodeUnreadable, path, "the store cannot be read or written", err)
	}
	return err
}
