package secrets

import (
	"context"
	"errors"
)

// Own is an entry of Sallyport's own in the keyring. No secret's name can be its key,
// so no list, reference or command reaches it. What goes wrong with it is told to
// whoever asked and is not in State: nobody's secret is missing for it.
type Own struct {
	store *Store
	name  string
}

// ownMark begins the key of an entry of Sallyport's own; it is in no secret's name.
const ownMark = ":"

// Own returns the entry of that name. It makes no call.
func (s *Store) Own(name string) *Own { return &Own{s, ownMark + name} }

// Get returns the value, or ErrNotFound. A keyring that is locked may ask a person.
func (o *Own) Get(ctx context.Context) (value []byte, err error) {
	err = o.turn(ctx, func(t *turn) error {
		value, err = o.store.get(ctx, t)
		return err
	})
	return value, err
}

// Set stores value so that Get returns it byte for byte, or leaves what was there.
// After keyring-not-answering it may have either of the two.
func (o *Own) Set(ctx context.Context, value []byte) error {
	if err := o.store.fits(o.name, value); err != nil {
		return err
	}
	return o.turn(ctx, func(t *turn) error {
		old, err := o.store.current(ctx, t)
		if err != nil {
			return err
		}
		return o.store.write(ctx, t, value, old)
	})
}

// Delete removes the entry; one that is not there is no error.
func (o *Own) Delete(ctx context.Context) error {
	return o.turn(ctx, func(t *turn) error {
		err := o.store.delete(ctx, t)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	})
}

func (o *Own) turn(ctx context.Context, do func(*turn) error) error {
	t, err := o.store.begin(ctx, o.name)
	if err != nil {
		return err
	}
	defer o.store.end(t)
	return do(t)
}

// Ready says whether the keyring could be used now, within the time-out, without
// asking a person and without writing. It is not in State either.
func (s *Store) Ready(ctx context.Context) error {
	t, err := s.begin(ctx, ownMark)
	if err != nil {
		return err
	}
	defer s.end(t)
	_, err = bounded(ctx, s, t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.backend.Check(ctx)
	})
	return err
}
