package approvals

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"sallyport/internal/coded"
	"sallyport/internal/jcs"
	"sallyport/runtime/artifact"
	"sallyport/runtime/store"
)

// The kinds of sealed documents.
const (
	approvalKind = "approval"
	decisionKind = "decision"
	clientKind   = "client"
	settingKind  = "setting"
	listKind     = "list" // the list of the current seals, itself sealed
	keptKind     = "kept" // what did not verify, kept for inspection
)

const schemaVersion = 1

type docKey struct{ kind, id string }

func (k docKey) String() string { return k.kind + "/" + k.id }

type doc struct {
	body, seal []byte
	epoch      int64
	problem    *coded.Error // why it does not count; its bytes are kept
}

// documents are the rows of "sealed" in memory. Whoever holds them holds the
// gate's lock.
//
// The one idea: the seals of all current rows are listed in one more row, sealed
// with the epoch, which every change raises. A row alone can be genuine and yet
// not belong there (an old one put back, a deleted one restored); the list tells.
type documents struct {
	db     *store.DB
	keeper *Keeper
	rows   map[docKey]doc
	epoch  int64
	list   string       // seal of the list
	stored *sealList    // the list as it was read, if it verified
	fault  *coded.Error // why nothing counts
}

type sealList struct {
	Schema int               `json:"schema"`
	Epoch  string            `json:"epoch"`
	Seals  map[string]string `json:"seals"`
}

// schemaOf returns the document's own version, 0 for one from before versions.
func schemaOf(body []byte) int {
	var versioned struct {
		Schema *int `json:"schema"`
	}
	if json.Unmarshal(body, &versioned) != nil || versioned.Schema == nil {
		return 0
	}
	return *versioned.Schema
}

func openDocuments(ctx context.Context, db *store.DB, keeper *Keeper) (*documents, error) {
	d := &documents{db: db, keeper: keeper}
	return d, d.load(ctx)
}

// load reads every row and judges it. It writes nothing.
func (d *documents) load(ctx context.Context) error {
	d.rows, d.epoch, d.list, d.stored, d.fault = map[docKey]doc{}, 0, "", nil, nil
	err := d.db.View(ctx, func(tx *sql.Tx) error { return d.read(ctx, tx) })
	if err != nil {
		return fmt.Errorf("cannot read the approvals: %w", err)
	}
	head, fault := d.keeper.state()
	list, listed := d.judgeList()
	switch {
	case fault != nil:
		d.fault = fault
	case listed && (d.epoch < head.Epoch || d.epoch == head.Epoch && d.list != head.List):
		d.fault = rolledBack("an older store was put back", nil)
	case !listed && head.Epoch > 0:
		d.fault = rolledBack("the list of approvals is missing or damaged", nil)
	}
	d.judgeRows(list)
	if d.fault == nil && listed && d.epoch > head.Epoch {
		// A crash came between a commit and its head.
		return d.saveHead()
	}
	return nil
}

func (d *documents) read(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, "SELECT kind, id, body, seal, epoch FROM sealed WHERE kind <> ?", keptKind)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key docKey
		var row doc
		if err := rows.Scan(&key.kind, &key.id, &row.body, &row.seal, &row.epoch); err != nil {
			return err
		}
		d.rows[key] = row
	}
	return rows.Err()
}

var listKey = docKey{listKind, "seals"}

// judgeList takes the list out of the rows and reports whether it verifies.
func (d *documents) judgeList() (sealList, bool) {
	row, ok := d.rows[listKey]
	delete(d.rows, listKey)
	var list sealList
	if !ok || !d.keeper.verify(listKind, listKey.id, row.epoch, row.body, row.seal) {
		return list, false
	}
	if json.Unmarshal(row.body, &list) != nil || list.Epoch != strconv.FormatInt(row.epoch, 10) {
		return list, false
	}
	d.epoch, d.list, d.stored = row.epoch, sealText(row.seal), &list
	return list, true
}

func (d *documents) storedList() (sealList, bool) {
	if d.stored == nil {
		return sealList{}, false
	}
	return *d.stored, true
}

func (d *documents) judgeRows(list sealList) {
	for key, row := range d.rows {
		row.problem = d.judge(key, row, list.Seals[key.String()])
		d.rows[key] = row
	}
	for name := range list.Seals {
		kind, id, _ := bytes.Cut([]byte(name), []byte("/"))
		key := docKey{string(kind), string(id)}
		if _, ok := d.rows[key]; !ok {
			d.rows[key] = doc{problem: tampered("the record was removed from the store")}
		}
	}
}

// judge says why a row does not count, or nil. One from before digests and
// versions is told apart first: nobody tampered with it (spec/approval.md 3.1).
func (d *documents) judge(key docKey, row doc, listed string) *coded.Error {
	if key.kind == approvalKind && isLegacy(row.body) {
		return &coded.Error{Code: "legacy-approval", Sentence: "the approval is from before digests and says nothing about these bytes",
			Next: "review the connector and approve it again"}
	}
	if !d.keeper.verify(key.kind, key.id, row.epoch, row.body, row.seal) || listed != sealText(row.seal) {
		if d.fault != nil {
			return d.fault
		}
		return tampered("the seal of the record does not verify")
	}
	if schemaOf(row.body) != schemaVersion {
		return &coded.Error{Code: "approval-version", Sentence: "the record was written by another version of Sallyport",
			Next: "review the connector and approve it again, or use that version"}
	}
	return d.fault
}

func tampered(sentence string) *coded.Error {
	return &coded.Error{Code: "approval-tampered", Sentence: sentence,
		Next: "the record is kept for inspection; review the connector and approve it again"}
}

// get returns a document's bytes. ok is false where there is none; one that does
// not count comes with its problem and no bytes.
func (d *documents) get(kind, id string) (body []byte, ok bool, problem *coded.Error) {
	row, ok := d.rows[docKey{kind, id}]
	if !ok {
		return nil, false, nil
	}
	if row.problem != nil {
		return nil, true, row.problem
	}
	return row.body, true, nil
}

// stillThere reports whether the row on disk is, byte for byte, the one in
// memory: a start does not trust what the store was when it was opened.
func (d *documents) stillThere(ctx context.Context, kind, id string) (bool, error) {
	want := d.rows[docKey{kind, id}]
	var same bool
	err := d.db.View(ctx, func(tx *sql.Tx) error {
		var found doc
		err := tx.QueryRowContext(ctx, "SELECT body, seal, epoch FROM sealed WHERE kind = ? AND id = ?", kind, id).
			Scan(&found.body, &found.seal, &found.epoch)
		if err == sql.ErrNoRows {
			return nil
		}
		same = bytes.Equal(found.body, want.body) && bytes.Equal(found.seal, want.seal) && found.epoch == want.epoch
		return err
	})
	return same, err
}

// batch is a set of documents to write (nil: to remove), in one transaction.
type batch map[docKey][]byte

func (b batch) put(kind, id string, v any) error {
	body, err := json.Marshal(v) // sealed as the bytes that they are
	if err != nil {
		return fmt.Errorf("cannot write the record %q: %w", id, err)
	}
	b[docKey{kind, id}] = body
	return nil
}

func (b batch) remove(kind, id string) { b[docKey{kind, id}] = nil }

// write puts the batch and the new list into tx, and returns what to do in memory
// once tx is committed.
func (d *documents) write(ctx context.Context, tx *sql.Tx, b batch) (apply func(), err error) {
	if d.fault != nil {
		return nil, d.fault
	}
	epoch := d.epoch + 1
	next := make(map[docKey]doc, len(d.rows)+len(b))
	for key, row := range d.rows {
		next[key] = row
	}
	for key, body := range b {
		if err := keepProblem(ctx, tx, key, d.rows[key]); err != nil {
			return nil, err
		}
		if body == nil {
			delete(next, key)
			if _, err := tx.ExecContext(ctx, "DELETE FROM sealed WHERE kind = ? AND id = ?", key.kind, key.id); err != nil {
				return nil, err
			}
			continue
		}
		row := doc{body: body, epoch: epoch, seal: d.keeper.seal(key.kind, key.id, epoch, body)}
		next[key] = row
		if err := putRow(ctx, tx, key, row); err != nil {
			return nil, err
		}
	}
	list, err := d.listOf(next, epoch)
	if err != nil {
		return nil, err
	}
	if err := putRow(ctx, tx, listKey, list); err != nil {
		return nil, err
	}
	return func() { d.rows, d.epoch, d.list = next, epoch, sealText(list.seal) }, nil
}

// listOf lists the seals that count. A row that does not keeps failing.
func (d *documents) listOf(rows map[docKey]doc, epoch int64) (doc, error) {
	list := sealList{Schema: schemaVersion, Epoch: strconv.FormatInt(epoch, 10), Seals: make(map[string]string, len(rows))}
	for key, row := range rows {
		switch {
		case row.problem == nil:
			list.Seals[key.String()] = sealText(row.seal)
		case row.body == nil:
			list.Seals[key.String()] = "removed" // stays known as missing
		}
	}
	body, err := jcs.Marshal(list)
	if err != nil {
		return doc{}, err
	}
	return doc{body: body, epoch: epoch, seal: d.keeper.seal(listKind, listKey.id, epoch, body)}, nil
}

func putRow(ctx context.Context, tx *sql.Tx, key docKey, row doc) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO sealed (kind, id, body, seal, epoch) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, seal = excluded.seal, epoch = excluded.epoch`,
		key.kind, key.id, row.body, row.seal, row.epoch)
	return err
}

// keepProblem copies a row that did not verify aside before it is replaced.
func keepProblem(ctx context.Context, tx *sql.Tx, key docKey, row doc) error {
	if row.problem == nil || row.body == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO sealed (kind, id, body, seal, epoch)
		SELECT ?, ? || hex(substr(seal, 1, 8)), body, seal, epoch FROM sealed WHERE kind = ? AND id = ?`,
		keptKind, key.String()+"@"+strconv.FormatInt(row.epoch, 10)+":", key.kind, key.id)
	return err
}

func (d *documents) saveHead() error {
	epoch, list, guiOnly := d.epoch, d.list, d.guiOnly()
	return d.keeper.change(func(h *head) { h.Epoch, h.List, h.GUIOnly = epoch, list, guiOnly })
}

// problems lists why rows do not count, each with its KIND/ID as the path.
func (d *documents) problems() []*coded.Error {
	if d.fault != nil {
		return []*coded.Error{d.fault}
	}
	var out []*coded.Error
	for key, row := range d.rows {
		if row.problem != nil {
			e := *row.problem
			e.Path = key.String()
			out = append(out, &e)
		}
	}
	return out
}

// digests finds every digest in the bytes of every approval, whether or not it
// counts.
func (d *documents) digests() []artifact.Digest {
	var found []artifact.Digest
	for key, row := range d.rows {
		if key.kind != approvalKind {
			continue
		}
		for _, match := range digestPattern.FindAll(row.body, -1) {
			found = append(found, artifact.Digest(match))
		}
	}
	return found
}

var digestPattern = regexp.MustCompile(`a1:[0-9a-f]{64}`)
