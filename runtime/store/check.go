package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Check reads the whole store and verifies its structure, indexes and
// constraints: for doctor, seconds for a large one. A finding is store-damaged.
func (db *DB) Check(ctx context.Context) error {
	return db.View(ctx, func(tx *sql.Tx) error {
		var finding string
		if err := tx.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&finding); err != nil {
			return err
		}
		if finding != "ok" {
			return refusal(CodeDamaged, db.name, "the store is damaged", fmt.Errorf("integrity check: %s", finding))
		}
		return nil
	})
}
