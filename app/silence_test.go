package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestASilentPageIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		a := newAnswers(newHosting(Config{}), nil, nil)
		replaced := 0
		go whenSilent(ctx, a.lastSeen, func(time.Duration) { replaced++ })
		ask := func() { a.seen.Store(int64(time.Since(a.begun))) }
		for range 20 { // it asks for events as it should
			time.Sleep(20 * time.Second)
			ask()
		}
		if replaced != 0 {
			t.Errorf("a page that asks was replaced %d times", replaced)
		}
		time.Sleep(silence + silence/9 + time.Second)
		if replaced != 1 {
			t.Errorf("a silent page was replaced %d times", replaced)
		}
		time.Sleep(silence / 2)
		ask()
		time.Sleep(silence / 2)
		if replaced != 1 {
			t.Errorf("the new page, which asks, was replaced: %d", replaced)
		}
		stop()
		synctest.Wait()
	})
}
