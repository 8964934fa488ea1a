package app

import (
	"context"
	"net/http"
	"os"
	"time"

	"sallyport/api/attention"
	"sallyport/api/client"
	"sallyport/internal/appicon"
	"sallyport/internal/loginitem"
	"sallyport/internal/notification"
)

// focusHeader is how the page says with each question whether the person looks at it.
const focusHeader = "X-Sallyport-Focus"

// noticeFocus remembers what the page says.
func (a *answers) noticeFocus(r *http.Request) { a.focused.Store(r.Header.Get(focusHeader) == "yes") }

// settle is how long a notice waits for the page, which asks anew after the same event
// and says then whether somebody sees it.
const settle = 700 * time.Millisecond

// notices tells a person who does not look at the window what waits for them.
type notices struct {
	hosting *hosting
	focused func() bool
	show    func(review string) // what a click does; "" is the list of decisions
	settle  time.Duration
	open    func(context.Context, notification.Config) (attention.Screen, func(), error)
}

func newNotices(a *answers, show func(review string)) *notices {
	return &notices{hosting: a.hosting, focused: a.focused.Load, show: show, settle: settle, open: onDesktop}
}

// onDesktop is the desktop's own notices.
func onDesktop(ctx context.Context, cfg notification.Config) (attention.Screen, func(), error) {
	desktop, err := notification.Open(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	return desktop, func() { desktop.Close(context.WithoutCancel(ctx)) }, nil
}

// run tells until ctx ends. Where the desktop shows no notices there are none: the
// window itself has them all.
func (n *notices) run(ctx context.Context) {
	picture := appicon.Draw(64, false)
	screen, done, err := n.open(ctx, notification.Config{Name: "Sallyport", Desktop: loginitem.Name, Getenv: os.Getenv,
		Icon:    notification.Pixels{Width: 64, Height: 64, RGBA: picture.Pix},
		Clicked: func(key string) { n.show(attention.Review(key)) }})
	if err != nil {
		n.hosting.log.Info("no notices are shown", "error", err)
		return
	}
	defer done()
	teller := attention.NewTeller(screen)
	for ctx.Err() == nil {
		if now, err := n.hosting.current(ctx); err == nil && now != nil {
			n.follow(ctx, now, teller)
		}
		select {
		case <-ctx.Done():
		case <-time.After(n.hosting.pause):
		}
	}
}

// follow tells what waits at one backend, until it is another.
func (n *notices) follow(ctx context.Context, now *backend, teller *attention.Teller) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(now.context, stop)()
	source := client.InMemory(now.handler, n.hosting.token, "gui")
	err := attention.Watch(ctx, source, func(open []attention.Waiting) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(n.settle):
		}
		if n.focused() {
			teller.Seen(ctx, open)
			return
		}
		if err := teller.Tell(ctx, open); err != nil {
			n.hosting.log.Warn("a notice could not be shown", "error", err)
		}
	})
	if ctx.Err() == nil {
		n.hosting.log.Warn("what waits is not known for the moment", "error", err)
	}
}
