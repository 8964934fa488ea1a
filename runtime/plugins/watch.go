package plugins

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// The watcher's times. A change is told within 2 s (spec/approval.md 5.3): at
// worst one poll, or the gap and the debounce, and the walk itself.
const (
	defaultPoll   = time.Second
	debounce      = 100 * time.Millisecond // editors write in several steps
	minGap        = 500 * time.Millisecond // between two looks at one place
	defaultBudget = 8192                   // directories
)

// EventKind says what an Event is about.
type EventKind string

const (
	// FolderChanged: plugins in a folder are new, gone or changed in what a
	// listing shows. Scan again.
	FolderChanged EventKind = "folder"
	// TreeChanged: something below a watched tree is not as it was. Digest again.
	TreeChanged EventKind = "tree"
)

// Event says that something changed. It says so at least once, at most about
// twice a second for one place, and perhaps when the bytes are the same.
type Event struct {
	Kind EventKind
	// Path is the folder's path as configured, or the tree's as given to WatchTree.
	Path string
	// Changed are the names in the folder that are new, gone or different; nil
	// for a tree.
	Changed []string
}

// Watcher looks at folders of plugins and at the trees of running plugins. It
// is told of changes where the system can tell within the budget, and else
// looks every poll; all answers come from looking, never from being told.
type Watcher struct {
	events   chan Event
	requests chan request
	done     chan struct{}
}

type request struct {
	tree   string
	remove bool
	ready  chan struct{}
}

// Watch watches the catalog's folders until ctx ends; then Events is closed.
func (c *Catalog) Watch(ctx context.Context) *Watcher {
	w := &Watcher{events: make(chan Event), requests: make(chan request), done: make(chan struct{})}
	loop := &watchLoop{
		poll: c.config.Poll, budget: c.config.WatchBudget, log: c.log,
		places: map[placeKey]*watched{}, holders: map[string]int{}, pending: map[placeKey]Event{},
	}
	if loop.poll <= 0 {
		loop.poll = defaultPoll
	}
	if loop.budget <= 0 {
		loop.budget = defaultBudget
	}
	// A catalog's first look is the state that later ones are compared with.
	for _, folder := range c.config.Folders {
		loop.places[placeKey{FolderChanged, folder.Path}] = &watched{key: placeKey{FolderChanged, folder.Path}, survey: folderSurvey(folder, c.namedBy)}
	}
	if notifies {
		notifier, err := fsnotify.NewBufferedWatcher(1024)
		if err != nil {
			c.log.Warn("changes are polled for, the system cannot tell", "error", err)
		}
		loop.notifier = notifier
	}
	go func() {
		defer close(w.done)
		defer close(w.events)
		loop.run(ctx, w)
	}()
	return w
}

// Events returns the channel of changes. A slow reader misses none: changes of
// one place are put together.
func (w *Watcher) Events() <-chan Event { return w.events }

// WatchTree watches everything below dir. It returns once the present state is
// known, so that any later change is an event. Watching a tree twice is
// watching it once.
func (w *Watcher) WatchTree(dir string) { w.ask(request{tree: dir, ready: make(chan struct{})}) }

// UnwatchTree ends WatchTree.
func (w *Watcher) UnwatchTree(dir string) {
	w.ask(request{tree: dir, remove: true, ready: make(chan struct{})})
}

func (w *Watcher) ask(r request) {
	select {
	case w.requests <- r:
		<-r.ready
	case <-w.done:
	}
}

type placeKey struct {
	kind EventKind
	path string
}

// watched is one folder or tree.
type watched struct {
	key    placeKey
	survey func() survey
	last   survey
	// polled: the system does not tell of changes here, or not of all.
	polled bool
	dirs   []string  // directories that the system watches for this place
	due    time.Time // next look; zero when none is planned
	looked time.Time // end of the last look
}

// watchLoop is the state of the one goroutine that does everything.
type watchLoop struct {
	poll     time.Duration
	budget   int
	log      *slog.Logger
	notifier *fsnotify.Watcher // nil: poll everything
	places   map[placeKey]*watched
	holders  map[string]int // watched directory → places that want it
	pending  map[placeKey]Event
}

func (l *watchLoop) run(ctx context.Context, w *Watcher) {
	var told <-chan fsnotify.Event
	var failed <-chan error
	if l.notifier != nil {
		defer func() { _ = l.notifier.Close() }()
		told, failed = l.notifier.Events, l.notifier.Errors
	}
	for _, place := range l.places {
		l.begin(place)
	}
	ticker := time.NewTicker(l.poll)
	defer ticker.Stop()
	look := time.NewTimer(time.Hour)
	defer look.Stop()
	for {
		out, next, key := l.nextEvent(w.events)
		look.Reset(l.untilDue())
		select {
		case <-ctx.Done():
			return
		case out <- next:
			delete(l.pending, key)
		case r := <-w.requests:
			l.handle(r)
			close(r.ready)
		case event := <-told:
			l.told(event.Name)
		case err := <-failed:
			// Most likely an overflow: anything may have changed.
			l.log.Warn("the system lost count of changes", "error", err)
			for _, place := range l.places {
				place.plan(debounce)
			}
		case <-ticker.C:
			l.tick()
		case <-look.C:
			l.lookAtDue()
		}
	}
}

// nextEvent returns a nil channel when there is nothing to send.
func (l *watchLoop) nextEvent(events chan Event) (chan<- Event, Event, placeKey) {
	for key, event := range l.pending {
		return events, event, key
	}
	return nil, Event{}, placeKey{}
}

func (l *watchLoop) handle(r request) {
	key := placeKey{TreeChanged, r.tree}
	place, known := l.places[key]
	switch {
	case r.remove && known:
		l.release(place)
		delete(l.places, key)
		delete(l.pending, key)
	case !r.remove && !known:
		place = &watched{key: key, survey: treeSurvey(r.tree)}
		l.places[key] = place
		l.begin(place)
	}
}

// begin takes the first look. Watches are set before it, and what appeared
// between a directory's watch and the look at it is caught by settling.
func (l *watchLoop) begin(place *watched) {
	place.last = place.survey()
	l.settle(place)
	place.looked = time.Time{} // the first change need not wait for the gap
}

// settle makes the system watch the directories of the last look, then looks
// again until nothing new turned up: a file put into a new directory before it
// was watched is seen by the look after.
func (l *watchLoop) settle(place *watched) (changed map[string]bool) {
	changed = map[string]bool{}
	const rounds = 3
	for range rounds {
		l.watch(place)
		now := place.survey()
		difference := place.last.difference(now)
		place.last = now
		place.looked = time.Now()
		maps.Copy(changed, difference)
		if len(difference) == 0 {
			return changed
		}
	}
	place.plan(debounce)
	return changed
}

// told plans a look at every place that has something to do with the path.
func (l *watchLoop) told(path string) {
	for _, place := range l.places {
		if place.last.concerns(path) {
			place.plan(debounce)
		}
	}
}

// plan sets the next look, no sooner than the gap after the last one. A planned
// look is never put off: constant changes do not hide one.
func (p *watched) plan(wait time.Duration) {
	due := time.Now().Add(wait)
	if earliest := p.looked.Add(minGap); due.Before(earliest) {
		due = earliest
	}
	if p.due.IsZero() || due.Before(p.due) {
		p.due = due
	}
}

func (l *watchLoop) untilDue() time.Duration {
	wait := time.Hour
	for _, place := range l.places {
		if !place.due.IsZero() {
			wait = min(wait, max(time.Until(place.due), 0))
		}
	}
	return wait
}

// tick looks where the system does not tell, and elsewhere only whether the
// place is still the same directory: a folder above it may have been replaced.
func (l *watchLoop) tick() {
	for _, place := range l.places {
		if place.polled || place.last.moved() {
			place.plan(0)
		}
	}
}

func (l *watchLoop) lookAtDue() {
	now := time.Now()
	for _, place := range l.places {
		if place.due.IsZero() || place.due.After(now) {
			continue
		}
		place.due = time.Time{}
		found := place.survey()
		changed := place.last.difference(found)
		place.last = found
		place.looked = time.Now()
		if len(changed) == 0 {
			continue
		}
		maps.Copy(changed, l.settle(place))
		l.changed(place, changed)
	}
}

// changed adds to the event that waits to be taken.
func (l *watchLoop) changed(place *watched, names map[string]bool) {
	event, waiting := l.pending[place.key]
	if !waiting {
		event = Event{Kind: place.key.kind, Path: place.key.path}
	}
	if event.Kind == FolderChanged {
		for _, name := range event.Changed {
			names[name] = true
		}
		event.Changed = slices.Sorted(maps.Keys(names))
	}
	l.pending[place.key] = event
}
