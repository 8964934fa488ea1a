package audit

import (
	"sync"
	"time"
)

const (
	foldWindow = 10 * time.Second // one record of equal refusals, spec/audit.md 6
	foldTick   = time.Second
	maxFolds   = 1024 // different refusals at once; more are counted together
	several    = "(several)"
)

// foldKey is what makes refusals equal.
type foldKey struct{ plugin, binding, action, target, reason, client string }

type fold struct {
	last  Record // the newest of those that are counted
	count int
	ends  time.Time
}

// folds counts equal refusals. Its size is bounded also against a client that
// makes up names: beyond maxFolds, refusals differ only by action, reason and
// client.
type folds struct {
	mu   sync.Mutex
	open map[foldKey]*fold
}

func (f *folds) init() { f.open = map[foldKey]*fold{} }

// Refused records a refusal. The first of equal ones (plugin, binding, action,
// target, reason, client) is queued at once; those within the next 10 s are
// counted and become one record. Empty action and result mean "refuse" and
// "refused".
func (l *Log) Refused(r Record) {
	if r.Action == "" {
		r.Action = Refuse
	}
	if r.Result == "" {
		r.Result = Refused
	}
	if r.At.IsZero() {
		r.At = l.now()
	}
	r.Count = max(r.Count, 1)
	if first, isFirst := l.folds.add(r, time.Now()); isFirst {
		l.Call(first)
	}
}

// add counts r, or returns it, perhaps generalised, when it is the first.
func (f *folds) add(r Record, now time.Time) (first Record, isFirst bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.open) >= maxFolds && f.open[keyOf(r)] == nil {
		r.Plugin, r.Version, r.Binding, r.Target, r.Identity, r.Decision = several, "", several, several, "", ""
	}
	key := keyOf(r)
	if open := f.open[key]; open != nil {
		open.count += r.Count
		open.last = r
		return Record{}, false
	}
	f.open[key] = &fold{ends: now.Add(foldWindow)}
	return r, true
}

func keyOf(r Record) foldKey {
	return foldKey{shown(r.Plugin), shown(r.Binding), shown(r.Action), shown(r.Target), shown(r.Reason), shown(r.Client)}
}

// due takes the counts whose window has ended. A refusal that did not come again
// is forgotten; one that did begins its next window.
func (f *folds) due(now time.Time) []Record {
	return f.take(func(open *fold) bool { return !now.Before(open.ends) }, func(key foldKey, open *fold) {
		if open.count == 0 {
			delete(f.open, key)
			return
		}
		open.ends = now.Add(foldWindow)
	})
}

// all takes every count; the windows go on.
func (f *folds) all() []Record {
	return f.take(func(*fold) bool { return true }, func(foldKey, *fold) {})
}

func (f *folds) take(which func(*fold) bool, then func(foldKey, *fold)) (records []Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, open := range f.open {
		if !which(open) {
			continue
		}
		then(key, open)
		if open.count > 0 {
			open.last.Count = open.count
			records = append(records, open.last)
			open.count, open.last = 0, Record{}
		}
	}
	return records
}

func (f *folds) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open) > 0
}
