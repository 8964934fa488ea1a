package audit

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sallyport/internal/coded"
)

// Formats of Export.
const (
	JSONLines = "jsonl" // one record a line, as JSON
	CSV       = "csv"   // with a line of names, RFC 4180
)

// Export writes the records that f chooses, oldest first.
func (l *Log) Export(ctx context.Context, w io.Writer, format string, f Filter) error {
	return ExportDatabase(ctx, l.db, w, format, f)
}

// ExportDatabase is Export without a running log.
func ExportDatabase(ctx context.Context, db Database, w io.Writer, format string, f Filter) error {
	buffered := bufio.NewWriter(w)
	var write func(Record) error
	finish := buffered.Flush
	switch format {
	case JSONLines:
		encoder := json.NewEncoder(buffered)
		encoder.SetEscapeHTML(false)
		write = func(r Record) error { return encoder.Encode(r) }
	case CSV:
		table := csv.NewWriter(buffered)
		write = func(r Record) error { return table.Write(cells(r)) }
		finish = func() error { table.Flush(); return errorOr(table.Error(), buffered.Flush) }
		if err := table.Write(csvNames()); err != nil {
			return fmt.Errorf("cannot export the audit: %w", err)
		}
	default:
		return coded.New(CodeInvalid, `the audit is exported as "jsonl" or "csv"`)
	}
	where, arguments := f.where()
	err := db.View(ctx, func(tx *sql.Tx) error {
		return eachRow(tx, func(r *row) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return write(r.record())
		}, selectRows+where+` ORDER BY seq`, arguments...)
	})
	if err = errorOr(err, finish); err != nil {
		return fmt.Errorf("cannot export the audit: %w", err)
	}
	return nil
}

func errorOr(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

func csvNames() []string {
	return []string{
		"seq", "at", "actor", "via", "action", "plugin", "version", "binding", "target", "result",
		"reason", "identity", "decision", "client", "count", "durationMs", "prev", "hash",
	}
}

func cells(r Record) []string {
	all := []string{
		strconv.FormatUint(r.Seq, 10), r.At.UTC().Format(timeFormat), r.Actor, r.Via, r.Action, r.Plugin,
		r.Version, r.Binding, r.Target, r.Result, r.Reason, r.Identity, r.Decision, r.Client,
		strconv.Itoa(r.Count), strconv.FormatInt(r.DurationMs, 10), r.Prev, r.Hash,
	}
	for i := range all {
		all[i] = inert(all[i])
	}
	return all
}

// inert keeps a spreadsheet from taking a cell for a formula: a value may be a
// tool's name, which the plugin chose.
func inert(cell string) string {
	start := strings.TrimLeft(cell, " \t\r\n\u00a0\ufeff")
	if start != "" && strings.ContainsRune("=+-@|%＝＋－＠", []rune(start)[0]) || start != cell {
		return "'" + cell
	}
	return cell
}
