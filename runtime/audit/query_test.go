package audit

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// mixed is a log of 60 records, one a minute: plugins a, b, c in turn, every
// fourth refused, two clients.
func mixed(t testing.TB) *Log {
	t.Helper()
	minute := -1
	l, _ := newLog(t, Config{Now: func() time.Time { minute++; return noon.Add(time.Duration(minute) * time.Minute) }})
	for i := range 60 {
		r := Record{Action: Call, Result: OK, Plugin: string(rune('a' + i%3)), Client: fmt.Sprint("client", i%2), Target: fmt.Sprint(i)}
		if i%4 == 0 {
			r.Action, r.Result, r.Reason = Refuse, Refused, fmt.Sprint("reason", i%8)
		}
		mustAppend(t, l, r)
	}
	return l
}

func TestFiltersChooseWhatTheySay(t *testing.T) {
	l := mixed(t)
	for _, v := range []struct {
		name   string
		filter Filter
		want   func(i int, r Record) bool
	}{
		{"nothing", Filter{}, func(int, Record) bool { return true }},
		{"a plugin", Filter{Plugin: "b"}, func(i int, _ Record) bool { return i%3 == 1 }},
		{"an action", Filter{Action: Refuse}, func(i int, _ Record) bool { return i%4 == 0 }},
		{"calls", Filter{Action: Call}, func(i int, _ Record) bool { return i%4 != 0 }},
		{"a result", Filter{Result: Refused}, func(i int, _ Record) bool { return i%4 == 0 }},
		{"what went well", Filter{Result: OK}, func(i int, _ Record) bool { return i%4 != 0 }},
		{"a reason", Filter{Reason: "reason4"}, func(i int, _ Record) bool { return i%8 == 4 }},
		{"a client", Filter{Client: "client1"}, func(i int, _ Record) bool { return i%2 == 1 }},
		{"since", Filter{Since: noon.Add(50 * time.Minute)}, func(i int, _ Record) bool { return i >= 50 }},
		{"since, in another zone", Filter{Since: noon.Add(50 * time.Minute).In(time.FixedZone("x", -9*3600))}, func(i int, _ Record) bool { return i >= 50 }},
		{"until", Filter{Until: noon.Add(10 * time.Minute)}, func(i int, _ Record) bool { return i < 10 }},
		{"after", Filter{After: 55}, func(_ int, r Record) bool { return r.Seq > 55 }},
		{"before", Filter{Before: 5}, func(_ int, r Record) bool { return r.Seq < 5 }},
		{"all of it at once", Filter{Plugin: "a", Action: Refuse, Result: Refused, Reason: "reason0", Client: "client0", Since: noon, Until: noon.Add(time.Hour), After: 1, Before: 60},
			func(i int, r Record) bool { return i%24 == 0 && r.Seq > 1 }},
		{"nobody", Filter{Plugin: "z"}, func(int, Record) bool { return false }},
		{"SQL", Filter{Plugin: "' OR 1 --"}, func(int, Record) bool { return false }},
	} {
		var want []string
		for i := 59; i >= 0; i-- {
			if v.want(i, Record{Seq: uint64(i + 1)}) {
				want = append(want, fmt.Sprint(i))
			}
		}
		for _, limit := range []int{0, 1, 7, 60} {
			got := readAll(t, l, v.filter, limit)
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s, %d a page:\n got %v\nwant %v", v.name, limit, got, want)
			}
		}
	}
}

// readAll follows the cursors and returns the targets.
func readAll(t *testing.T, l *Log, f Filter, limit int) (targets []string) {
	t.Helper()
	f.Limit = limit
	for pages := 0; pages < 100; pages++ {
		page := mustQuery(t, l, f)
		for _, r := range page.Records {
			targets = append(targets, r.Target)
		}
		if page.Next == "" {
			return targets
		}
		if limit > 0 && len(page.Records) != limit {
			t.Errorf("a page has %d records", len(page.Records))
		}
		f.Cursor = page.Next
	}
	t.Fatal("there is no last page")
	return nil
}

func TestPagesDoNotMoveWhileRecordsAreWritten(t *testing.T) {
	l := mixed(t)
	first := mustQuery(t, l, Filter{Limit: 10})
	mustAppend(t, l, Record{Action: Stop, Result: OK})
	second := mustQuery(t, l, Filter{Limit: 10, Cursor: first.Next})
	if first.Records[9].Seq != 51 || second.Records[0].Seq != 50 {
		t.Errorf("pages end at %d and begin at %d", first.Records[9].Seq, second.Records[0].Seq)
	}
}

func TestPagesAndCursorsThatDoNotExist(t *testing.T) {
	l := mixed(t)
	for _, f := range []Filter{{Limit: 501}, {Limit: -1}, {Cursor: "x"}, {Cursor: "!!"}, {Cursor: cursor(0)}, {Cursor: cursor(1 << 60)}} {
		_, err := l.Query(t.Context(), f)
		wantCode(t, fmt.Sprintf("%+v", f), err, CodeInvalid)
	}
	if page := mustQuery(t, l, Filter{Limit: maxPage}); len(page.Records) != 60 {
		t.Errorf("%d records", len(page.Records))
	}
	encoded, err := json.Marshal(mustQuery(t, l, Filter{Plugin: "z"}))
	if err != nil || string(encoded) != `{"records":[]}` {
		t.Errorf("no records are %s, %v", encoded, err)
	}
}

func TestEveryFilterHasAnIndex(t *testing.T) {
	l, db := newLog(t, Config{})
	fill(t, l, 100, Record{})
	for index, f := range map[string]Filter{
		"audit_plugin": {Plugin: "x"}, "audit_client": {Client: "x"}, "audit_action": {Action: Start},
		"audit_result": {Result: Failed}, "audit_reason": {Reason: "x"},
	} {
		where, arguments := f.where()
		var plan strings.Builder
		must(t, db.View(t.Context(), func(tx *sql.Tx) error {
			rows, err := tx.Query(`EXPLAIN QUERY PLAN `+selectRows+where+` ORDER BY seq DESC LIMIT 10`, arguments...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var a, b, c, detail string
				if err := rows.Scan(&a, &b, &c, &detail); err != nil {
					return err
				}
				plan.WriteString(detail + "\n")
			}
			return rows.Err()
		}))
		if !strings.Contains(plan.String(), index) || strings.Contains(plan.String(), "TEMP B-TREE") {
			t.Errorf("%+v is read by %s", f, plan.String())
		}
	}
}

func TestExportIsOldestFirstAndReadableAgain(t *testing.T) {
	l := mixed(t)
	var lines bytes.Buffer
	must(t, l.Export(t.Context(), &lines, JSONLines, Filter{Plugin: "b", Limit: 1, Cursor: "ignored"}))
	prev := uint64(0)
	count := 0
	for line := range strings.Lines(lines.String()) {
		var r Record
		must(t, json.Unmarshal([]byte(line), &r))
		sum, _ := newRow(r).sum()
		if r.Plugin != "b" || r.Seq <= prev || r.Hash != sum {
			t.Errorf("line %q", line)
		}
		prev = r.Seq
		count++
	}
	if count != 20 {
		t.Errorf("%d lines", count)
	}
	wantCode(t, "another format", l.Export(t.Context(), &lines, "xml", Filter{}), CodeInvalid)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Export(cancelled, &lines, CSV, Filter{}); err == nil {
		t.Error("a cancelled export is whole")
	}
	if err := l.Export(t.Context(), fullWriter{}, CSV, Filter{}); err == nil {
		t.Error("a full disk was not noticed for CSV")
	}
	if err := l.Export(t.Context(), fullWriter{}, JSONLines, Filter{}); err == nil {
		t.Error("a full disk was not noticed for JSON lines")
	}
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errDisk }

func TestCSVCellsAreNoFormulas(t *testing.T) {
	l, _ := newLog(t, Config{})
	values := map[string]string{
		`=HYPERLINK("http://x","y")`: `'=HYPERLINK("http://x","y")`,
		"+1+1":                       "'+1+1",
		"-1":                         "'-1",
		"@SUM(A1)":                   "'@SUM(A1)",
		"\t=1":                       "'\t=1",
		"\r=1":                       "'\r=1",
		"  =1":                       "'  =1",
		"|cmd":                       "'|cmd",
		"＝1":                         "'＝1",
		"a,\"b\"\nc":                 "a,\"b\"\nc",
		"plain-name_1.0":             "plain-name_1.0",
		"":                           "",
	}
	for value := range values {
		mustAppend(t, l, Record{Action: Call, Result: OK, Target: value})
	}
	var out bytes.Buffer
	must(t, l.Export(t.Context(), &out, CSV, Filter{}))
	rows, err := csv.NewReader(&out).ReadAll()
	must(t, err)
	if len(rows) != len(values)+1 || strings.Join(rows[0], ",") != strings.Join(csvNames(), ",") {
		t.Fatalf("%d rows, names %q", len(rows), rows[0])
	}
	for _, kept := range mustQuery(t, l, Filter{}).Records {
		if got := rows[kept.Seq][8]; got != values[kept.Target] {
			t.Errorf("%q became %q", kept.Target, got)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("x")
	f.Add(cursor(17))
	f.Fuzz(func(t *testing.T, text string) {
		filter := Filter{Cursor: text}
		if err := filter.applyCursor(); err == nil && text != "" && filter.Before == 0 {
			t.Errorf("%q narrows nothing", text)
		}
	})
}

// Whatever the values are, what is kept has a canonical form, reads back equal
// and is no longer than it may be.
func FuzzRecord(f *testing.F) {
	f.Add("a", "b\n", "\xff", int64(-1), 0, int64(0))
	f.Fuzz(func(t *testing.T, plugin, target, reason string, at int64, count int, duration int64) {
		r := Record{Plugin: plugin, Target: target, Reason: reason, At: time.Unix(at, 7), Count: count, DurationMs: duration, Prev: genesis}.tidy(noon)
		if _, ok := newRow(r).sum(); !ok {
			t.Fatalf("no canonical form: %+v", r)
		}
		encoded, err := json.Marshal(r)
		must(t, err)
		var again Record
		must(t, json.Unmarshal(encoded, &again))
		if again != r || len(r.Plugin) > maxField || len(r.Target) > maxField {
			t.Fatalf("%+v became %+v", r, again)
		}
		if twice := r.tidy(noon); twice != r {
			t.Fatalf("tidying again changes %+v to %+v", r, twice)
		}
	})
}
