package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/runtime/store"
)

const day = 24 * time.Hour

func TestRetentionRemovesWholeOldSegmentsAndTheRestVerifies(t *testing.T) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	head := &memoryHead{}
	l, db := newLog(t, Config{Head: head, Now: func() time.Time { return clock }})
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
	if len(retained) != 2 || retained[0].Count != segment || retained[0].Target != fmt.Sprintf("20000:%s", before.Hash) {
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
	l, db := newLog(t, Config{Policy: Retention{MaxRecords: segment + 100}})
	fill(t, l, 2*segment, Record{})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, nil, segment+1) // with the retain record
	fill(t, l, 99, Record{})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, nil, segment+100) // as many as there may be
	fill(t, l, 1, Record{})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, nil, 102)
}

func TestRetentionOfAnEmptyOrShortAudit(t *testing.T) {
	l, db := newLog(t, Config{Policy: Retention{MaxRecords: 1, MaxAge: time.Nanosecond}})
	must(t, l.Retain(t.Context()))
	fill(t, l, segment, Record{At: time.Unix(0, 0)})
	must(t, l.Retain(t.Context()))
	wantVerified(t, db, nil, segment)
}

func TestATimeInTheFutureDoesNotKeepASegmentForEver(t *testing.T) { // C80
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l, db := newLog(t, Config{Now: func() time.Time { return clock }})
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
	l, db := newLog(t, Config{Head: head, Policy: Retention{MaxRecords: segment}})
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
		{"the oldest one left", `DELETE FROM audit WHERE seq = 10001`, CodeBroken, 10001},
		{"the oldest one changed", `UPDATE audit SET plugin = 'x' WHERE seq = 10001`, CodeBroken, 10001},
		{"the oldest one begins anew", `UPDATE audit SET prev = '` + zeros + `' WHERE seq = 10001`, CodeBroken, 10001},
		{"the retain record taken away", `DELETE FROM audit WHERE seq = 10011`, CodeBroken, 10011},
		{"the retain record says another hash", `UPDATE audit SET target = '10000:` + zeros + `' WHERE seq = 10011`, CodeBroken, 10011},
		{"the retain record says nothing", `UPDATE audit SET target = '' WHERE seq = 10011`, CodeBroken, 10011},
		{"the retain record is of a call", `UPDATE audit SET action = 'call' WHERE seq = 10011`, CodeBroken, 10011},
		{"the retain record and all after it", `DELETE FROM audit WHERE seq > 10010`, CodeTruncated, 10011},
		{"all but the newest", `DELETE FROM audit WHERE seq < 10012`, CodeBroken, 1},
		{"all", `DELETE FROM audit`, CodeTruncated, 1},
	} {
		tamper(t, db, `DELETE FROM audit`)
		tamper(t, db, `INSERT INTO audit SELECT * FROM saved`)
		tamper(t, db, v.sql)
		report, err := VerifyDatabase(t.Context(), db, head)
		if report.Break == nil || report.Break.Code != v.code || report.Break.Seq != v.seq {
			t.Errorf("%s: got %+v, %v; want %s at %d", v.name, report.Break, err, v.code, v.seq)
		}
	}
}

func TestABrokenSegmentIsNotRemoved(t *testing.T) {
	l, db := newLog(t, Config{Policy: Retention{MaxRecords: 100}})
	fill(t, l, segment+10, Record{})
	tamper(t, db, `UPDATE audit SET plugin = 'x' WHERE seq = 500`)
	wantCode(t, "Retain", l.Retain(t.Context()), CodeBroken)
	wantBreak(t, "it is still there", db, nil, CodeBroken, 500)
}

func TestTheSealedRecordIsNotOneThatWasRemoved(t *testing.T) {
	_, db, head := retained(t)
	head.Save(Head{5000, strings.Repeat("a", 64)}) // an old head put back
	wantBreak(t, "an older head", db, head, CodeBroken, 5000)
	wantCode(t, "at open", openLog(t, Config{DB: db, Head: head}).Problem(), CodeBroken)
}
