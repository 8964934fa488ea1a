// Package health knows which known problems are present now, and proves to
// scripts and to our own clients that the program on the port is this instance.
//
// The one idea: health is a leaf that others push into. Each known problem is a
// value in one closed list (problems.go) with a code, words, a severity and how
// long it must last before it is shown; a Tracker holds those that are present
// and asks nobody. So GET /api/desktop-health answers from memory, whatever the
// keyring, a plugin or the disk is doing (spec/local-api.md 4).
//
// It is not the audit (what happened) and not the log (for developers). It
// imports nothing of ours but internal/*; everybody else may import it.
package health

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Severity says what a problem means for the whole.
type Severity string

const (
	// Failing makes the health answer "ok":false: Sallyport does not do its job.
	Failing Severity = "failing"
	// Warning is something to look at; the job is done.
	Warning Severity = "warning"
	// Info needs no action.
	Info Severity = "info"
)

// Args are the values that a problem's text shows. Whoever sets a problem keeps
// secrets, file contents and absolute paths of the user's out of them.
type Args map[string]string

// Problem is a known problem that is present.
type Problem struct {
	Code     Code      `json:"code"`
	Subject  string    `json:"subject,omitempty"` // what it is about: a connector, a folder
	Title    string    `json:"title"`
	Severity Severity  `json:"severity"`
	Text     string    `json:"text"`
	Next     string    `json:"next,omitempty"`
	Since    time.Time `json:"since"`
}

type key struct {
	code    Code
	subject string
}

type entry struct {
	problem Problem
	visible bool
	timer   *time.Timer // makes it visible; nil once visible
}

// Tracker holds the problems that are present. Its methods never wait for
// anything but each other and may be called from any goroutine.
type Tracker struct {
	mu      sync.Mutex
	present map[key]*entry
	waiting map[chan struct{}]struct{}
	closed  bool
}

// NewTracker returns a Tracker in which Starting is present: nothing is healthy
// before its owner says so by clearing it.
func NewTracker() *Tracker {
	t := &Tracker{present: map[key]*entry{}, waiting: map[chan struct{}]struct{}{}}
	t.Set(Starting, "", nil)
	return t
}

// Set says that a problem is present. subject tells apart several of one code
// and may be empty. Setting a present problem again replaces its text and keeps
// its time. A code that is not in the list is shown as it is, as Failing: an
// unknown problem is not a harmless one.
func (t *Tracker) Set(code Code, subject string, args Args) {
	kind := kindOf(code)
	problem := Problem{
		Code: code, Subject: subject, Title: kind.Title, Severity: kind.Severity,
		Text: kind.Text(args), Next: kind.Next, Since: time.Now(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	k := key{code, subject}
	if old, ok := t.present[k]; ok {
		problem.Since = old.problem.Since
		changed := old.problem != problem
		old.problem = problem
		if old.visible && changed {
			t.announce()
		}
		return
	}
	e := &entry{problem: problem, visible: kind.VisibleAfter == 0}
	t.present[k] = e
	if e.visible {
		t.announce()
		return
	}
	e.timer = time.AfterFunc(kind.VisibleAfter, func() { t.show(k, e) })
}

// show makes e visible unless it has been cleared meanwhile.
func (t *Tracker) show(k key, e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.present[k] != e || e.visible {
		return
	}
	e.visible, e.timer = true, nil
	t.announce()
}

// Clear says that a problem is not present any more.
func (t *Tracker) Clear(code Code, subject string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(key{code, subject})
}

// ClearAll clears a code whatever the subject.
func (t *Tracker) ClearAll(code Code) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.present {
		if k.code == code {
			t.remove(k)
		}
	}
}

func (t *Tracker) remove(k key) {
	e, ok := t.present[k]
	if !ok {
		return
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	delete(t.present, k)
	if e.visible {
		t.announce()
	}
}

// Problems returns what is present and has lasted long enough to be shown: the
// failing first, then by code and subject. Never nil.
func (t *Tracker) Problems() []Problem {
	t.mu.Lock()
	all := make([]Problem, 0, len(t.present))
	for _, e := range t.present {
		if e.visible {
			all = append(all, e.problem)
		}
	}
	t.mu.Unlock()
	slices.SortFunc(all, func(a, b Problem) int {
		if d := a.Severity.rank() - b.Severity.rank(); d != 0 {
			return d
		}
		if d := strings.Compare(string(a.Code), string(b.Code)); d != 0 {
			return d
		}
		return strings.Compare(a.Subject, b.Subject)
	})
	return all
}

func (s Severity) rank() int {
	switch s {
	case Failing:
		return 0
	case Warning:
		return 1
	default:
		return 2
	}
}

// Failing returns the codes, sorted and each once, that make the health answer
// "ok":false now. Never nil.
func (t *Tracker) Failing() []Code {
	codes := []Code{}
	for _, p := range t.Problems() {
		if p.Severity == Failing {
			codes = append(codes, p.Code)
		}
	}
	return slices.Compact(codes)
}

// Subscribe returns a channel that gets a value soon after the problems that are
// shown change; several changes may be one value. A subscriber that does not read
// delays nobody. Call stop when done.
func (t *Tracker) Subscribe() (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	t.mu.Lock()
	t.waiting[ch] = struct{}{}
	t.mu.Unlock()
	return ch, func() {
		t.mu.Lock()
		delete(t.waiting, ch)
		t.mu.Unlock()
	}
}

func (t *Tracker) announce() {
	for ch := range t.waiting {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Close stops every timer; later calls of Set are ignored. What is present stays
// readable, for the last answers while a program ends.
func (t *Tracker) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, e := range t.present {
		if e.timer != nil {
			e.timer.Stop()
			e.timer = nil
		}
	}
}
