package host

import (
	"context"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/jsonedit"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
)

const (
	// IdleAfter is how long a server may be unused before it is stopped, where nobody
	// chose; the next call starts it again.
	IdleAfter = 30 * time.Minute

	shortestTime = time.Minute
	// longestQuestion keeps what a person agrees to near to what they were shown.
	longestQuestion = 24 * time.Hour
	longestIdle     = 7 * 24 * time.Hour
)

// Times are the lengths of time that the operator chooses.
type Times struct {
	Question time.Duration // a question waits so long for an answer
	Idle     time.Duration // a server that nobody uses is stopped after it; 0 never
}

// ConfiguredTimes are Times in config.json, in whole minutes; nil where nobody chose.
type ConfiguredTimes struct {
	QuestionMinutes *int `json:"questionMinutes,omitempty"`
	IdleMinutes     *int `json:"idleMinutes,omitempty"`
}

// effective checks what is chosen and fills in the rest.
func (c ConfiguredTimes) effective() (Times, error) {
	t := Times{approvals.DefaultDecisionTTL, IdleAfter}
	if c.QuestionMinutes != nil {
		t.Question = time.Duration(*c.QuestionMinutes) * time.Minute
	}
	if c.IdleMinutes != nil {
		t.Idle = time.Duration(*c.IdleMinutes) * time.Minute
	}
	switch {
	case c.QuestionMinutes != nil && (*c.QuestionMinutes > int(longestQuestion.Minutes()) || t.Question < shortestTime):
		return Times{}, &coded.Error{Code: "time-invalid", Sentence: "a question waits between 1 minute and 24 hours", Next: "choose a time within that"}
	case c.IdleMinutes != nil && *c.IdleMinutes != 0 && (*c.IdleMinutes > int(longestIdle.Minutes()) || t.Idle < shortestTime):
		return Times{}, &coded.Error{Code: "time-invalid", Sentence: "a server is stopped after between 1 minute and 7 days without use, or never", Next: "choose a time within that"}
	}
	return t, nil
}

// Times returns what holds now.
func (h *Host) Times() Times {
	if now := h.times.Load(); now != nil {
		return *now
	}
	return Times{approvals.DefaultDecisionTTL, IdleAfter}
}

// SetTimes changes what is given, in whole minutes; a negative number goes back to what
// holds by default. Questions that are open keep the time they were asked with.
func (h *Host) SetTimes(ctx context.Context, change ConfiguredTimes, by approvals.By) error {
	h.configuring.Lock()
	defer h.configuring.Unlock()
	if change.QuestionMinutes == nil && change.IdleMinutes == nil {
		return coded.New("bad-request", "no time is named")
	}
	if _, err := change.chosen().effective(); err != nil {
		return err
	}
	config, err := h.configFile().read()
	if err != nil {
		return err
	}
	before, err := h.readConfiguration()
	if err != nil {
		return err
	}
	for _, one := range []struct {
		name       string
		value, was *int
	}{{"questionMinutes", change.QuestionMinutes, before.Times.QuestionMinutes}, {"idleMinutes", change.IdleMinutes, before.Times.IdleMinutes}} {
		if one.value == nil || *one.value < 0 && one.was == nil {
			continue
		}
		if err := config.edit(func(raw []byte) ([]byte, error) {
			if *one.value < 0 {
				return jsonedit.Remove(raw, "times", one.name)
			}
			return jsonedit.Set(raw, *one.value, "times", one.name)
		}); err != nil {
			return err
		}
		record := audit.Record{Action: audit.Setting, Result: audit.OK, Actor: by.User, Via: by.Via, Target: one.name}
		if _, err := h.Audit.Append(ctx, record); err != nil {
			return err
		}
	}
	if err := config.write(); err != nil {
		return err
	}
	return h.reconfigured(ctx)
}

// chosen is the change without what goes back to the default.
func (c ConfiguredTimes) chosen() ConfiguredTimes {
	if c.QuestionMinutes != nil && *c.QuestionMinutes < 0 {
		c.QuestionMinutes = nil
	}
	if c.IdleMinutes != nil && *c.IdleMinutes < 0 {
		c.IdleMinutes = nil
	}
	return c
}
