package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/runtime/store"
)

const day = 24 * time.Hour

// segment keeps these tests short; TestASegmentIs10000Records has the real one.
const segment = 100

// A test's policy removes what a real one does, in shorter segments.
func short(r Retention) Retention {
	r.segment = segment
	return r
}

func TestASegmentIs10000Records(t *testing.T) {
	t.Parallel()
	head := &memoryHead{}
	l, db := newLog(t, Config{Head: head, Policy: Retention{MaxRecords: 1}})
	fill(t, l, 10_000, Record{})
	must(t, l.Retain(t.Context()))
	if n := len(mustQuery(t, l, Filter{Action: Retain}).Records); n != 0 {
		t.Errorf("the newest segment was removed")
	}
	fill(t, l, 1, Record{})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, head, 1+1)
	retained := mustQuery(t, l, Filter{Action: Retain}).Records
	if len(retained) != 1 || retained[0].Count != 10_000 || !strings.HasPrefix(retained[0].Target, "10000:") {
		t.Errorf("retain records are %+v", retained)
	}
	must(t, openLog(t, Config{DB: db, Head: head}).Problem())
	// Where whoever verifies expects the end of a segment, the retain record is
	// what was changed; anywhere else a record is missing.
	tamper(t, db, `UPDATE audit SET target = '' WHERE seq = 10002`)
	wantBreak(t, "the retain record says nothing", db, head, CodeBroken, 10002)
	tamper(t, db, `DELETE FROM audit WHERE seq = 10001`)
	wantBreak(t, "the oldest one left is gone", db, head, CodeBroken, 1)
}

func TestRetentionRemovesWholeOldSegmentsAndTheRestVerifies(t *testing.T) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	head := &memoryHead{}
	l, db := newLog(t, Config{Head: head, Policy: short(Retention{}), Now: func() time.Time { return clock }})
	fill(t, l, 2*segment, Record{Plugin: "old"})
	clock = clock.Add(60 * day)
	fill(t, l, 5, Record{Plugin: "young"})

	must(t, l.Retain(t.Context()))
	wantVerified(t, db, head, 2*segment+5) // nothing is old yet

	clock = clock.Add(31 * day)
	before := mustQuery(t, l, Filter{After: 2*segment - 1, Before: 2*segment + 1}).Records[0]
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, head, 5+2)
	retained := mustQuery(t, l, Filter{Action: Retain}).Records
	if len(retained) != 2 || retained[0].Count != segment || retained[0].Target != fmt.Sprintf("%d:%s", 2*segment, before.Hash) {
		t.Errorf("retain records are %+v", retained)
	}
	if head.get().Seq != 2*segment+7 {
		t.Errorf("the sealed head is %d", head.get().Seq)
	}

	must(t, l.Retain(t.Context())) // and again there is nothing to do
	mustAppend(t, l, Record{Action: Start, Result: OK})
	clock = clock.Add(100 * day)
	must(t, l.Retain(t.Context())) // the newest segment stays, however old
	wantVerified(t, db, head, 8)
	must(t, openLog(t, Config{DB: db, Head: head}).Problem())
}

func TestRetentionByNumber(t *testing.T) {
	l, db := newLog(t, Config{Policy: short(Retention{MaxRecords: segment + 50})})
	fill(t, l, 2*segment, Record{})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, nil, segment+1) // with the retain record
	fill(t, l, 49, Record{})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, nil, segment+50) // as many as there may be
	fill(t, l, 1, Record{})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, nil, 52)
}

func TestRetentionOfAnEmptyOrShortAudit(t *testing.T) {
	l, db := newLog(t, Config{Policy: short(Retention{MaxRecords: 1, MaxAge: time.Nanosecond})})
	must(t, l.Retain(t.Context()))
	fill(t, l, segment, Record{At: time.Unix(0, 0)})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, nil, segment)
}

func TestATimeInTheFutureDoesNotKeepASegmentForEver(t *testing.T) { // C80
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l, db := newLog(t, Config{Policy: short(Retention{}), Now: func() time.Time { return clock }})
	fill(t, l, segment-1, Record{})
	fill(t, l, 1, Record{At: clock.Add(3650 * day)})
	clock = clock.Add(91 * day)
	fill(t, l, 1, Record{})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, nil, 2)
}

// retained is a log whose first segment was removed.
func retained(t *testing.T) (*Log, *store.DB, *memoryHead) {
	t.Helper()
	head := &memoryHead{}
	l, db := newLog(t, Config{Head: head, Policy: short(Retention{MaxRecords: segment})})
	fill(t, l, segment+10, Record{})
	must(t, l.Retain(t.Context()))
	mustAppend(t, l, Record{Action: Stop, Result: OK})
	wantVerified(t, db, head, 12)
	return l, db, head
}

func TestTamperingAfterRetention(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	_, db, head := retained(t)
	tamper(t, db, `CREATE TABLE saved AS SELECT * FROM audit`)
	for _, v := range []struct {
		name, sql string
		code      string
		seq       uint64
	}{
		{"the oldest one left", `DELETE FROM audit WHERE seq = 101`, CodeBroken, 101},
		{"the oldest one changed", `UPDATE audit SET plugin = 'x' WHERE seq = 101`, CodeBroken, 101},
		{"the oldest one begins anew", `UPDATE audit SET prev = '` + zeros + `' WHERE seq = 101`, CodeBroken, 101},
		{"the retain record taken away", `DELETE FROM audit WHERE seq = 111`, CodeBroken, 111},
		{"the retain record says another hash", `UPDATE audit SET target = '100:` + zeros + `' WHERE seq = 111`, CodeBroken, 111},
		{"the retain record says nothing", `UPDATE audit SET target = '' WHERE seq = 111`, CodeBroken, 111},
		{"the retain record is of a call", `UPDATE audit SET action = 'call' WHERE seq = 111`, CodeBroken, 111},
		{"the retain record and all after it", `DELETE FROM audit WHERE seq > 110`, CodeTruncated, 111},
		{"all but the newest", `DELETE FROM audit WHERE seq < 112`, CodeBroken, 1},
		{"all", `DELETE FROM audit`, CodeTruncated, 1},
	} {
		tamper(t, db, `DELETE FROM audit`)
		tamper(t, db, `INSERT INTO audit SELECT * FROM saved`)
		tamper(t, db, v.sql)
		report, err := verify(t.Context(), db, head, segment)
		if report.Break == nil || report.Break.Code != v.code || report.Break.Seq != v.seq {
			t.Errorf("%s: got %+v, %v; want %s at %d", v.name, report.Break, err, v.code, v.seq)
		}
	}
}

func TestABrokenSegmentIsNotRemoved(t *testing.T) {
	l, db := newLog(t, Config{Policy: short(Retention{MaxRecords: 50})})
	fill(t, l, segment+10, Record{})
	tamper(t, db, `UPDATE audit SET plugin = 'x' WHERE seq = 50`)
	wantCode(t, "Retain", l.Retain(t.Context()), CodeBroken)
	wantBreak(t, "it is still there", db, nil, CodeBroken, 50)
}

func TestTheSealedRecordIsNotOneThatWasRemoved(t *testing.T) {
	_, db, head := retained(t)
	head.Save(Head{50, strings.Repeat("a", 64)}) // an old head put back
	wantBreak(t, "an older head", db, head, CodeBroken, 50)
	wantCode(t, "at open", openLog(t, Config{DB: db, Head: head}).Problem(), CodeBroken)
}

// TestLessIsKeptOnceThatIsChosen: what was chosen holds from then on, and what is left
// verifies.
func TestLessIsKeptOnceThatIsChosen(t *testing.T) {
	head := &memoryHead{}
	l, db := newLog(t, Config{Head: head, Policy: short(Retention{})})
	if n, since, err := l.Extent(t.Context()); n != 0 || !since.IsZero() || err != nil {
		t.Errorf("of nothing there are %d since %s (%v)", n, since, err)
	}
	fill(t, l, 3*segment+5, Record{})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, head, 3*segment+5)
	l.SetPolicy(Retention{MaxRecords: segment + 10})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, head, segment+5+2)
	if n, since, err := l.Extent(t.Context()); n != segment+5+2 || since.IsZero() || err != nil {
		t.Errorf("there are %d since %s (%v)", n, since, err)
	}
}
