//go:build desktop

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/options"
	"github.com/wailsapp/wails/v2/pkg/options/assetserver"
	"github.com/wailsapp/wails/v2/pkg/options/linux"
	"github.com/wailsapp/wails/v2/pkg/options/mac"
	"github.com/wailsapp/wails/v2/pkg/options/windows"
	"github.com/wailsapp/wails/v2/pkg/runtime"

	"sallyport/frontend"
	"sallyport/internal/browser"
	"sallyport/internal/coded"
	"sallyport/internal/loopback"
	"sallyport/internal/owneronly"
)

// window is the one window and what belongs to it.
type window struct {
	cfg     Config
	log     *slog.Logger
	dir     string // its own folder in the state folder
	hosting *hosting
	answers *answers

	ctx   context.Context // Wails', once ready
	ready atomic.Bool     // the page was loaded once

	closing atomic.Bool

	// waiting is where the page is to go once it is there.
	mu      sync.Mutex
	waiting string
}

// Run shows the window until it is closed or ctx ends, and closes the host before it
// returns. Where this data folder has a window, that one is shown instead.
func Run(ctx context.Context, cfg Config) error {
	w := &window{cfg: cfg, log: cfg.Logger, dir: filepath.Join(cfg.Places.State, "window")}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if err := owneronly.Folder(w.dir); err != nil {
		return &coded.Error{Code: "folder-unusable", Sentence: "the state folder cannot be made or is not yours", Err: err,
			Next: "see which folder with: sallyport doctor"}
	}
	lock, err := w.first(ctx)
	if err != nil || lock == nil {
		return err
	}
	defer lock.Release() //nolint:errcheck // the system gives it back when this process ends
	if err := canShow(); err != nil {
		return err
	}
	w.hosting = newHosting(cfg)
	w.answers = newAnswers(w.hosting, frontend.Files(), browser.Opener{}.Open)
	w.goTo(cfg.Open)

	hosts, end := context.WithCancel(context.WithoutCancel(ctx))
	closed := make(chan error, 1)
	go func() { closed <- w.hosting.run(hosts) }()
	w.quitWith(ctx, end, closed)
	err = w.show(ctx, hosts)
	end()
	return errors.Join(err, <-closed)
}

// first takes the right to be the window, or hands over to the one that has it: then
// there is no lock and no error.
func (w *window) first(ctx context.Context) (*loopback.Lock, error) {
	lock, err := only(w.dir)
	if !errors.Is(err, errOpen) {
		return lock, err
	}
	err = handOver(ctx, w.dir, w.cfg.Open, handOverLimit)
	if coded.Of(err) == "window-not-answering" {
		if lock, now := only(w.dir); now == nil {
			return lock, nil // it was closing
		}
	}
	return nil, err
}

const handOverLimit = 15 * time.Second

// quitWith ends the window when ctx does. Before the main loop runs Wails cannot end it:
// then the host is closed here, and the process with it. The same where Wails does not
// come back in time.
func (w *window) quitWith(ctx context.Context, end context.CancelFunc, closed <-chan error) {
	context.AfterFunc(ctx, func() {
		if w.ready.Load() {
			runtime.Quit(w.ctx)
			time.Sleep(quitLimit)
			w.log.Error("the window did not close in time")
		}
		end()
		select {
		case err := <-closed:
			if err != nil {
				w.log.Error("the host did not close well", "error", err)
				os.Exit(1)
			}
		case <-time.After(stopLimit):
			w.log.Error("the host did not close in time")
			os.Exit(1)
		}
		os.Exit(0)
	})
}

// quitLimit is how long Wails may take to come back from a quit, and Run to close the
// host after it.
const quitLimit = stopLimit + 5*time.Second

// show runs the window. A window that cannot be made is a panic of Wails'.
func (w *window) show(ctx, hosts context.Context) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			w.log.Error("no window could be made", "error", fmt.Sprint(broken))
			err = noScreen()
		}
	}()
	place := readFrame(w.dir)
	prepare(filepath.Join(w.dir, "webview"))
	return wails.Run(&options.App{
		Title: "Sallyport", Width: place.Width, Height: place.Height, MinWidth: leastWidth, MinHeight: leastHeight,
		BackgroundColour:  options.NewRGB(246, 245, 242),
		AssetServer:       &assetserver.Options{Handler: w.answers},
		Logger:            wailsLog{w.log},
		OnStartup:         func(its context.Context) { guardWebview(its, w) },
		OnDomReady:        func(its context.Context) { w.loaded(its, hosts, place) },
		OnBeforeClose:     func(context.Context) bool { return w.closes() },
		HideWindowOnClose: hidesOnClose,
		DragAndDrop:       &options.DragAndDrop{DisableWebViewDrop: true},
		Linux:             &linux.Options{ProgramName: "sallyport", WebviewGpuPolicy: linux.WebviewGpuPolicyNever, Icon: icon()},
		Mac:               &mac.Options{OnUrlOpen: func(address string) { w.wished(wish{address}) }, About: &mac.AboutInfo{Title: "Sallyport", Message: w.cfg.Build.Version}},
		Windows:           &windows.Options{WebviewUserDataPath: filepath.Join(w.dir, "webview"), DLLSearchPaths: windows.DLLSearchSystem32},
	})
}

// loaded is called with every load of the page: the first shows that the main loop runs.
func (w *window) loaded(its, hosts context.Context, place frame) {
	if !w.ready.Load() {
		w.ctx = its
		w.ready.Store(true)
		w.log.Info("the window is there")
		w.place(place)
		if err := wishes(hosts, w.dir, w.wished); err != nil {
			w.log.Error("a second start cannot reach this window", "error", err)
		}
		go newNotices(w.answers, w.review).run(hosts)
		go whenSilent(hosts, w.answers.lastSeen, func(quiet time.Duration) {
			w.log.Warn("the page has asked nothing for a while and is loaded again", "seconds", int(quiet.Seconds()))
			replacePage(w)
		})
	}
	w.mu.Lock()
	where := w.waiting
	w.waiting = ""
	w.mu.Unlock()
	w.navigate(where)
}

// place puts the window where it was.
func (w *window) place(f frame) {
	if screens, err := runtime.ScreenGetAll(w.ctx); err == nil {
		for _, screen := range screens {
			if screen.IsCurrent {
				f = f.on(screen.Size.Width, screen.Size.Height)
			}
		}
	}
	if f.Maximised {
		runtime.WindowMaximise(w.ctx)
		return
	}
	if f.Placed {
		runtime.WindowSetPosition(w.ctx, f.X, f.Y)
	}
}

// closes is asked before every close and keeps the frame. Wails closes at a signal too,
// and its main loop must be ended only once.
func (w *window) closes() bool {
	if !w.ready.Load() || w.closing.Swap(true) {
		return true // quitWith ends what is not there yet; and not again
	}
	w.remember()
	return false
}

// remember keeps the frame. A maximised window has no size of its own to keep.
func (w *window) remember() {
	f := readFrame(w.dir)
	f.Maximised = runtime.WindowIsMaximised(w.ctx)
	if !f.Maximised {
		f.Width, f.Height = runtime.WindowGetSize(w.ctx)
		f.X, f.Y = runtime.WindowGetPosition(w.ctx)
		f.Placed = true
	}
	if err := f.keep(w.dir); err != nil {
		w.log.Warn("the window's place could not be kept", "error", err)
	}
}

// wished is what a second start or a link asked for: the window comes to the front, and
// goes where a link leads.
func (w *window) wished(one wish) {
	w.goTo(one.Open)
	if w.ready.Load() {
		runtime.WindowUnminimise(w.ctx)
		runtime.WindowShow(w.ctx)
	}
}

// review brings the window to the front, at a decision or at the list of them.
func (w *window) review(id string) {
	w.wished(wish{strings.TrimSuffix(Scheme+"review/"+id, "/")})
}

// goTo takes the page to where a link leads, now or once it is there. Another link leads
// nowhere.
func (w *window) goTo(link string) {
	hash, ok := page(link)
	if !ok {
		return
	}
	w.mu.Lock()
	ready := w.ready.Load() // under the lock: the first load takes what waits only after it is
	if !ready {
		w.waiting = hash
	}
	w.mu.Unlock()
	if ready {
		w.navigate(hash)
	}
}

// navigate changes the fragment of the page's address. hash comes from page alone: it
// holds letters that mean nothing to a script.
func (w *window) navigate(hash string) {
	if hash != "" {
		runtime.WindowExecJS(w.ctx, "location.hash = '"+hash+"'")
	}
}

func noScreen() error {
	return &coded.Error{Code: "no-screen", Sentence: "there is no screen to open a window on",
		Next: "run this where you are logged in; or use the commands (sallyport --help), or a browser: sallyport open"}
}

// wailsLog writes what Wails says to our log, below warnings: it is for developers.
type wailsLog struct{ log *slog.Logger }

func (l wailsLog) Print(text string)   { l.log.Debug("wails", "text", text) }
func (l wailsLog) Trace(text string)   { l.log.Debug("wails", "text", text) }
func (l wailsLog) Debug(text string)   { l.log.Debug("wails", "text", text) }
func (l wailsLog) Info(text string)    { l.log.Debug("wails", "text", text) }
func (l wailsLog) Warning(text string) { l.log.Warn("wails", "text", text) }
func (l wailsLog) Error(text string)   { l.log.Error("wails", "text", text) }
func (l wailsLog) Fatal(text string)   { l.log.Error("wails", "text", text) }
