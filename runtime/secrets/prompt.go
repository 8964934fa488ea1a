//go:build !darwin && !windows

package secrets

import (
	"context"
	"errors"
	"time"

	"github.com/godbus/dbus/v5"
)

// A person needs longer than a call may take, so the window that asks for the
// keyring's password lives apart from the call that needed it: that one says
// keyring-locked in time, and the next one finds the keyring open. There is one
// window at a time, and after a "no" none for a while: ten connectors that start
// together ask once (C60).
const (
	promptLimit = 2 * time.Minute
	promptPause = 30 * time.Second
)

// prompt is a window that is open now.
type prompt struct {
	done chan struct{}
	err  error // once done is closed
}

// unlock makes sure that the object at path, a collection or an item, is open.
func (b *secretService) unlock(ctx context.Context, bus *bus, path dbus.ObjectPath, of string) error {
	for range 3 { // somebody else's window may have been for another object
		shut, err := bus.locked(ctx, path, of)
		if err != nil || !shut {
			return err
		}
		p, err := b.window(path)
		if err != nil {
			return err
		}
		select {
		case <-p.done:
			if p.err != nil {
				return p.err
			}
		case <-ctx.Done():
			return locked(ctx.Err())
		}
	}
	return locked(nil)
}

// window returns the open window or opens one for path.
func (b *secretService) window(path dbus.ObjectPath) (*prompt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.prompt != nil {
		return b.prompt, nil
	}
	if b.life.Err() != nil {
		return nil, locked(b.life.Err())
	}
	if time.Since(b.denied) < promptPause {
		return nil, b.refused(errDismissed)
	}
	p := &prompt{done: make(chan struct{})}
	b.prompt = p
	b.waiting.Go(func() {
		err := b.ask(path)
		b.mu.Lock()
		defer b.mu.Unlock()
		if errors.Is(err, errDismissed) {
			b.denied = time.Now()
			err = b.refused(err)
		}
		b.prompt, p.err = nil, err
		close(p.done)
	})
	return p, nil
}

// ask unlocks path, with a person's help if need be.
func (b *secretService) ask(path dbus.ObjectPath) error {
	ctx, cancel := context.WithTimeout(b.life, promptLimit)
	defer cancel()
	bus, err := dial(ctx, b.getenv)
	if err != nil {
		return err
	}
	defer bus.close()
	var opened []dbus.ObjectPath
	var asks dbus.ObjectPath
	if err := bus.call(ctx, secretsPath, serviceInterface+".Unlock", []dbus.ObjectPath{path}).Store(&opened, &asks); err != nil {
		if ctx.Err() != nil {
			return locked(err)
		}
		return busError(err)
	}
	if asks == noObject && len(opened) == 0 {
		return locked(nil)
	}
	err = bus.ask(ctx, asks)
	if err == nil || errors.Is(err, errDismissed) {
		return err
	}
	return busError(err)
}

// refused tells a person's "no" from a prompt that nobody could be shown.
func (b *secretService) refused(err error) error {
	if b.getenv("DISPLAY") == "" && b.getenv("WAYLAND_DISPLAY") == "" {
		return locked(err)
	}
	return denied(err)
}
