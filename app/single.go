package app

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/internal/loopback"
	"sallyport/internal/onejson"
)

// wishFile is how a second start tells the first what it wants: a file in a folder that
// is its owner's alone, so there is nothing to connect to and no bus is needed.
const wishFile = "wish.json"

// wish is what a second start was asked for. It comes from another process and is read
// as strictly as an address that was clicked.
type wish struct {
	Open string `json:"open"`
}

// errOpen says that this data folder has a window.
var errOpen = errors.New("a window is open already")

// only takes the right to be the one window of the folder; errOpen where there is one.
func only(dir string) (*loopback.Lock, error) {
	lock, err := loopback.Acquire(dir)
	if errors.Is(err, loopback.ErrHeld) {
		return nil, errOpen
	}
	return lock, err
}

// handOver leaves a wish to the window that is open and waits until it was taken.
func handOver(ctx context.Context, dir, link string, patience time.Duration) error {
	if _, ok := page(link); !ok {
		link = "" // it is only shown then
	}
	raw, err := json.Marshal(wish{link})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, wishFile)
	if err := atomicfile.Write(path, raw, 0o600); err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	_ = os.Remove(path) // nobody wants it any more
	return &coded.Error{Code: "window-not-answering", Sentence: "Sallyport's window is open and does not answer",
		Next: "close it and try again; or use the pages in a browser: sallyport open"}
}

// wishes calls granted for each wish that is left in the folder, until ctx ends.
func wishes(ctx context.Context, dir string, granted func(wish)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	if err := watcher.Add(dir); err != nil {
		_ = watcher.Close()
		return err
	}
	go func() {
		defer watcher.Close() //nolint:errcheck // it only watched
		for {
			if one, ok := take(dir); ok {
				granted(one)
			}
			select {
			case <-ctx.Done():
				return
			case _, open := <-watcher.Events:
				if !open {
					return
				}
			case err, open := <-watcher.Errors: // events were lost: the folder is looked at all the same
				if !open || err == nil {
					return
				}
			}
		}
	}()
	return nil
}

// take removes a wish and returns it. What is none is removed too.
func take(dir string) (one wish, ok bool) {
	path := filepath.Join(dir, wishFile)
	info, err := os.Lstat(path)
	if err != nil {
		return one, false
	}
	var raw []byte
	if info.Mode().IsRegular() && info.Size() < 4<<10 {
		raw, err = os.ReadFile(path)
	}
	if os.Remove(path) != nil || err != nil {
		return one, false
	}
	return one, onejson.Decode(raw, &one) == nil
}
