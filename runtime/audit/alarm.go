package audit

import "time"

// alarm is a timer that is set at most once until it rings; an idle log has none
// running.
type alarm struct {
	timer *time.Timer
	armed bool
}

func newAlarm() *alarm {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &alarm{timer: timer}
}

func (a *alarm) rings() <-chan time.Time { return a.timer.C }
func (a *alarm) rang()                   { a.armed = false }
func (a *alarm) stop()                   { a.timer.Stop() }

func (a *alarm) set(after time.Duration) {
	if !a.armed {
		a.armed = true
		a.timer.Reset(after)
	}
}
