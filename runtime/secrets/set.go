package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"sallyport/internal/coded"
)

// Set stores value under name, so that Secret returns it byte for byte, or
// refuses and leaves the old value: secret-too-large before the keyring is asked,
// secret-not-storable when it gives back something else than it was given. After
// keyring-not-answering it may have either of the two.
func (s *Store) Set(ctx context.Context, name string, value []byte) error {
	known, err := s.listed(ctx, name)
	if err != nil {
		return err
	}
	if err := s.fits(name, value); err != nil {
		return err
	}
	t, err := s.begin(ctx, name)
	if err != nil {
		return err
	}
	defer s.end(t)
	old, err := s.current(ctx, t)
	if err != nil {
		return err
	}
	// The name first: nobody would find a value that no list names.
	if !known {
		if err := s.put(ctx, name); err != nil {
			return err
		}
	}
	if err := s.write(ctx, t, value, old); err != nil {
		if !known && !t.left && coded.Of(err) != "secret-not-restored" {
			s.drop(ctx, name)
		}
		return err
	}
	if known {
		return s.put(ctx, name)
	}
	return nil
}

func (s *Store) put(ctx context.Context, name string) error {
	if err := s.names.Put(context.WithoutCancel(ctx), Name{Name: name, SetAt: s.now()}); err != nil {
		return fmt.Errorf("cannot put %q on the list of secrets: %w", name, err)
	}
	return nil
}

func (s *Store) drop(ctx context.Context, name string) {
	if err := s.names.Drop(context.WithoutCancel(ctx), name); err != nil {
		s.log.Warn("a name without a value stays on the list of secrets", "secret", name, "error", err)
	}
}

// fits compares with the backend's limit, in the backend's unit.
func (s *Store) fits(name string, value []byte) error {
	limit := s.backend.Limit()
	size := limit.Size(key(name), value)
	if size <= limit.Most {
		return nil
	}
	return &coded.Error{
		Code: "secret-too-large",
		Sentence: fmt.Sprintf("the secret %q takes %s %s and %s takes %s; nothing was changed",
			name, grouped(size), limit.Unit, s.backend.Name(), grouped(limit.Most)),
		Next: "keep the file where it is and hand its path to the connector, or use a shorter secret",
	}
}

// grouped writes n with a comma between thousands.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return grouped(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// entry is what the keyring has under a key.
type entry struct {
	there bool
	value []byte
}

func (e entry) equal(other entry) bool {
	return e.there == other.there && bytes.Equal(e.value, other.value)
}

// write stores value in place of old and reads it back.
func (s *Store) write(ctx context.Context, t *turn, value []byte, old entry) error {
	// Once something was written, the rest is done even if the caller goes.
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot store the secret: %w", err)
	}
	ctx = context.WithoutCancel(ctx)
	setErr := s.set(ctx, t, value)
	if t.left {
		return setErr
	}
	now, err := s.current(ctx, t)
	switch {
	case err != nil && setErr == nil:
		setErr = err
	case err == nil && setErr == nil && now.equal(entry{true, value}):
		return nil
	case err == nil && now.equal(old):
		if setErr == nil {
			setErr = s.noted(t.name, s.explained(failed(errors.New("the keyring took the value and does not have it"))))
		}
		return setErr
	case setErr == nil:
		setErr = &coded.Error{
			Code:     "secret-not-storable",
			Sentence: fmt.Sprintf("%s does not give the value of %q back as it was, so it was not kept", s.backend.Name(), t.name),
			Next:     "store the value in another form, for example as base64, if the connector can read that",
		}
	}
	if t.left {
		return setErr
	}
	return s.restored(ctx, t, old, setErr)
}

// restored puts old back after a failure and says so when it could not.
func (s *Store) restored(ctx context.Context, t *turn, old entry, failure error) error {
	var err error
	if old.there {
		err = s.set(ctx, t, old.value)
	} else if err = s.delete(ctx, t); errors.Is(err, ErrNotFound) {
		err = nil
	}
	if err == nil {
		return failure
	}
	return &coded.Error{
		Code:     "secret-not-restored",
		Sentence: fmt.Sprintf("the secret %q could not be stored, and what was there before could not be put back", t.name),
		Next:     "store it again when the keyring works",
		Err:      failure,
	}
}

// current returns what the keyring has; that it has nothing is no error.
func (s *Store) current(ctx context.Context, t *turn) (entry, error) {
	value, err := s.get(ctx, t)
	if errors.Is(err, ErrNotFound) {
		return entry{}, nil
	}
	return entry{err == nil, value}, err
}

func (s *Store) get(ctx context.Context, t *turn) ([]byte, error) {
	return bounded(ctx, s, t, func(ctx context.Context) ([]byte, error) { return s.backend.Get(ctx, key(t.name)) })
}

func (s *Store) set(ctx context.Context, t *turn, value []byte) error {
	value = bytes.Clone(value) // the call may outlive the caller's
	_, err := bounded(ctx, s, t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.backend.Set(ctx, key(t.name), value)
	})
	return err
}

func (s *Store) delete(ctx context.Context, t *turn) error {
	_, err := bounded(ctx, s, t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.backend.Delete(ctx, key(t.name))
	})
	return err
}
