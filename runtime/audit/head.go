package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"sallyport/internal/coded"
)

// Head names the end of the chain.
type Head struct {
	Seq  uint64
	Hash string
}

// HeadKeeper keeps the sealed head apart from the database, see
// spec/approval.md 5.4. The log calls it from one goroutine at a time and never
// inside a transaction.
type HeadKeeper interface {
	// Load returns the kept head; false when none was ever kept. A head that is
	// missing where there was one, or whose seal does not verify, is an error.
	Load() (Head, bool, error)
	// Save replaces the kept head durably.
	Save(Head) error
}

// sealedHead follows the chain with a keeper, which may be nil. The database
// may be ahead of it after a crash, never behind.
type sealedHead struct {
	keeper HeadKeeper
	behind atomic.Bool // a record may have been committed that is not sealed

	mu       sync.Mutex // held during Save, so that heads are saved in order
	saved    Head
	mismatch error // found by Open; nothing is saved until Reseal
	unsaved  error // of the last Save
}

func (h *sealedHead) currentProblem() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mismatch != nil {
		return h.mismatch
	}
	return h.unsaved
}

// Load makes the head a keeper for Verify that waits for a running Save.
func (h *sealedHead) Load() (Head, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keeper.Load()
}

// Save is there to be a HeadKeeper; Verify does not call it.
func (h *sealedHead) Save(head Head) error { return h.save(head) }

// save seals head unless a later one is sealed.
func (h *sealedHead) save(head Head) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keeper == nil || h.mismatch != nil || head.Seq <= h.saved.Seq {
		return nil
	}
	if err := h.keeper.Save(head); err != nil {
		h.unsaved = unsealed("the sealed head of the audit cannot be written", err)
		return h.unsaved
	}
	h.saved, h.unsaved = head, nil
	return nil
}

func unsealed(sentence string, err error) error {
	return &coded.Error{Code: CodeUnsealed, Sentence: sentence, Next: "check the state folder and the keyring", Err: err}
}

// compareHead looks the sealed head up in the database.
func (l *Log) compareHead(ctx context.Context) error {
	if l.head.keeper == nil {
		return nil
	}
	sealed, kept, err := l.head.keeper.Load()
	var mismatch error
	switch {
	case err != nil:
		mismatch = unsealed("the sealed head of the audit cannot be read", err)
	case kept:
		err := l.db.View(ctx, func(tx *sql.Tx) (err error) {
			mismatch, err = headMismatch(tx, sealed)
			return err
		})
		if err != nil {
			return err
		}
	}
	l.head.mu.Lock()
	defer l.head.mu.Unlock()
	l.head.saved, l.head.mismatch, l.head.unsaved = sealed, mismatch, nil
	return nil
}

// Recompare is for a keeper that can be read only now: the head is compared as Open
// would have, and what was recorded since is sealed. Until then nothing was.
func (l *Log) Recompare(ctx context.Context) error {
	if err := l.compareHead(ctx); err != nil {
		return fmt.Errorf("cannot read the audit: %w", err)
	}
	return l.SaveHead(ctx)
}

// headMismatch tells how the records contradict the sealed head. Retain seals
// before it removes, so the sealed record is never one that it removed.
func headMismatch(tx *sql.Tx, sealed Head) (mismatch, err error) {
	last, err := lastHead(tx)
	if err != nil {
		return nil, err
	}
	if last.Seq < sealed.Seq {
		return broken(CodeTruncated, last.Seq+1, fmt.Sprintf("records %d to %d are gone from the end of the audit", last.Seq+1, sealed.Seq)), nil
	}
	if sealed.Seq == 0 {
		return nil, nil
	}
	var hash string
	err = tx.QueryRow(`SELECT hash FROM audit WHERE seq = ?`, int64(sealed.Seq)).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return broken(CodeBroken, sealed.Seq, fmt.Sprintf("audit record %d, which was sealed, is missing", sealed.Seq)), nil
	}
	if err != nil {
		return nil, err
	}
	if hash != sealed.Hash {
		return broken(CodeBroken, sealed.Seq, fmt.Sprintf("audit record %d is not the one that was sealed", sealed.Seq)), nil
	}
	return nil, nil
}

// SaveHead seals the end of the chain as it is now: for after the commit of an
// Update that used AppendTx. It waits for a running Update and so must not be
// called in one.
func (l *Log) SaveHead(ctx context.Context) error {
	if l.head.keeper == nil {
		return nil
	}
	l.head.behind.Store(false)
	head, err := l.committedHead(ctx)
	if err == nil {
		err = l.head.save(head)
	}
	if err != nil {
		l.head.behind.Store(true)
		return fmt.Errorf("cannot seal the audit's head: %w", err)
	}
	return nil
}

// Reseal accepts the records as they are now, after an operator has looked at
// what Problem said: the head is sealed anew.
func (l *Log) Reseal(ctx context.Context) error {
	if l.head.keeper == nil {
		return nil
	}
	head, err := l.committedHead(ctx)
	if err != nil {
		return fmt.Errorf("cannot seal the audit's head: %w", err)
	}
	l.head.mu.Lock()
	defer l.head.mu.Unlock()
	if err := l.head.keeper.Save(head); err != nil {
		return unsealed("the sealed head of the audit cannot be written", err)
	}
	l.head.saved, l.head.mismatch, l.head.unsaved = head, nil, nil
	return nil
}

// saveHead seals after a commit. The record is there whether or not this works,
// so an error is a problem to show and to try again, not the caller's.
func (l *Log) saveHead(head Head) {
	if err := l.head.save(head); err != nil {
		l.log.Error("the audit's head cannot be sealed", "error", err)
		l.headIsBehind()
	}
}

// headIsBehind makes the writing goroutine seal the head within a second.
func (l *Log) headIsBehind() {
	if l.head.keeper != nil && !l.head.behind.Swap(true) {
		l.queue.wake()
	}
}

// committedHead reads in the writing transaction, so after every AppendTx whose
// Update has begun.
func (l *Log) committedHead(ctx context.Context) (head Head, err error) {
	err = l.db.Update(ctx, func(tx *sql.Tx) (err error) {
		head, err = lastHead(tx)
		return err
	})
	return head, err
}

func (l *Log) readHead(ctx context.Context) (head Head, err error) {
	err = l.db.View(ctx, func(tx *sql.Tx) (err error) {
		head, err = lastHead(tx)
		return err
	})
	return head, err
}
