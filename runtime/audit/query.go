package audit

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/coded"
)

// maxPage is the most records of one page, spec/audit.md 7.
const maxPage = 500

// Filter chooses records; zero fields choose all.
type Filter struct {
	Plugin, Action, Result, Reason, Client string

	Since, Until  time.Time // by the record's clock: Since ≤ at < Until
	After, Before uint64    // After < seq < Before

	Limit  int    // of a page, 1 to 500; 0 is 100; Export ignores it
	Cursor string // a page's Next, with the same filter; Export ignores it
}

// Page is one page of records, newest first.
type Page struct {
	Records []Record `json:"records"`
	Next    string   `json:"next,omitempty"` // the cursor of the next page; empty on the last
}

// Query returns the newest records that f chooses, newest first.
func (l *Log) Query(ctx context.Context, f Filter) (Page, error) { return QueryDatabase(ctx, l.db, f) }

// QueryDatabase is Query without a running log.
func QueryDatabase(ctx context.Context, db Database, f Filter) (Page, error) {
	limit, err := f.limit()
	if err != nil {
		return Page{}, err
	}
	if err := f.applyCursor(); err != nil {
		return Page{}, err
	}
	where, arguments := f.where()
	page := Page{Records: make([]Record, 0, limit)}
	err = db.View(ctx, func(tx *sql.Tx) error {
		query := selectRows + where + ` ORDER BY seq DESC LIMIT ?`
		return eachRow(tx, func(r *row) error {
			page.Records = append(page.Records, r.record())
			return ctx.Err()
		}, query, append(arguments, limit+1)...)
	})
	if err != nil {
		return Page{}, fmt.Errorf("cannot read the audit: %w", err)
	}
	if len(page.Records) > limit {
		page.Records = page.Records[:limit]
		page.Next = cursor(page.Records[limit-1].Seq)
	}
	return page, nil
}

func (f Filter) limit() (int, error) {
	switch {
	case f.Limit == 0:
		return 100, nil
	case f.Limit < 0 || f.Limit > maxPage:
		return 0, coded.New(CodeInvalid, fmt.Sprintf("a page of the audit has 1 to %d records", maxPage))
	}
	return f.Limit, nil
}

const cursorPrefix = "a1:"

func cursor(seq uint64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + strconv.FormatUint(seq, 10)))
}

// applyCursor narrows Before to where the last page ended.
func (f *Filter) applyCursor() error {
	if f.Cursor == "" {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(f.Cursor)
	number, has := strings.CutPrefix(string(text), cursorPrefix)
	seq, parseErr := strconv.ParseUint(number, 10, 53)
	if err != nil || !has || parseErr != nil || seq == 0 {
		return coded.New(CodeInvalid, "the cursor is not one of the audit's")
	}
	if f.Before == 0 || seq < f.Before {
		f.Before = seq
	}
	return nil
}

// where writes the conditions. The doubled ones let SQLite use the partial
// indexes, whose condition it must find in the query word for word.
func (f Filter) where() (string, []any) {
	var conditions []string
	var arguments []any
	add := func(condition string, argument any) {
		conditions = append(conditions, condition)
		arguments = append(arguments, argument)
	}
	if f.Plugin != "" {
		add("plugin = ?", f.Plugin)
	}
	if f.Client != "" {
		add("client <> '' AND client = ?", f.Client)
	}
	switch f.Action {
	case "":
	case Call:
		add("+action = ?", f.Action) // most records: no index helps
	default:
		add("action <> 'call' AND action = ?", f.Action)
	}
	switch f.Result {
	case "":
	case OK:
		add("+result = ?", f.Result)
	default:
		add("result <> 'ok' AND result = ?", f.Result)
	}
	if f.Reason != "" {
		add("reason <> '' AND reason = ?", f.Reason)
	}
	if !f.Since.IsZero() {
		add("at >= ?", f.Since.UTC().Format(timeFormat))
	}
	if !f.Until.IsZero() {
		add("at < ?", f.Until.UTC().Format(timeFormat))
	}
	if f.After > 0 {
		add("seq > ?", int64(min(f.After, maxNumber)))
	}
	if f.Before > 0 {
		add("seq < ?", int64(min(f.Before, maxNumber)))
	}
	if len(conditions) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(conditions, " AND "), arguments
}
