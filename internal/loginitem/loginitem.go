// Package loginitem starts a program when its user logs in to the system, or no longer.
//
// The one idea: an item is one small text in the one place where its system looks (a
// LaunchAgent, an XDG autostart entry, a value of the registry), written and removed as a
// whole. What stands there and was not written here is never touched, and what was
// written here is compared with what it should be whenever somebody asks.
//
// It starts nothing and tells no service manager: the system reads the place at the next
// login. It knows no domain words. host turns it on and off;
// whoever needs its states or Name imports it too.
package loginitem

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/coded"
)

// Name is the item's name for the system: the bundle id of the program on macOS.
const Name = "io.sallyport.Sallyport"

// State is what the place holds, compared with what it should.
type State string

// The states.
const (
	Off     State = "off"
	On      State = "on"
	Other   State = "other"   // it starts another program, or this one in another way
	Broken  State = "broken"  // the program that it starts is gone
	Paused  State = "paused"  // turned off in the system's own settings
	Foreign State = "foreign" // something that was not written here
)

// Status is how things are. Paths are as people write them, with ~ for the home folder.
type Status struct {
	State   State
	How     string // "LaunchAgent", "XDG autostart" or "registry"
	Where   string
	Program string // that it starts; "" where it starts none
	// Unit is a systemd user unit that starts the program as well, "" without.
	Unit string
}

// Item is a program that is started at login. Program and Home are required.
type Item struct {
	Program string // by its absolute path
	Args    []string
	Home    string
	// ConfigHome is XDG_CONFIG_HOME; one that is not absolute is ~/.config.
	ConfigHome string
	// Temps are folders whose programs do not last; nil asks the system.
	Temps []string
}

// command is what an item starts.
type command struct {
	program string
	args    []string
	paused  bool
}

func (c command) same(as command) bool {
	return c.program == as.program && slices.Equal(c.args, as.args)
}

// form is how a system writes an item down.
type form struct {
	render func(command) []byte
	// read returns what a text starts; false if it was not written here.
	read func([]byte) (command, bool)
}

// place is where a system looks for an item.
type place interface {
	how() string
	where() string
	// read returns what is there; false for nothing, errForeign for what cannot be ours.
	read() ([]byte, bool, error)
	// write replaces was, or nothing if was is nil.
	write(now, was []byte) error
	remove() error
	// paused reports whether the system was told to pass the item over, apart from its text.
	paused() bool
}

var errForeign = errors.New("what is there was not written by this program")

// Status compares the place with what it should hold.
func (i Item) Status() (Status, error) {
	at, as, err := i.system()
	if err != nil {
		return Status{}, err
	}
	return i.status(at, as)
}

func (i Item) status(at place, as form) (Status, error) {
	s := Status{State: Off, How: at.how(), Where: i.shown(at.where()), Unit: i.unit()}
	text, there, err := at.read()
	switch {
	case errors.Is(err, errForeign):
		s.State = Foreign
		return s, nil
	case err != nil:
		return Status{}, unreadable(s.Where, err)
	case !there:
		return s, nil
	}
	found, ours := as.read(text)
	if !ours {
		s.State = Foreign
		return s, nil
	}
	s.Program = i.shown(found.program)
	_, gone := os.Stat(found.program)
	switch {
	case errors.Is(gone, fs.ErrNotExist):
		s.State = Broken
	case !found.same(i.command()):
		s.State = Other
	case found.paused || at.paused():
		s.State = Paused
	default:
		s.State = On
	}
	return s, nil
}

// Prepare looks at what turning the item on or off needs, refuses what cannot be, and
// returns the act; nil where nothing is to be done. Turned off, what runs goes on.
func (i Item) Prepare(on bool) (act func() error, err error) {
	at, as, err := i.system()
	if err != nil {
		return nil, err
	}
	return i.prepare(on, at, as)
}

func (i Item) prepare(on bool, at place, as form) (func() error, error) {
	if on {
		if err := i.checkProgram(); err != nil {
			return nil, err
		}
	}
	was, err := i.ours(at, as)
	if err != nil {
		return nil, err
	}
	now := as.render(i.command())
	switch {
	case on && bytes.Equal(was, now) && !at.paused(), !on && was == nil:
		return nil, nil
	case on:
		return func() error {
			if err := at.write(now, was); err != nil {
				return unwritable(i.shown(at.where()), err)
			}
			return nil
		}, nil
	}
	return func() error {
		if err := at.remove(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unwritable(i.shown(at.where()), err)
		}
		return nil
	}, nil
}

// ours is what the place holds, nil for nothing; what was not written here is refused.
func (i Item) ours(at place, as form) ([]byte, error) {
	text, there, err := at.read()
	if err != nil && !errors.Is(err, errForeign) {
		return nil, unreadable(i.shown(at.where()), err)
	}
	if err == nil && !there {
		return nil, nil
	}
	if _, ours := as.read(text); err != nil || !ours {
		return nil, &coded.Error{Code: "autostart-foreign", Sentence: "what stands in the place of Sallyport's login item was not written by Sallyport, so it is left alone",
			Next: "look at " + i.shown(at.where()) + ", move it away, and try again", Err: err}
	}
	return text, nil
}

func (i Item) command() command { return command{program: i.Program, args: i.Args} }

// shown is a path for people.
func (i Item) shown(path string) string {
	if rest, ok := strings.CutPrefix(path, i.Home+string(filepath.Separator)); ok && i.Home != "" {
		return "~/" + filepath.ToSlash(rest)
	}
	return path
}

func (i Item) checkHome() error {
	if !filepath.IsAbs(i.Home) {
		return &coded.Error{Code: "autostart-unavailable", Sentence: "it is not known where the home folder is", Next: "set HOME and try again"}
	}
	return nil
}

func unreadable(where string, err error) error {
	return &coded.Error{Code: "autostart-unreadable", Sentence: "it cannot be told whether Sallyport starts at login: " + where + " cannot be read",
		Next: "check who may read it", Err: err}
}

func unwritable(where string, err error) error {
	return &coded.Error{Code: "autostart-unwritable", Sentence: where + " cannot be written",
		Next: "check who may write there, and whether the disk is full", Err: err}
}
