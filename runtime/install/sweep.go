package install

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Swept is what Sweep did.
type Swept struct {
	// Finished and Undone are the names of plugins whose change was killed in the
	// middle.
	Finished, Undone []string
	// Removed is how many folders were removed.
	Removed int
}

// Sweep finishes the changes that a killed process left, or undoes those whose
// bundle is no longer what was reviewed, and removes from the staging folder
// everything but the bundles whose ID keep holds and those being made. It is for
// the start and for now and then; a name whose record cannot be read is left as
// it is and part of the error.
func (i *Installer) Sweep(ctx context.Context, keep map[string]bool) (Swept, error) {
	i.shelves.Lock()
	defer i.shelves.Unlock()
	swept, err := i.mend(ctx)
	if err == nil {
		err = i.clearStaging(keep, &swept)
	}
	return swept, err
}

// Mend is Sweep where nobody knows which staged bundles are needed: all of them stay.
func (i *Installer) Mend(ctx context.Context) (Swept, error) {
	i.shelves.Lock()
	defer i.shelves.Unlock()
	return i.mend(ctx)
}

func (i *Installer) mend(ctx context.Context) (swept Swept, err error) {
	names, err := i.names()
	errs := []error{err}
	for _, name := range names {
		if err := i.mendShelf(ctx, name, &swept); err != nil {
			errs = append(errs, err)
		}
	}
	return swept, errors.Join(errs...)
}

func (i *Installer) mendShelf(ctx context.Context, name string, swept *Swept) error {
	s, err := i.load(name)
	if err != nil || s.Pending == nil {
		return err
	}
	c := s.Pending
	if !i.mayFinish(ctx, c) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		swept.Undone = append(swept.Undone, name)
		return i.back(name, s, c)
	}
	if err := i.forward(c); err != nil {
		return errors.Join(err, i.back(name, s, c))
	}
	swept.Finished = append(swept.Finished, name)
	return i.settle(name, c)
}

// mayFinish reports whether a bundle that is still staged is what was reviewed.
func (i *Installer) mayFinish(ctx context.Context, c *change) bool {
	for _, m := range c.Moves {
		if m.From.Where != inStaging || i.there(m.To) && !i.there(m.From) {
			continue
		}
		path, err := i.path(m.From)
		if err != nil || c.Current == nil || i.verify(ctx, path, c.Current.Digest) != nil {
			return false
		}
	}
	return true
}

func (i *Installer) clearStaging(keep map[string]bool, swept *Swept) error {
	entries, err := os.ReadDir(i.config.Staging)
	if err != nil {
		return fmt.Errorf("cannot list what is staged: %w", pathless(err))
	}
	var errs []error
	for _, entry := range entries {
		name := entry.Name()
		if !stagedID.MatchString(name) && !strings.HasPrefix(name, discardPrefix) || i.isActive(name) || keep[name] && i.isWhole(name) {
			continue
		}
		if err := removeAll(filepath.Join(i.config.Staging, name)); err != nil {
			errs = append(errs, err)
			continue
		}
		swept.Removed++
	}
	return errors.Join(errs...)
}

func (i *Installer) isWhole(id string) bool {
	_, err := os.Lstat(filepath.Join(i.config.Staging, id, recordName))
	return err == nil
}

func (i *Installer) isActive(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.active[id]
}

func newName() string { return strings.ToLower(rand.Text()[:16]) }
