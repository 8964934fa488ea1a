package attention

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"sallyport/api"
	"sallyport/internal/notification"
)

// board is a screen in a test: what is on it now, by key.
type board struct {
	shown  map[string]notification.Notice
	broken error
}

func (b *board) Show(_ context.Context, n notification.Notice) error {
	if b.broken != nil {
		return b.broken
	}
	b.shown[n.Key] = n
	return nil
}

func (b *board) Withdraw(_ context.Context, key string) { delete(b.shown, key) }

func (b *board) keys() (keys []string) {
	for key := range b.shown {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func waitingFor(ids ...string) (open []Waiting) {
	for _, id := range ids {
		open = append(open, Waiting{id, id + "/main", id + " wants to run."})
	}
	return open
}

// TestWhatIsTold is a story: each look at the open decisions, and what is on the
// screen after it.
func TestWhatIsTold(t *testing.T) {
	screen := &board{shown: map[string]notification.Notice{}}
	teller := NewTeller(screen)
	for _, step := range []struct {
		says string
		open []Waiting
		want []string
	}{
		{"nothing waits", nil, nil},
		{"one begins to wait", waitingFor("a"), []string{"a"}},
		{"it is not told twice", waitingFor("a"), []string{"a"}},
		{"three at once are told one by one", waitingFor("a", "b", "c", "d"), []string{"a", "b", "c", "d"}},
		{"what was answered elsewhere is taken back", waitingFor("d"), []string{"d"}},
		{"four at once are one notice", waitingFor("d", "e", "f", "g", "h"), []string{"d", crowdKey}},
		{"it stays while one of them waits", waitingFor("h"), []string{crowdKey}},
		{"and goes with the last", nil, nil},
	} {
		if err := teller.Tell(t.Context(), step.open); err != nil {
			t.Fatal(err)
		}
		if got := screen.keys(); !slices.Equal(got, step.want) {
			t.Fatalf("%s: on the screen is %v, and not %v", step.says, got, step.want)
		}
	}
	teller.Seen(t.Context(), waitingFor("x"))
	if err := teller.Tell(t.Context(), waitingFor("x")); err != nil || len(screen.keys()) != 0 {
		t.Errorf("what was seen is told: %v %v", screen.keys(), err)
	}
	screen.broken = errOver
	if err := teller.Tell(t.Context(), waitingFor("y", "z")); !errors.Is(err, errOver) {
		t.Errorf("a screen that shows nothing: %v", err)
	}
	screen.broken = nil
	if err := teller.Tell(t.Context(), waitingFor("y", "z")); err != nil || !slices.Equal(screen.keys(), []string{"y", "z"}) {
		t.Errorf("once it shows something again there is %v, %v", screen.keys(), err)
	}
	if Review(crowdKey) != "" || Review("d-1") != "d-1" {
		t.Error("a click on a notice opens its decision, and one about many the list")
	}
}

// feed is a source with pages of events and lists of decisions, in order.
type feed struct {
	events    []api.EventPage
	decisions []api.DecisionList
	asked     []string
}

var errOver = errors.New("over")

func (f *feed) Get(_ context.Context, path string, query url.Values, answer any) error {
	f.asked = append(f.asked, path+" "+query.Get("after"))
	switch into := answer.(type) {
	case *api.EventPage:
		if len(f.events) == 0 {
			return errOver
		}
		*into, f.events = f.events[0], f.events[1:]
	case *api.DecisionList:
		*into, f.decisions = f.decisions[0], f.decisions[1:]
	default:
		return fmt.Errorf("%T was asked for", answer)
	}
	return nil
}

func TestLooksWhenSomethingChanged(t *testing.T) {
	one := api.Decision{ID: "d-1", Sentence: "notes 1.0.0 wants to run a program on this computer."}
	two := api.Decision{ID: "d-2", Sentence: "Which tools of notes may agents call?"}
	f := &feed{
		events: []api.EventPage{
			{Last: 7, Complete: true},
			{Last: 7, Complete: true},  // a poll without anything
			{Last: 9, Complete: false}, // events were missed
			{Last: 9, Complete: true},
		},
		decisions: []api.DecisionList{{Decisions: []api.Decision{one}}, {Decisions: []api.Decision{two, one}}},
	}
	var seen [][]Waiting
	if err := Watch(t.Context(), f, func(open []Waiting) { seen = append(seen, open) }); !errors.Is(err, errOver) {
		t.Fatalf("it ended with %v", err)
	}
	var said []string
	for _, open := range seen {
		for _, w := range open {
			said = append(said, w.Sentence)
		}
	}
	want := []string{one.Sentence, two.Sentence, one.Sentence}
	if !slices.Equal(said, want) {
		t.Errorf("it said %q", said)
	}
	if len(seen) != 2 {
		t.Errorf("it looked %d times: %v", len(seen), f.asked)
	}
}
