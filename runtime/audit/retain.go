package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// segmentRecords is how many seqs are removed at a time, never a part: 1 to 10,000,
// 10,001 to 20,000 and so on. An audit that was cut elsewhere does not verify, so
// nobody but a test sets another.
const segmentRecords = 10_000

// Retention bounds the audit, spec/audit.md 5.
type Retention struct {
	MaxAge     time.Duration // 0 is 90 days
	MaxRecords uint64        // 0 is 1,000,000

	segment uint64 // 0 is segmentRecords
}

func (r Retention) withDefaults() Retention {
	if r.MaxAge <= 0 {
		r.MaxAge = 90 * 24 * time.Hour
	}
	if r.MaxRecords == 0 {
		r.MaxRecords = 1_000_000
	}
	if r.segment == 0 {
		r.segment = segmentRecords
	}
	return r
}

// SetPolicy changes what Retain removes from now on; zero fields mean the contract's
// bounds.
func (l *Log) SetPolicy(r Retention) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.segment = l.policy.segment
	l.policy = r.withDefaults()
}

func (l *Log) retention() Retention {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.policy
}

// Extent says how many records there are and since when.
func (l *Log) Extent(ctx context.Context) (records uint64, since time.Time, err error) {
	err = l.db.View(ctx, func(tx *sql.Tx) error {
		oldest, newest, err := bounds(tx)
		if errors.Is(err, errKept) {
			return nil
		}
		if err != nil {
			return err
		}
		records = newest - oldest + 1
		var at string
		if err := tx.QueryRow(`SELECT at FROM audit WHERE seq = ?`, int64(oldest)).Scan(&at); err != nil {
			return err
		}
		since, _ = time.Parse(timeFormat, at) // one that somebody made unreadable: Verify finds it
		return nil
	})
	return records, since, err
}

// errKept ends the removing: the oldest segment stays.
var errKept = errors.New("the oldest segment stays")

// Retain removes old segments beyond the policy, each in one transaction with
// the retain record that what is left begins at. The segment with the newest
// record stays, whatever the clock says. A segment that does not verify is not
// removed: it is what an inspection would need, and the error is audit-broken.
func (l *Log) Retain(ctx context.Context) error {
	// The sealed record must not be among those removed, and nothing is removed
	// that contradicts what is sealed.
	if err := errors.Join(l.SaveHead(ctx), l.head.currentProblem()); err != nil {
		return fmt.Errorf("cannot remove old audit records: %w", err)
	}
	for {
		var kept Record
		err := l.db.Update(ctx, func(tx *sql.Tx) (err error) {
			kept, err = l.removeOldest(ctx, tx)
			return err
		})
		if errors.Is(err, errKept) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot remove old audit records: %w", err)
		}
		l.saveHead(Head{kept.Seq, kept.Hash})
	}
}

func (l *Log) removeOldest(ctx context.Context, tx *sql.Tx) (Record, error) {
	policy := l.retention()
	oldest, newest, err := bounds(tx)
	if err != nil {
		return Record{}, err
	}
	upTo := (oldest-1)/policy.segment*policy.segment + policy.segment
	if newest <= upTo {
		return Record{}, errKept
	}
	if newest-oldest+1 <= policy.MaxRecords {
		if old, err := l.isOld(tx, upTo, policy.MaxAge); err != nil || !old {
			return Record{}, errors.Join(err, errKept)
		}
	}
	v := verifier{segment: policy.segment}
	if err := v.walk(ctx, tx, upTo); err != nil {
		return Record{}, err
	}
	if _, err := tx.Exec(`DELETE FROM audit WHERE seq <= ?`, int64(upTo)); err != nil {
		return Record{}, err
	}
	return l.AppendTx(tx, Record{
		Actor: "sallyport", Via: "system", Action: Retain, Result: OK,
		Target: retainTarget(v.last), Count: int(v.report.Records),
	})
}

func bounds(tx *sql.Tx) (oldest, newest uint64, err error) {
	var low, high sql.Null[int64]
	// Two queries in one: min and max together would read the whole table.
	err = tx.QueryRow(`SELECT (SELECT min(seq) FROM audit), (SELECT max(seq) FROM audit)`).Scan(&low, &high)
	if err != nil || !low.Valid {
		return 0, 0, errors.Join(err, errKept)
	}
	return uint64(low.V), uint64(high.V), nil
}

// isOld reports whether nothing up to seq is younger than the policy's age. A
// time in the future came from a wrong clock and does not count (C80).
func (l *Log) isOld(tx *sql.Tx, upTo uint64, maxAge time.Duration) (bool, error) {
	now := l.now().UTC()
	var youngest sql.NullString
	err := tx.QueryRow(`SELECT max(at) FROM audit WHERE seq <= ? AND at <= ?`, int64(upTo), now.Format(timeFormat)).Scan(&youngest)
	return youngest.Valid && youngest.String < now.Add(-maxAge).Format(timeFormat), err
}
