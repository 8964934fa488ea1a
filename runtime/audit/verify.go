package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sallyport/internal/coded"
)

// Report is what Verify found. A chain with a break is verified up to it.
type Report struct {
	Records uint64 `json:"records"` // that were read
	First   uint64 `json:"first"`   // seq of the oldest one left
	Last    uint64 `json:"last"`    // seq of the newest one that is good
	Hash    string `json:"hash"`    // of Last
	// HeadChecked tells that there was a sealed head to compare with; without
	// one, records cut from the end are not noticed.
	HeadChecked bool   `json:"headChecked"`
	Break       *Break `json:"break,omitempty"`
}

// Break is the first place where the audit is not what was written.
type Break struct {
	Code     string `json:"code"` // audit-broken or audit-truncated
	Seq      uint64 `json:"seq"`
	Sentence string `json:"sentence"`
}

func (b *Break) Error() string { return b.Sentence }

// broken makes the coded error about a break; errors.As finds the *Break.
func broken(code string, seq uint64, sentence string) error {
	return &coded.Error{
		Code: code, Sentence: sentence,
		Next: "keep the store for inspection; records before the break are good",
		Err:  &Break{code, seq, sentence},
	}
}

// Verify reads the whole chain and compares its end with the sealed head
// (spec/audit.md 4). The error is audit-broken or audit-truncated for a break,
// which Report names too, or says why the records could not be read.
func (l *Log) Verify(ctx context.Context) (Report, error) {
	if l.head.keeper == nil {
		return verify(ctx, l.db, nil, l.retention().segment)
	}
	return verify(ctx, l.db, &l.head, l.retention().segment)
}

// VerifyDatabase is Verify without a running log, for the offline command. keeper
// may be nil.
func VerifyDatabase(ctx context.Context, db Database, keeper HeadKeeper) (Report, error) {
	return verify(ctx, db, keeper, segmentRecords)
}

func verify(ctx context.Context, db Database, keeper HeadKeeper, segment uint64) (Report, error) {
	v := verifier{segment: segment}
	if keeper != nil { // before the View: the database may be ahead, not the head
		head, kept, err := keeper.Load()
		if err != nil {
			return Report{}, unsealed("the sealed head of the audit cannot be read", err)
		}
		if kept {
			v.sealed = &head
		}
	}
	err := db.View(ctx, func(tx *sql.Tx) error { return v.walk(ctx, tx, 0) })
	var found *Break
	if errors.As(err, &found) {
		v.report.Break = found
		return v.report, err
	}
	if err != nil {
		return v.report, fmt.Errorf("cannot verify the audit: %w", err)
	}
	return v.report, nil
}

// verifier walks the chain from its oldest record on.
type verifier struct {
	segment uint64 // how many seqs retention removes at a time
	sealed  *Head  // nil: not compared
	report  Report
	last    Head
	// wrongStart is set while the oldest record does not follow from the newest
	// retain record: a break further on may be that record's.
	wrongStart error
}

// walk verifies records up to seq upTo, 0 for all and the sealed head.
func (v *verifier) walk(ctx context.Context, tx *sql.Tx, upTo uint64) error {
	start, err := chainStart(tx)
	if err != nil {
		return err
	}
	v.last = start
	v.report.First, v.report.Last, v.report.Hash = start.Seq+1, start.Seq, start.Hash
	query, arguments := selectRows+` ORDER BY seq`, []any(nil)
	if upTo > 0 {
		query, arguments = selectRows+` WHERE seq <= ? ORDER BY seq`, []any{int64(upTo)}
	}
	err = eachRow(tx, func(r *row) error {
		if v.report.Records++; v.report.Records == 1 {
			if err := v.start(r); err != nil {
				return err
			}
		}
		if v.report.Records%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return v.next(r)
	}, query, arguments...)
	if errors.Is(err, errUnreadableRow) {
		return broken(CodeBroken, v.last.Seq+1, fmt.Sprintf("audit record %d cannot be read", v.last.Seq+1))
	}
	if err != nil {
		return err
	}
	if upTo > 0 {
		return v.wrongStart
	}
	return v.end()
}

// start compares the oldest record with where the chain should begin. Retention
// removes whole segments only, so anything else that is missing is a break; at
// the end of a segment the walk goes on, to see if the retain record was changed.
func (v *verifier) start(r *row) error {
	if r.Seq == v.last.Seq+1 && r.Prev == v.last.Hash {
		return nil
	}
	if r.Seq < 2 || (r.Seq-1)%v.segment != 0 {
		return nil // next says what is wrong
	}
	missing := r.Seq - 1
	v.wrongStart = broken(CodeBroken, missing, fmt.Sprintf("audit record %d is missing and no retention removed it", missing))
	v.last = Head{r.Seq - 1, r.Prev}
	v.report.First = r.Seq
	return nil
}

func (v *verifier) next(r *row) error {
	want := v.last.Seq + 1
	if r.Seq != want {
		return broken(CodeBroken, want, fmt.Sprintf("audit record %d is missing", want))
	}
	if r.Prev != v.last.Hash {
		return broken(CodeBroken, want, fmt.Sprintf("audit record %d does not follow from the one before it", want))
	}
	if hash, ok := r.sum(); !ok || hash != r.Hash {
		return broken(CodeBroken, want, fmt.Sprintf("audit record %d was changed", want))
	}
	if v.sealed != nil && v.sealed.Seq == r.Seq && v.sealed.Hash != r.Hash {
		return broken(CodeBroken, want, fmt.Sprintf("audit record %d is not the one that was sealed", want))
	}
	v.last = Head{r.Seq, r.Hash}
	v.report.Last, v.report.Hash = r.Seq, r.Hash
	return nil
}

func (v *verifier) end() error {
	if v.sealed == nil {
		return v.wrongStart
	}
	v.report.HeadChecked = true
	if v.last.Seq < v.sealed.Seq {
		return broken(CodeTruncated, v.last.Seq+1, fmt.Sprintf("records %d to %d are gone from the end of the audit", v.last.Seq+1, v.sealed.Seq))
	}
	if v.wrongStart == nil && v.sealed.Seq > 0 && v.sealed.Seq < v.report.First {
		return broken(CodeBroken, v.sealed.Seq, fmt.Sprintf("audit record %d, which was sealed, is missing", v.sealed.Seq))
	}
	return v.wrongStart
}

// chainStart returns what the oldest record left must follow: nothing, or the
// record that the newest retain record says was removed last (spec/audit.md 5).
func chainStart(tx *sql.Tx) (Head, error) {
	var target string
	err := tx.QueryRow(`SELECT target FROM audit WHERE action <> 'call' AND action = ? AND result = ?
		ORDER BY seq DESC LIMIT 1`, Retain, OK).Scan(&target)
	if errors.Is(err, sql.ErrNoRows) {
		return Head{0, genesis}, nil
	}
	if err != nil {
		return Head{}, err
	}
	seq, hash, _ := strings.Cut(target, ":")
	n, err := strconv.ParseUint(seq, 10, 53)
	if err != nil || len(hash) != len(genesis) {
		return Head{0, genesis}, nil // the walk finds what was changed
	}
	return Head{n, hash}, nil
}

func retainTarget(removed Head) string { return fmt.Sprintf("%d:%s", removed.Seq, removed.Hash) }
