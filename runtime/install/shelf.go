package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
)

// Info is what is kept about an installed bundle, beside it.
type Info struct {
	Name        string          `json:"name"`
	Version     string          `json:"version,omitempty"`
	Digest      artifact.Digest `json:"digest"`
	Origin      Origin          `json:"origin"`
	Signature   Signature       `json:"signature"`
	Publisher   string          `json:"publisher,omitempty"` // as plugins.Connector.Publisher has it
	InstalledAt time.Time       `json:"installedAt"`
}

// Installed is what the plugins folder has under one name.
type Installed struct {
	Info
	Dir string
	// Previous is the version before, which Undo would put back; nil without one.
	Previous *Info
}

// shelf is the file about one name. Pending is a change that has begun: it is
// written before the first folder moves and gone after the last, so that a killed
// change is finished, or taken back, by Sweep.
type shelf struct {
	Current  *Info   `json:"current,omitempty"`
	Previous *Info   `json:"previous,omitempty"`
	Pending  *change `json:"pending,omitempty"`
}

// change is a list of renames and what is true after them.
type change struct {
	Moves    []move `json:"moves"`
	Current  *Info  `json:"current,omitempty"`
	Previous *Info  `json:"previous,omitempty"`
}

// move renames one folder. A move whose target is there is done: each target is
// free, or was made free by a move before, when the list is made.
type move struct {
	From place `json:"from"`
	To   place `json:"to"`
}

// place is a folder by the word for where it lies and its name there.
type place struct {
	Where string `json:"where"`
	Name  string `json:"name"`
}

const (
	inPlugins  = "plugins"
	inPrevious = "previous"
	inStaging  = "staging" // the tree of a staged bundle
	discarded  = "discarded"

	discardPrefix = "discard-"
)

func (i *Installer) path(p place) (string, error) {
	if !filepath.IsLocal(p.Name) || strings.ContainsAny(p.Name, `/\`) {
		return "", fmt.Errorf("cannot use %q as a folder of an installation", p.Name)
	}
	switch p.Where {
	case inPlugins:
		return filepath.Join(i.config.Plugins, p.Name), nil
	case inPrevious:
		return filepath.Join(i.config.Previous, p.Name), nil
	case inStaging:
		return filepath.Join(i.config.Staging, p.Name, treeName), nil
	case discarded:
		return filepath.Join(i.config.Staging, discardPrefix+p.Name), nil
	}
	return "", fmt.Errorf("cannot use %q as a place of an installation", p.Where)
}

// Activate digests a staged bundle again and, if it is still what was reviewed,
// makes it the active one of its name; the one that was active is kept as the
// previous one, and the one before that is removed. When the process dies in the
// middle, Sweep finishes or undoes it.
func (i *Installer) Activate(ctx context.Context, staged *Staged) (Installed, error) {
	i.shelves.Lock()
	defer i.shelves.Unlock()
	name := staged.Plugin.Name
	if err := usableName(name); err != nil {
		return Installed{}, err
	}
	if err := i.verify(ctx, staged.Dir, staged.Digest); err != nil {
		return Installed{}, err
	}
	s, err := i.load(name)
	if err != nil {
		return Installed{}, err
	}
	if s.Current == nil && i.there(place{inPlugins, name}) {
		return Installed{}, &coded.Error{Code: "name-occupied", Sentence: fmt.Sprintf("the plugins folder has a %s that was put there by hand", name),
			Next: "move it away, then install again"}
	}
	info := &Info{Name: name, Version: staged.Plugin.Version, Digest: staged.Digest, Origin: staged.Origin, Signature: staged.Signature, Publisher: staged.Publisher(), InstalledAt: i.now().UTC()}
	c := i.replacement(name, s, staged)
	c.Current = info
	if err := i.change(name, s, c); err != nil {
		return Installed{}, err
	}
	if err := i.discardStaged(staged.ID); err != nil {
		i.log.Warn("a staging folder could not be removed", "error", err)
	}
	return i.installed(name, c.Current, c.Previous), nil
}

// replacement makes room for a staged bundle. The same bundle once more takes the
// place of the active one, and the one before it stays.
func (i *Installer) replacement(name string, s *shelf, staged *Staged) *change {
	active, previous := place{inPlugins, name}, place{inPrevious, name}
	into := move{place{inStaging, staged.ID}, active}
	away := place{discarded, staged.ID}
	switch {
	case !i.there(active):
		// Its folder vanished, or nothing is installed under the name.
		return &change{Moves: []move{into}, Previous: s.Previous}
	case s.Current.Digest == staged.Digest:
		return &change{Moves: []move{{active, away}, into}, Previous: s.Previous}
	case i.there(previous):
		return &change{Moves: []move{{previous, away}, {active, previous}, into}, Previous: s.Current}
	}
	return &change{Moves: []move{{active, previous}, into}, Previous: s.Current}
}

func (i *Installer) installed(name string, current, previous *Info) Installed {
	return Installed{Info: *current, Dir: filepath.Join(i.config.Plugins, name), Previous: previous}
}

// verify digests a staged bundle and compares.
func (i *Installer) verify(ctx context.Context, dir string, want artifact.Digest) error {
	tree, err := artifact.Of(ctx, dir, artifact.Options{Limits: i.config.Limits})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && coded.Of(err) == artifact.CodeNotADirectory {
		return notStaged(err)
	}
	if err != nil || tree.Digest != want {
		return &coded.Error{Code: artifact.CodeChangedSinceAsked, Sentence: "the staged bundle is no longer what was asked about", Next: "install it again from its source", Err: err}
	}
	return nil
}

// Undo puts the previous version of a name back and removes the active one.
func (i *Installer) Undo(ctx context.Context, name string) (Installed, error) {
	i.shelves.Lock()
	defer i.shelves.Unlock()
	s, err := i.installedShelf(name)
	if err != nil {
		return Installed{}, err
	}
	if s.Previous == nil || !i.there(place{inPrevious, name}) {
		return Installed{}, &coded.Error{Code: "no-previous", Sentence: fmt.Sprintf("there is no version of %s before this one", name), Next: "install the version that you want"}
	}
	// What is said about it, who signed it included, is true of these bytes only.
	if err := i.verify(ctx, filepath.Join(i.config.Previous, name), s.Previous.Digest); err != nil {
		if coded.Of(err) == artifact.CodeChangedSinceAsked {
			return Installed{}, &coded.Error{Code: "previous-changed", Sentence: fmt.Sprintf("the version of %s before this one was changed on disk", name), Next: "install the version that you want", Err: err}
		}
		return Installed{}, err
	}
	c := &change{Current: s.Previous}
	if i.there(place{inPlugins, name}) {
		c.Moves = append(c.Moves, move{place{inPlugins, name}, place{discarded, newName()}})
	}
	c.Moves = append(c.Moves, move{place{inPrevious, name}, place{inPlugins, name}})
	if err := i.change(name, s, c); err != nil {
		return Installed{}, err
	}
	return i.installed(name, c.Current, nil), nil
}

// Remove removes an installed plugin and its previous version. Its data is not
// here and stays.
func (i *Installer) Remove(_ context.Context, name string) error {
	i.shelves.Lock()
	defer i.shelves.Unlock()
	s, err := i.installedShelf(name)
	if err != nil {
		return err
	}
	c := &change{}
	for _, p := range []place{{inPrevious, name}, {inPlugins, name}} {
		if i.there(p) {
			c.Moves = append(c.Moves, move{p, place{discarded, newName()}})
		}
	}
	return i.change(name, s, c)
}

func (i *Installer) installedShelf(name string) (*shelf, error) {
	if usableName(name) != nil {
		return nil, notInstalled(name)
	}
	s, err := i.load(name)
	if err == nil && s.Current == nil {
		return nil, notInstalled(name)
	}
	return s, err
}

func notInstalled(name string) error {
	return &coded.Error{Code: "not-installed", Sentence: fmt.Sprintf("Sallyport has not installed a plugin %q", name), Next: "list what is installed"}
}

// Info returns what is installed under a name; the error of none has the code
// "not-installed". Its folder may have vanished since: Dir says where it was.
func (i *Installer) Info(name string) (Installed, error) {
	s, err := i.installedShelf(name)
	if err != nil {
		return Installed{}, err
	}
	return i.installed(name, s.Current, s.Previous), nil
}

// List returns everything that is installed, sorted by name. A file that cannot
// be read is an error beside the others.
func (i *Installer) List() ([]Installed, error) {
	names, err := i.names()
	var all []Installed
	errs := []error{err}
	for _, name := range names {
		installed, err := i.Info(name)
		switch {
		case err == nil:
			all = append(all, installed)
		case coded.Of(err) != "not-installed":
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

func (i *Installer) names() ([]string, error) {
	entries, err := os.ReadDir(i.config.Info)
	if err != nil {
		return nil, fmt.Errorf("cannot list what is installed: %w", pathless(err))
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".json"); ok && usableName(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (i *Installer) load(name string) (*shelf, error) {
	data, err := os.ReadFile(i.shelfFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return &shelf{}, nil
	}
	s := &shelf{}
	if err == nil {
		err = json.Unmarshal(data, s)
	}
	if err != nil {
		return nil, &coded.Error{Code: "install-record-unreadable", Sentence: fmt.Sprintf("what is known about the installation of %s cannot be read", name),
			Next: "move the plugin's folder away and install it again", Err: pathless(err)}
	}
	return s, nil
}

// save writes the file about a name, or removes one that says nothing.
func (i *Installer) save(name string, s *shelf) error {
	if *s == (shelf{}) {
		if err := os.Remove(i.shelfFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove what is known about %s: %w", name, pathless(err))
		}
		return nil
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write what is known about %s: %w", name, err)
	}
	return atomicfile.Write(i.shelfFile(name), append(data, '\n'), 0o600)
}

func (i *Installer) shelfFile(name string) string {
	return filepath.Join(i.config.Info, name+".json")
}

// change writes what it is about to do, does it, and writes what is true then.
// A rename that fails is taken back.
func (i *Installer) change(name string, before *shelf, c *change) error {
	i.at("before")
	if err := i.save(name, &shelf{before.Current, before.Previous, c}); err != nil {
		return err
	}
	i.at("written")
	if err := i.forward(c); err != nil {
		return errors.Join(err, i.back(name, before, c))
	}
	return i.settle(name, c)
}

// settle writes what is true after every move, then removes what is no longer
// needed.
func (i *Installer) settle(name string, c *change) error {
	if err := i.save(name, &shelf{Current: c.Current, Previous: c.Previous}); err != nil {
		return err
	}
	i.at("settled")
	for _, m := range c.Moves {
		if m.To.Where != discarded {
			continue
		}
		path, err := i.path(m.To)
		if err == nil {
			err = removeAll(path)
		}
		if err != nil {
			i.log.Warn("a folder of an earlier version could not be removed", "error", err)
		}
	}
	return nil
}

func (i *Installer) forward(c *change) error {
	for _, m := range c.Moves {
		if i.there(m.To) {
			continue
		}
		if err := i.rename(m.From, m.To); err != nil {
			return err
		}
		i.at("moved " + m.From.Where)
	}
	return nil
}

// back undoes the moves that were made, last first.
func (i *Installer) back(name string, before *shelf, c *change) error {
	for _, m := range slices.Backward(c.Moves) {
		if !i.there(m.To) || i.there(m.From) {
			continue
		}
		if err := i.rename(m.To, m.From); err != nil {
			return err
		}
	}
	return i.save(name, &shelf{Current: before.Current, Previous: before.Previous})
}

func (i *Installer) rename(from, to place) error {
	a, err := i.path(from)
	if err != nil {
		return err
	}
	b, err := i.path(to)
	if err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return fmt.Errorf("cannot move the plugin from %s to %s: %w", from.Where, to.Where, pathless(err))
	}
	return nil
}

func (i *Installer) there(p place) bool {
	path, err := i.path(p)
	if err != nil {
		return false
	}
	_, err = os.Lstat(path)
	return err == nil
}
