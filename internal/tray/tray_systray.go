//go:build linux || windows

package tray

import (
	"context"
	"io"
	"log"
	"runtime"
	"sync"

	"fyne.io/systray"
)

// The library ties the first goroutine to its thread in every program that imports
// it, which costs each command that never shows an icon; Run does so itself.
func init() { runtime.UnlockOSThread() } //nolint:gochecknoinits // it takes back another init

// Tray is the icon while it is there.
type Tray struct {
	mu   sync.Mutex
	over chan struct{} // ends those who wait for clicks on what is shown now
}

// Run keeps an icon until the context ends. ready gets the tray once it can show
// something, in a goroutine of its own. It must show an icon once in a process, and
// turns the log of package log off, which the library writes to.
func Run(ctx context.Context, ready func(*Tray)) error {
	if err := Available(ctx); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	log.SetOutput(io.Discard)
	t := &Tray{over: make(chan struct{})}
	stop := context.AfterFunc(ctx, systray.Quit)
	defer stop()
	systray.Run(func() { go ready(t) }, func() { t.replace() })
	return nil
}

// replace ends the watch over what was shown, and returns what ends the next one.
func (t *Tray) replace() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.over)
	t.over = make(chan struct{})
	return t.over
}

// Show replaces what the tray shows.
func (t *Tray) Show(p Picture) {
	over := t.replace()
	systray.SetIcon(p.Icon)
	systray.SetTooltip(p.Tooltip)
	systray.SetTitle(p.Tooltip)
	systray.ResetMenu()
	for _, item := range p.Items {
		t.add(item, over)
	}
}

func (t *Tray) add(item Item, over <-chan struct{}) {
	if item.Title == "" {
		systray.AddSeparator()
		return
	}
	line := systray.AddMenuItem(item.Title, "")
	if item.Do == nil {
		line.Disable()
		return
	}
	clicked := line.ClickedCh
	go func() {
		for {
			select {
			case _, open := <-clicked:
				if !open {
					return
				}
				item.Do()
			case <-over:
				return
			}
		}
	}()
}
