// Package audit is the record of what happened, for people who were not there
// (spec/audit.md).
//
// The one idea: a chain. Each record's hash covers the record before it, the
// next prev is read inside the transaction that writes, and the last hash is
// kept sealed elsewhere, so that a record that was changed, moved or taken away
// shows. Lifecycle and decision records are synced before the action they allow
// takes effect (Append, AppendTx); call records are synced in groups (Call);
// equal refusals are counted rather than repeated (Refused).
//
// Records hold identifiers only. The package does not decide, does not show and
// does not forward; it is no developers' log. It imports nothing of ours but
// internal/*; the database and the keeper of the sealed head are handed in.
package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sallyport/internal/coded"
)

// Codes of refusals and problems.
const (
	CodeBroken     = "audit-broken"      // a record was changed, moved or is missing in the middle
	CodeTruncated  = "audit-truncated"   // records that the sealed head knows are gone from the end
	CodeInvalid    = "audit-invalid"     // an action, result, filter or cursor that does not exist
	CodeUnwritable = "audit-unwritable"  // queued records cannot be written at the moment
	CodeUnsealed   = "audit-head-unread" // the sealed head cannot be read or written
	CodeClosed     = "audit-closed"
)

// Database is what the log needs of the store; see store.DB.
type Database interface {
	// Update runs fn in the one writing transaction and syncs it.
	Update(ctx context.Context, fn func(tx *sql.Tx) error) error
	// View runs fn in a transaction that sees one state.
	View(ctx context.Context, fn func(tx *sql.Tx) error) error
}

// Config says what a Log works with.
type Config struct {
	DB Database // required
	// Head keeps the sealed head; nil keeps none, and a cut end is then not seen.
	Head HeadKeeper
	// Policy is what Retain removes; zero fields mean the contract's bounds.
	Policy Retention
	Now    func() time.Time // nil is time.Now
	Logger *slog.Logger     // may be nil
}

// Log writes and reads the audit. All methods may be called concurrently.
type Log struct {
	db     Database
	now    func() time.Time
	log    *slog.Logger
	head   sealedHead
	queue  queue
	folds  folds
	ended  chan struct{} // closed when the writing goroutine is gone
	cancel context.CancelFunc

	mu      sync.Mutex
	policy  Retention
	problem error // of the queue's writer; nil when the last write went well
}

// Open starts a log over a database that has the audit table. It compares the
// sealed head with the database but does not fail for a difference: Problem
// tells it, records go on being written, and the sealed head stays as it is until
// Reseal. Close ends the goroutine that Open starts.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	l := &Log{
		db: cfg.DB, now: cfg.Now, policy: cfg.Policy.withDefaults(), log: cfg.Logger,
		ended: make(chan struct{}),
	}
	if l.now == nil {
		l.now = time.Now
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.head.keeper = cfg.Head
	l.queue.init()
	l.folds.init()
	if err := l.compareHead(ctx); err != nil {
		return nil, fmt.Errorf("cannot open the audit: %w", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	go l.run(running)
	return l, nil
}

// Append writes one record in a transaction of its own. When it returns nil the
// record is synced; otherwise it is not there and what it was to allow must not
// happen (spec/audit.md 3). The result is the record as it was kept.
func (l *Log) Append(ctx context.Context, r Record) (Record, error) {
	var kept Record
	err := l.db.Update(ctx, func(tx *sql.Tx) (err error) {
		kept, err = l.AppendTx(tx, r)
		return err
	})
	if err != nil {
		return Record{}, fmt.Errorf("cannot write the audit record %q: %w", shown(r.Action), err)
	}
	l.saveHead(Head{kept.Seq, kept.Hash})
	return kept, nil
}

// AppendTx writes one record in the caller's Update, so that an approval and its
// record are there together or not at all. After the commit the caller may call
// SaveHead; otherwise the head is sealed within a second.
func (l *Log) AppendTx(tx *sql.Tx, r Record) (Record, error) {
	if err := r.check(); err != nil {
		return Record{}, err
	}
	kept, err := l.write(tx, []Record{r})
	if err != nil {
		return Record{}, err
	}
	l.headIsBehind()
	return kept, nil
}

// write appends records to the chain that tx sees and returns the last of them.
func (l *Log) write(tx *sql.Tx, records []Record) (Record, error) {
	last, err := lastHead(tx)
	if err != nil {
		return Record{}, err
	}
	statement, err := tx.Prepare(insertRow)
	if err != nil {
		return Record{}, err
	}
	defer statement.Close()
	var kept Record
	for _, r := range records {
		kept = r.tidy(l.now())
		kept.Seq, kept.Prev = last.Seq+1, last.Hash
		next := newRow(kept)
		hash, ok := next.sum()
		if !ok {
			return Record{}, errors.New("internal error: audit record has no canonical form")
		}
		kept.Hash, next.Hash = hash, hash
		if _, err := statement.Exec(next.columns()...); err != nil {
			return Record{}, err
		}
		last = Head{kept.Seq, kept.Hash}
	}
	return kept, nil
}

// Head returns the newest record's seq and hash; before the first record they
// are 0 and 64 zeros.
func (l *Log) Head(ctx context.Context) (seq uint64, hash string, err error) {
	head, err := l.readHead(ctx)
	return head.Seq, head.Hash, err
}

// Problem returns what an operator should know now, or nil: queued records cannot
// be written, or the sealed head does not match or cannot be kept.
func (l *Log) Problem() error {
	l.mu.Lock()
	unwritten := l.problem
	l.mu.Unlock()
	if unwritten != nil {
		return unwritten
	}
	return l.head.currentProblem()
}

func (l *Log) setProblem(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.problem = nil
		return
	}
	if l.problem == nil {
		l.log.Error("audit records cannot be written", "error", err)
	}
	l.problem = &coded.Error{
		Code: CodeUnwritable, Sentence: "audit records cannot be written at the moment",
		Next: "make space on the disk or check the store", Err: err,
	}
}
