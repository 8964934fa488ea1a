package approvals

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

func writeJournal(ctx context.Context, tx *sql.Tx, at time.Time, line journalLine) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO decision_journal (decision, at, event, by, detail) VALUES (?, ?, ?, ?, ?)",
		line.decision, at.Format(time.RFC3339Nano), line.event, line.by.String(), line.detail)
	return err
}

// Journal returns everything that happened to a decision, in order.
func (g *Gate) Journal(ctx context.Context, decision string) ([]JournalEntry, error) {
	entries := []JournalEntry{}
	err := g.cfg.DB.View(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT at, event, by, detail FROM decision_journal WHERE decision = ? ORDER BY n", decision)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var at string
			var e JournalEntry
			if err := rows.Scan(&at, &e.Event, &e.By, &e.Detail); err != nil {
				return err
			}
			if e.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
				return fmt.Errorf("cannot read the journal: %w", err)
			}
			entries = append(entries, e)
		}
		return rows.Err()
	})
	return entries, err
}
