package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"sallyport/api/attention"
	"sallyport/internal/appicon"
	"sallyport/internal/browser"
	"sallyport/internal/coded"
	"sallyport/internal/loginitem"
	"sallyport/internal/notification"
	"sallyport/internal/tray"
)

func (c *command) trayCommand() *cobra.Command {
	return &cobra.Command{
		Use: "tray", Short: "Show an icon and a notice when a decision waits for you, until Ctrl-C", Args: exactly(),
		Long: `Stay beside the sidecar and tell you when something waits for your answer: by a
notice, and by an icon where the desktop shows icons of programs. A click opens the
review in the browser; nothing is ever answered by a click. A sidecar is started
where none runs. Ctrl-C, or Quit in the icon's menu, ends this and leaves the sidecar.

Notices need a Linux desktop; the icon needs one that shows icons of programs, or
Windows. macOS has neither: there the window tells you.`,
		Example: "  sallyport tray",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.tray(cmd.Context()) },
	}
}

const (
	// trayRetry is how long the tray waits before it looks for the sidecar, or for
	// somebody who shows icons, again.
	trayRetry = 5 * time.Second
	// trayLines is how many decisions the menu names.
	trayLines = 5
	// lineLength is how many characters of one the menu shows.
	lineLength = 90
)

func (c *command) tray(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	release, err := c.oneTray()
	if err != nil {
		return err
	}
	defer release()
	helper := &trayHelper{c: c, quit: stop, change: make(chan struct{}, 1)}
	notices, noNotices := notification.Open(ctx, notification.Config{Name: "Sallyport", Desktop: loginitem.Name, Icon: trayPixels(),
		Getenv: os.Getenv, Clicked: func(key string) { helper.open(ctx, attention.Review(key)) }})
	if noNotices == nil {
		helper.notices = notices
		defer notices.Close(context.WithoutCancel(ctx))
	} else if noIcon := tray.Available(ctx); noIcon != nil {
		return &coded.Error{Code: coded.Of(noIcon), Sentence: "neither an icon nor notices can be shown: " + noIcon.Error(),
			Next: "see what waits with: sallyport decisions watch, or: sallyport open"}
	}
	if _, err := c.sidecarOrStart(ctx); err != nil {
		return err
	}
	helper.run(ctx)
	return nil
}

// oneTray makes this the only tray of the data folder.
func (c *command) oneTray() (release func(), err error) {
	state := c.places().State
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the state folder: %w", err)
	}
	lock := flock.New(filepath.Join(state, "tray.lock"), flock.SetPermissions(0o600))
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("cannot lock the state folder for the tray: %w", err)
	}
	if !held {
		return nil, &coded.Error{Code: "tray-running", Sentence: "Sallyport's icon is there already", Next: "look for it in the desktop's bar"}
	}
	return func() { _ = lock.Close() }, nil
}

// trayPixels is the icon that notices carry.
func trayPixels() notification.Pixels {
	picture := appicon.Draw(64, false)
	return notification.Pixels{Width: 64, Height: 64, RGBA: picture.Pix}
}

// trayHelper is what one run of the tray knows.
type trayHelper struct {
	c       *command
	quit    func()
	notices *notification.Desktop // nil: none are shown here
	change  chan struct{}         // something is to be shown anew

	mu      sync.Mutex
	running bool // the sidecar answers
	waiting []attention.Waiting
	said    bool
}

// run watches and shows until the context ends.
func (t *trayHelper) run(ctx context.Context) {
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		t.watch(ctx)
	}()
	defer func() { <-watched }()
	defer t.quit()
	for {
		err := tray.Run(ctx, func(icon *tray.Tray) {
			t.say("Sallyport's icon is there; Ctrl-C ends it and leaves the sidecar")
			t.draw(ctx, icon)
		})
		if err == nil {
			return
		}
		t.say(err.Error() + "; notices are shown without an icon, until Ctrl-C")
		select {
		case <-ctx.Done():
			return
		case <-time.After(trayRetry): // a desktop's bar may start after this
		}
	}
}

func (t *trayHelper) say(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.said {
		fmt.Fprintln(t.c.Err, line)
	}
	t.said = true
}

// watch follows the sidecar, and the one after it.
func (t *trayHelper) watch(ctx context.Context) {
	teller := attention.NewTeller(screenOrNone(t.notices))
	for ctx.Err() == nil {
		if sidecar, err := t.c.sidecar(ctx); err == nil {
			_ = attention.Watch(ctx, sidecar.Client, func(open []attention.Waiting) { // it ends with the sidecar
				t.set(true, open)
				if teller.Tell(ctx, open) != nil {
					t.c.logger().Warn("a notice could not be shown")
				}
			})
			sidecar.Close()
		}
		t.set(false, nil)
		select {
		case <-ctx.Done():
		case <-time.After(trayRetry):
		}
	}
}

// screenOrNone is notices, or a screen that shows nothing.
func screenOrNone(notices *notification.Desktop) attention.Screen {
	if notices == nil {
		return noScreen{}
	}
	return notices
}

type noScreen struct{}

func (noScreen) Show(context.Context, notification.Notice) error { return nil }
func (noScreen) Withdraw(context.Context, string)                {}

func (t *trayHelper) set(running bool, waiting []attention.Waiting) {
	t.mu.Lock()
	t.running, t.waiting = running, waiting
	t.mu.Unlock()
	select {
	case t.change <- struct{}{}:
	default: // it is to be drawn anew already
	}
}

// draw shows what is known, whenever it changes.
func (t *trayHelper) draw(ctx context.Context, icon *tray.Tray) {
	for {
		icon.Show(t.picture(ctx))
		select {
		case <-ctx.Done():
			return
		case <-t.change:
		}
	}
}

func (t *trayHelper) picture(ctx context.Context) tray.Picture {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := tray.Picture{Icon: trayIcon(len(t.waiting) > 0), Tooltip: "Sallyport: nothing waits for you"}
	switch n := len(t.waiting); {
	case !t.running:
		p.Tooltip = "Sallyport is not running"
	case n == 1:
		p.Tooltip = "Sallyport: 1 decision waits for you"
	case n > 1:
		p.Tooltip = fmt.Sprintf("Sallyport: %d decisions wait for you", n)
	}
	p.Items = append(p.Items, tray.Item{Title: p.Tooltip}, tray.Item{})
	for _, w := range t.waiting[:min(len(t.waiting), trayLines)] {
		p.Items = append(p.Items, tray.Item{Title: oneLine(w.Sentence, lineLength), Do: func() { t.open(ctx, w.ID) }})
	}
	open := "Open Sallyport"
	if !t.running {
		open = "Start and open Sallyport"
	}
	p.Items = append(p.Items, tray.Item{Title: open, Do: func() { t.open(ctx, "") }}, tray.Item{Title: "Quit this icon", Do: t.quit})
	return p
}

func trayIcon(waiting bool) []byte {
	if runtime.GOOS == "windows" {
		return appicon.ICO(64, waiting)
	}
	return appicon.PNG(64, waiting)
}

// open shows the pages, at the review of a decision where one is named.
func (t *trayHelper) open(ctx context.Context, review string) {
	link, err := t.c.pageLink(ctx, review)
	if err == nil {
		err = (browser.Opener{}).Open(ctx, link.URL)
	}
	if err != nil {
		t.c.printError(err)
	}
}
