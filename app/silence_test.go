package app

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestASilentPageIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		a := newAnswers(newHosting(Config{}), nil, nil)
		var replaced atomic.Int32
		go whenSilent(ctx, a.lastSeen, func(time.Duration) { replaced.Add(1) })
		ask := func() { a.seen.Store(int64(time.Since(a.begun))) }
		for range 20 { // it asks for events as it should
			time.Sleep(20 * time.Second)
			ask()
		}
		if replaced.Load() != 0 {
			t.Errorf("a page that asks was replaced %d times", replaced.Load())
		}
		time.Sleep(silence + silence/9 + time.Second)
		if replaced.Load() != 1 {
			t.Errorf("a silent page was replaced %d times", replaced.Load())
		}
		time.Sleep(silence / 2)
		ask()
		time.Sleep(silence / 2)
		if replaced.Load() != 1 {
			t.Errorf("the new page, which asks, was replaced: %d", replaced.Load())
		}
		stop()
		synctest.Wait()
	})
}
