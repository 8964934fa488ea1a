package app

import (
	"context"
	"time"
)

// silence is after how long a page that asks nothing is taken for frozen: it asks for
// events every 20 s, whatever a person does.
const silence = 90 * time.Second

// whenSilent calls replace for a page that has fallen silent, and again where the new one
// says nothing either, until ctx ends.
func whenSilent(ctx context.Context, seen func() time.Time, replace func(quiet time.Duration)) {
	tick := time.NewTicker(silence / 9)
	defer tick.Stop()
	since := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if last := seen(); last.After(since) {
			since = last
		}
		if quiet := time.Since(since); quiet > silence {
			since = time.Now()
			replace(quiet)
		}
	}
}

// lastSeen is when the page last asked something.
func (a *answers) lastSeen() time.Time { return a.begun.Add(time.Duration(a.seen.Load())) }
