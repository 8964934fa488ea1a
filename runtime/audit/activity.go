package audit

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Hour counts what happened in one hour, by the records' clock.
type Hour struct {
	At      time.Time `json:"at"`      // its beginning
	Calls   int       `json:"calls"`   // that were made, whatever became of them
	Refused int       `json:"refused"` // calls and all else that was refused
	Failed  int       `json:"failed"`  // calls that were made and failed
}

const hourFormat = "2006-01-02T15"

// Activity counts calls and refusals since a time, by hours, oldest first. Hours in
// which neither was are left out.
func (l *Log) Activity(ctx context.Context, since time.Time) ([]Hour, error) {
	hours := []Hour{}
	err := l.db.View(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `
			SELECT substr(at, 1, 13) AS hour,
				sum(CASE WHEN action = 'call' AND result <> 'refused' THEN count ELSE 0 END),
				sum(CASE WHEN result = 'refused' THEN count ELSE 0 END),
				sum(CASE WHEN action = 'call' AND result = 'failed' THEN count ELSE 0 END)
			FROM audit WHERE at >= ? AND (action = 'call' OR result = 'refused')
			GROUP BY hour ORDER BY hour`, since.UTC().Format(timeFormat))
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var hour Hour
			var at string
			if err := rows.Scan(&at, &hour.Calls, &hour.Refused, &hour.Failed); err != nil {
				return err
			}
			if hour.At, err = time.Parse(hourFormat, at); err != nil {
				return err
			}
			hours = append(hours, hour)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("cannot count the audit: %w", err)
	}
	return hours, nil
}
