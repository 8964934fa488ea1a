// Package attention tells a person that something waits for their answer.
//
// The one idea: events tell when to look, and the list of open decisions is what is
// there; each look is compared with the one before, and only what is new is told, in
// one notice where much is new at once. What was answered elsewhere is taken back.
//
// It answers nothing and shows nothing itself. cli (the tray) and app (the window)
// import it.
package attention

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"sallyport/api"
	"sallyport/internal/notification"
)

// Source is the API, read only; *client.Client is one.
type Source interface {
	Get(ctx context.Context, path string, query url.Values, answer any) error
}

// poll is how long one look for changes waits for them.
const poll = 50 * time.Second

// Waiting is an open decision, in words.
type Waiting struct {
	ID       string
	Subject  string
	Sentence string
}

// Watch calls changed with the decisions that are open, newest first, once at the
// start and again whenever they may have changed. It ends with the context or with an
// error of the source.
func Watch(ctx context.Context, source Source, changed func([]Waiting)) error {
	var page api.EventPage
	if err := source.Get(ctx, "/v1/events", nil, &page); err != nil {
		return err
	}
	for look := true; ; {
		if look {
			open, err := waiting(ctx, source)
			if err != nil {
				return err
			}
			changed(open)
		}
		after := page.Last
		page = api.EventPage{}
		query := url.Values{"after": {strconv.FormatUint(after, 10)}, "wait": {poll.String()}}
		if err := source.Get(ctx, "/v1/events", query, &page); err != nil {
			return err
		}
		look = !page.Complete || len(page.Events) > 0
	}
}

func waiting(ctx context.Context, source Source) ([]Waiting, error) {
	var list api.DecisionList
	if err := source.Get(ctx, "/v1/decisions", url.Values{"open": {"true"}}, &list); err != nil {
		return nil, err
	}
	open := make([]Waiting, 0, len(list.Decisions))
	for _, d := range list.Decisions {
		open = append(open, Waiting{d.ID, d.Subject, d.Sentence})
	}
	return open, nil
}

// crowd is how many new decisions are told in one notice and not each in its own.
const crowd = 3

// crowdKey is the key of the notice about many.
const crowdKey = "many"

// Screen shows notices; *notification.Desktop is one.
type Screen interface {
	Show(ctx context.Context, n notification.Notice) error
	Withdraw(ctx context.Context, key string)
}

// Teller shows what is new. Its zero value is not ready: use NewTeller.
type Teller struct {
	screen Screen
	told   map[string]bool // decisions that are open and were told
}

// NewTeller returns a Teller that has told nothing.
func NewTeller(screen Screen) *Teller { return &Teller{screen, map[string]bool{}} }

// Tell shows a notice for each decision that was not told before, or one for all of
// them where they are more than three, and takes back those of decisions that are
// no longer open. Keys are the decisions' IDs, and "" never is one.
func (t *Teller) Tell(ctx context.Context, open []Waiting) error {
	fresh := t.take(ctx, open)
	if len(fresh) > crowd {
		n := notification.Notice{Key: crowdKey, Title: fmt.Sprintf("%d decisions wait for you", len(open)),
			Body: "The newest: " + fresh[0].Sentence, Action: "Show them"}
		return t.show(ctx, n, fresh)
	}
	for i, w := range fresh {
		n := notification.Notice{Key: w.ID, Title: "Sallyport asks", Body: w.Sentence, Action: "Review"}
		if err := t.show(ctx, n, fresh[i:]); err != nil {
			return err
		}
	}
	return nil
}

// show shows a notice. Where it cannot, those that are left untold are told with the next
// look.
func (t *Teller) show(ctx context.Context, n notification.Notice, untold []Waiting) error {
	err := t.screen.Show(ctx, n)
	if err != nil {
		for _, w := range untold {
			delete(t.told, w.ID)
		}
	}
	return err
}

// Seen is Tell for a person who sees the decisions already: what is over is taken back,
// and nothing is shown.
func (t *Teller) Seen(ctx context.Context, open []Waiting) { t.take(ctx, open) }

// take remembers what is open, takes back what no longer is, and returns what is new.
func (t *Teller) take(ctx context.Context, open []Waiting) (fresh []Waiting) {
	now := map[string]bool{}
	for _, w := range open {
		now[w.ID] = true
		if !t.told[w.ID] {
			fresh = append(fresh, w)
		}
	}
	for id := range t.told {
		if !now[id] {
			t.screen.Withdraw(ctx, id)
		}
	}
	if len(now) == 0 {
		t.screen.Withdraw(ctx, crowdKey)
	}
	t.told = now
	return fresh
}

// Review returns the decision that a clicked notice is about, or "" for all of them.
func Review(key string) string {
	if key == crowdKey {
		return ""
	}
	return key
}
