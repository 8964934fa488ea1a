package audit

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sallyport/internal/coded"
	"sallyport/internal/jcs"
	"sallyport/runtime/store"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("SALLYPORT_AUDIT_WRITER"); path != "" {
		writeUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

func TestRecordsChainFrom64Zeros(t *testing.T) {
	l, db := newLog(t, Config{})
	first := mustAppend(t, l, Record{Action: Ask, Result: OK, Plugin: "demo", Decision: "d1"})
	second := mustAppend(t, l, Record{Action: Allow, Result: OK, Plugin: "demo", Decision: "d1", Actor: "ada", Via: "cli"})
	if first.Seq != 1 || first.Prev != strings.Repeat("0", 64) || second.Seq != 2 || second.Prev != first.Hash {
		t.Errorf("got %+v then %+v", first, second)
	}
	seq, hash, err := l.Head(t.Context())
	if err != nil || seq != 2 || hash != second.Hash {
		t.Errorf("the head is %d %s, %v", seq, hash, err)
	}
	page := mustQuery(t, l, Filter{})
	if len(page.Records) != 2 || page.Records[0] != second || page.Records[1] != first {
		t.Errorf("read back: %+v", page.Records)
	}
	wantVerified(t, db, nil, 2)
}

// The hash that anybody can compute with a JCS library and SHA-256.
func TestTheHashIsOfPrevAndTheCanonicalRecordWithoutHash(t *testing.T) {
	for _, r := range []Record{
		{},
		{Seq: 7, At: time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC), Actor: "ada", Via: "cli", Action: Call,
			Plugin: "p", Version: "1.0.0", Binding: "b", Target: "line\nfeed \"quoted\" <&> \u2028 \x00 \x7f é 😀", Result: OK,
			Reason: "r", Identity: "i1:00", Decision: "d", Client: "c", Count: 3, DurationMs: 12, Prev: genesis},
	} {
		kept := newRow(r)
		encoded, err := json.Marshal(r)
		must(t, err)
		var members map[string]any
		must(t, json.Unmarshal(encoded, &members))
		if len(members) != 18 {
			t.Errorf("a record has %d members", len(members))
		}
		delete(members, "hash")
		want, err := jcs.Marshal(members)
		must(t, err)
		if got, ok := kept.appendJCS(nil); !ok || string(got) != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if sum, _ := kept.sum(); sum != fmt.Sprintf("%x", sha256.Sum256([]byte(r.Prev+string(want)))) {
			t.Errorf("the sum is %s", sum)
		}
	}
	// printf '%s%s' "$(printf 0%.0s $(seq 64))" '{"action":"stop",…,"via":""}' | sha256sum
	fixed := newRow(Record{Seq: 1, At: time.Unix(0, 0), Action: Stop, Result: OK, Count: 1, Prev: genesis}.tidy(time.Time{}))
	if sum, _ := fixed.sum(); sum != fixedHash {
		t.Errorf("the hash of the fixed record is %s", sum)
	}
}

const fixedHash = "c86eacc43420d67f1f239a064959a221113cfebc18dfc54f4e8b765ce6839791"

func TestWhatDoesNotExistIsRefused(t *testing.T) {
	l, db := newLog(t, Config{})
	for _, r := range []Record{{}, {Action: Call}, {Action: "read", Result: OK}, {Action: Call, Result: "fine"}} {
		_, err := l.Append(t.Context(), r)
		wantCode(t, fmt.Sprintf("%+v", r), err, CodeInvalid)
	}
	wantVerified(t, db, nil, 0)
	if len(Actions()) != 33 || len(Results()) != 3 {
		t.Errorf("%d actions, %d results", len(Actions()), len(Results()))
	}
	for _, action := range Actions() {
		for _, result := range Results() {
			mustAppend(t, l, Record{Action: action, Result: result, Target: "1:x"})
		}
	}
}

func TestValuesAreIdentifiersAndNothingLonger(t *testing.T) {
	l, db := newLog(t, Config{})
	for in, want := range map[string]string{
		"search":                   "search",
		"two\nlines\x1b[31m":       "two\nlines\x1b[31m",
		"nul\x00inside":            "nul\x00inside",
		"broken \xff":              "broken \ufffd",
		strings.Repeat("a", 512):   strings.Repeat("a", 512),
		strings.Repeat("a", 513):   strings.Repeat("a", 509) + "…",
		strings.Repeat("é", 300):   strings.Repeat("é", 254) + "…",
		"/home/ada/secret.txt":     "(path)",
		`C:\Users\ada\secret.txt`:  "(path)",
		"C:/Users/ada":             "(path)",
		`\\server\share`:           "(path)",
		"~/secret":                 "(path)",
		"file:///home/ada/secret":  "file:(path)",
		"https://example.com/tool": "https://example.com/tool",
		"a/b":                      "a/b",
	} {
		kept := mustAppend(t, l, Record{Action: Call, Result: OK, Target: in})
		if kept.Target != want {
			t.Errorf("%.40q is kept as %.40q", in, kept.Target)
		}
	}
	records := mustQuery(t, l, Filter{}).Records
	encoded, err := json.Marshal(records)
	must(t, err)
	if strings.ContainsAny(string(encoded), "\n\x00\x1b") {
		t.Error("a control character is in the JSON")
	}
	var again []Record
	must(t, json.Unmarshal(encoded, &again))
	for i := range again {
		if again[i] != records[i] {
			t.Errorf("JSON gave back %+v for %+v", again[i], records[i])
		}
	}
	wantVerified(t, db, nil, uint64(len(records)))
}

func TestOrderIsSeqWhateverTheClockSays(t *testing.T) { // C80
	clock := time.Date(2026, 1, 1, 12, 0, 0, 987654321, time.FixedZone("x", 7*3600))
	l, db := newLog(t, Config{Now: func() time.Time { return clock }})
	for _, step := range []time.Duration{0, 7 * time.Hour, -9 * time.Hour, -24 * 365 * 100 * time.Hour, 24 * 365 * 200 * time.Hour} {
		clock = clock.Add(step)
		r := mustAppend(t, l, Record{Action: Start, Result: OK})
		if !r.At.Equal(clock.Truncate(time.Millisecond)) || r.At.Location() != time.UTC {
			t.Errorf("at is %v, the clock said %v", r.At, clock)
		}
	}
	mustAppend(t, l, Record{Action: Start, Result: OK, At: time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC)})
	for i, r := range mustQuery(t, l, Filter{}).Records {
		if r.Seq != uint64(6-i) {
			t.Errorf("place %d has seq %d", i, r.Seq)
		}
	}
	wantVerified(t, db, nil, 6)
}

func TestARecordAndWhatItIsAboutAreOneTransaction(t *testing.T) {
	head := &memoryHead{}
	l, db := newLog(t, Config{Head: head})
	mustAppend(t, l, Record{Action: Ask, Result: OK})
	changedMind := errors.New("changed my mind")
	for _, outcome := range []error{changedMind, nil} {
		err := db.Update(t.Context(), func(tx *sql.Tx) error {
			if _, err := tx.Exec(`INSERT INTO meta (key, value) VALUES ('approval', x'01')`); err != nil {
				return err
			}
			for range 2 { // two in one transaction chain too
				if _, err := l.AppendTx(tx, Record{Action: Allow, Result: OK}); err != nil {
					return err
				}
			}
			return outcome
		})
		if !errors.Is(err, outcome) {
			t.Fatal(err)
		}
		must(t, l.SaveHead(t.Context()))
		want := uint64(1)
		if outcome == nil {
			want = 3
		}
		wantVerified(t, db, head, want)
		if head.get().Seq != want {
			t.Errorf("the sealed head is %d, want %d", head.get().Seq, want)
		}
	}
}

// failing is a database whose Updates fail while told to.
type failing struct {
	Database
	mu  sync.Mutex
	err error
}

func (f *failing) set(err error) { f.mu.Lock(); f.err = err; f.mu.Unlock() }

func (f *failing) Update(ctx context.Context, fn func(*sql.Tx) error) error {
	return f.Database.Update(ctx, func(tx *sql.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.err // a commit that fails
	})
}

var errDisk = errors.New("no space left on device")

func TestWhatCannotBeWrittenIsAnErrorAndTheChainGoesOn(t *testing.T) {
	head := &memoryHead{}
	inner := newStore(t)
	db := &failing{Database: inner}
	l := openLog(t, Config{DB: db, Head: head})
	first := mustAppend(t, l, Record{Action: Start, Result: OK})
	db.set(errDisk)
	if r, err := l.Append(t.Context(), Record{Action: Start, Result: OK}); !errors.Is(err, errDisk) || r != (Record{}) {
		t.Errorf("got %+v, %v", r, err)
	}
	if head.get() != (Head{first.Seq, first.Hash}) {
		t.Errorf("the sealed head is %+v", head.get())
	}
	db.set(nil)
	second := mustAppend(t, l, Record{Action: Start, Result: OK})
	if second.Seq != 2 || second.Prev != first.Hash {
		t.Errorf("got %+v", second)
	}
	wantVerified(t, inner, head, 2)
}

// memoryHead is a keeper that can fail.
type memoryHead struct {
	mu    sync.Mutex
	head  Head
	kept  bool
	saves int
	err   error
}

func (m *memoryHead) Load() (Head, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head, m.kept, m.err
}

func (m *memoryHead) Save(head Head) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.head, m.kept = head, true
		m.saves++
	}
	return m.err
}

func (m *memoryHead) get() Head    { m.mu.Lock(); defer m.mu.Unlock(); return m.head }
func (m *memoryHead) count() int   { m.mu.Lock(); defer m.mu.Unlock(); return m.saves }
func (m *memoryHead) fail(e error) { m.mu.Lock(); m.err = e; m.mu.Unlock() }

func newStore(t testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), store.Config{Path: filepath.Join(t.TempDir(), "sallyport.db")})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func openLog(t testing.TB, cfg Config) *Log {
	t.Helper()
	l, err := Open(context.Background(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close(context.Background())) })
	return l
}

func newLog(t testing.TB, cfg Config) (*Log, *store.DB) {
	t.Helper()
	db := newStore(t)
	cfg.DB = db
	return openLog(t, cfg), db
}

// fill writes n call records in one transaction.
func fill(t testing.TB, l *Log, n int, like Record) {
	t.Helper()
	like.Action, like.Result = Call, OK
	records := make([]Record, n)
	for i := range records {
		records[i] = like
	}
	must(t, l.db.Update(context.Background(), func(tx *sql.Tx) error {
		_, err := l.write(tx, records)
		return err
	}))
}

func mustAppend(t testing.TB, l *Log, r Record) Record {
	t.Helper()
	kept, err := l.Append(context.Background(), r)
	must(t, err)
	return kept
}

func mustQuery(t testing.TB, l *Log, f Filter) Page {
	t.Helper()
	page, err := l.Query(context.Background(), f)
	must(t, err)
	return page
}

func tamper(t testing.TB, db *store.DB, statement string, arguments ...any) {
	t.Helper()
	must(t, db.Update(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec(statement, arguments...)
		return err
	}))
}

func wantVerified(t testing.TB, db Database, head HeadKeeper, records uint64) {
	t.Helper()
	report, err := VerifyDatabase(context.Background(), db, head)
	if err != nil || report.Records != records || report.Break != nil || report.HeadChecked != (head != nil) {
		t.Errorf("verifying gave %+v, %v; want %d records", report, err, records)
	}
}

func wantBreak(t testing.TB, name string, db Database, head HeadKeeper, code string, seq uint64) {
	t.Helper()
	report, err := VerifyDatabase(context.Background(), db, head)
	if coded.Of(err) != code || report.Break == nil || report.Break.Code != code || report.Break.Seq != seq {
		t.Errorf("%s: verifying gave %+v (%+v), %v; want %s at %d", name, report, report.Break, err, code, seq)
	}
}

func wantCode(t testing.TB, name string, err error, code string) {
	t.Helper()
	if coded.Of(err) != code {
		t.Errorf("%s: got %q (%v), want %s", name, coded.Of(err), err, code)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}
