package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCallRecordsAreThereWithin50Milliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		head := &memoryHead{}
		l, db := newLog(t, Config{Head: head})
		for i := range 100 {
			l.Call(Record{Result: OK, Plugin: "demo", Target: fmt.Sprint(i)})
		}
		time.Sleep(50 * time.Millisecond)
		wantVerified(t, db, nil, 100)
		for i, r := range mustQuery(t, l, Filter{}).Records {
			if r.Target != fmt.Sprint(99-i) || r.Action != Call {
				t.Errorf("place %d has %+v", i, r)
			}
		}
		if head.count() != 0 {
			t.Error("the head was sealed for a group")
		}
		time.Sleep(time.Second)
		if head.get().Seq != 100 || head.count() != 1 {
			t.Errorf("after a second the sealed head is %d, %d times", head.get().Seq, head.count())
		}
	})
}

func TestTheHeadIsSealedAtMostOnceASecondForGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		head := &memoryHead{}
		l, _ := newLog(t, Config{Head: head})
		for range 100 {
			l.Call(Record{Result: OK})
			time.Sleep(100 * time.Millisecond)
		}
		if n := head.count(); n < 8 || n > 10 {
			t.Errorf("in 10 seconds it was sealed %d times", n)
		}
	})
}

func TestAnUnknownActionIsStillRecorded(t *testing.T) {
	l, _ := newLog(t, Config{})
	l.Call(Record{Action: "dance", Result: "fine", Plugin: "demo"})
	must(t, l.Flush(t.Context()))
	if r := mustQuery(t, l, Filter{}).Records; len(r) != 1 || r[0].Action != Call || r[0].Result != Failed || r[0].Plugin != "demo" {
		t.Errorf("got %+v", r)
	}
}

func TestCloseWritesWhatManyCallersQueued(t *testing.T) {
	db, head := newStore(t), &memoryHead{}
	l, err := Open(t.Context(), Config{DB: db, Head: head})
	must(t, err)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 1000 {
				l.Call(Record{Result: OK})
			}
		})
	}
	group.Wait()
	must(t, l.Close(t.Context()))
	must(t, l.Close(t.Context()))
	wantVerified(t, db, head, 8000)
	if head.get().Seq != 8000 {
		t.Errorf("the sealed head is %d", head.get().Seq)
	}
	wantCode(t, "Flush afterwards", l.Flush(t.Context()), CodeClosed)
	l.Call(Record{Result: OK})
	wantCode(t, "a record after Close is counted", l.Close(t.Context()), CodeUnwritable)
}

func TestAQueueThatCannotBeWrittenWaitsTellsAndLosesNothing(t *testing.T) {
	inner := newStore(t)
	db := &failing{Database: inner}
	l := openLog(t, Config{DB: db})
	db.set(errDisk)
	const all = queueLength + 2*groupSize
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range all {
			l.Call(Record{Result: OK})
		}
	}()
	await(t, func() bool { return len(l.queue.records) == queueLength })
	select {
	case <-sent:
		t.Fatal("the queue has no bound")
	default:
	}
	await(t, func() bool { return l.Problem() != nil })
	wantCode(t, "meanwhile", l.Problem(), CodeUnwritable)
	if !errors.Is(l.Problem(), errDisk) {
		t.Error("the cause is not there")
	}
	waiting, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if err := l.Flush(waiting); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush gave %v", err)
	}
	db.set(nil)
	<-sent
	must(t, l.Flush(t.Context()))
	must(t, l.Problem())
	wantVerified(t, inner, nil, all)
}

func TestCloseThatCannotWriteSaysHowManyAreLost(t *testing.T) {
	db := &failing{Database: newStore(t), err: errDisk}
	l, err := Open(t.Context(), Config{DB: db})
	must(t, err)
	for range 700 {
		l.Call(Record{Result: OK})
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	err = l.Close(ctx)
	wantCode(t, "Close", err, CodeUnwritable)
	if err == nil || err.Error() != "700 audit records could not be written" {
		t.Errorf("got %v", err)
	}
}

func TestAStormOfEqualRefusalsIsFewRecordsWithTheWholeCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newLog(t, Config{})
		refused := Record{Plugin: "demo", Binding: "main", Target: "delete", Reason: "artifact-changed", Client: "agent", Via: "mcp"}
		l.Refused(refused)
		time.Sleep(50 * time.Millisecond)
		if r := mustQuery(t, l, Filter{}).Records; len(r) != 1 || r[0].Count != 1 || r[0].Action != Refuse || r[0].Result != Refused {
			t.Fatalf("the first is %+v", r)
		}
		for range 9_999 { // 30 seconds
			l.Refused(refused)
			time.Sleep(3 * time.Millisecond)
		}
		time.Sleep(12 * time.Second)
		records := mustQuery(t, l, Filter{Reason: "artifact-changed"}).Records
		total := 0
		for _, r := range records {
			total += r.Count
			if r.Plugin != "demo" || r.Target != "delete" || r.Client != "agent" || r.Via != "mcp" {
				t.Errorf("got %+v", r)
			}
		}
		if total != 10_000 || len(records) < 3 || len(records) > 5 {
			t.Errorf("%d records count %d", len(records), total)
		}
		time.Sleep(20 * time.Second) // forgotten: the next is a first again
		l.Refused(refused)
		time.Sleep(50 * time.Millisecond)
		if r := mustQuery(t, l, Filter{}).Records; r[0].Count != 1 || len(r) != len(records)+1 {
			t.Errorf("got %+v", r[0])
		}
	})
}

func TestRefusalsThatDifferAreNotFolded(t *testing.T) {
	l, _ := newLog(t, Config{})
	base := Record{Plugin: "p", Binding: "b", Target: "t", Reason: "r", Client: "c"}
	all := []Record{base, base, base, base, base, base}
	all[1].Plugin, all[2].Binding, all[3].Target, all[4].Reason, all[5].Client = "x", "x", "x", "x", "x"
	for range 3 {
		for _, r := range all {
			l.Refused(r)
		}
	}
	must(t, l.Flush(t.Context())) // the counts too
	counts := map[int]int{}
	for _, r := range mustQuery(t, l, Filter{}).Records {
		counts[r.Count]++
	}
	if counts[1] != 6 || counts[2] != 6 {
		t.Errorf("counts are %v", counts)
	}
}

func TestAStormOfInventedNamesIsBoundedToo(t *testing.T) {
	l, _ := newLog(t, Config{})
	for i := range 20_000 {
		l.Refused(Record{Plugin: "demo", Target: fmt.Sprint("tool", i), Reason: "tool-unknown", Client: "agent"})
	}
	must(t, l.Close(t.Context()))
	total, records := 0, 0
	for f := (Filter{Limit: maxPage}); ; {
		page := mustQuery(t, l, f)
		for _, r := range page.Records {
			total += r.Count
			records++
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	if total != 20_000 || records > maxFolds+10 {
		t.Errorf("%d records count %d", records, total)
	}
}

func await(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to that in 10 seconds")
		}
	}
}
