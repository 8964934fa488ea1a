package audit

import (
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const columnNames = `seq, at, actor, via, action, plugin, version, binding, target, result,
	reason, identity, decision, client, count, duration_ms, prev, hash`

const insertRow = `INSERT INTO audit (` + columnNames + `)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const selectRows = `SELECT ` + columnNames + ` FROM audit`

func (r *row) columns() []any {
	return []any{
		int64(r.Seq), r.at, r.Actor, r.Via, r.Action, r.Plugin, r.Version, r.Binding, r.Target,
		r.Result, r.Reason, r.Identity, r.Decision, r.Client, r.Count, r.DurationMs, r.Prev, r.Hash,
	}
}

func (r *row) scan(rows *sql.Rows) error {
	return rows.Scan(
		&r.Seq, &r.at, &r.Actor, &r.Via, &r.Action, &r.Plugin, &r.Version, &r.Binding, &r.Target,
		&r.Result, &r.Reason, &r.Identity, &r.Decision, &r.Client, &r.Count, &r.DurationMs, &r.Prev, &r.Hash,
	)
}

// record parses the time; one that somebody made unreadable becomes the zero
// time, Verify finds it.
func (r *row) record() Record {
	r.At, _ = time.Parse(timeFormat, r.at)
	return r.Record
}

// eachRow hands each row of a query to fn until it returns an error.
func eachRow(tx *sql.Tx, fn func(*row) error, query string, arguments ...any) error {
	rows, err := tx.Query(query, arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := r.scan(rows); err != nil {
			return fmt.Errorf("%w: %w", errUnreadableRow, err)
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// errUnreadableRow is about a row that holds what no record holds.
var errUnreadableRow = errors.New("cannot read an audit record")

// lastHead reads the end of the chain that tx sees.
func lastHead(tx *sql.Tx) (Head, error) {
	head := Head{0, genesis}
	err := tx.QueryRow(`SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1`).Scan(&head.Seq, &head.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return Head{0, genesis}, nil
	}
	return head, err
}
