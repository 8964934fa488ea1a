package secrets

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/coded"
)

// Internal is the part of a Store for what Sallyport itself is given, as when a
// person signs in to a server. It is in the same keyring under names that no secret
// can have: nothing lists them and no reference reads them. Whoever uses it keeps
// its own list of what is there.
type Internal struct{ store *Store }

// Internal returns the part for Sallyport itself.
func (s *Store) Internal() Internal { return Internal{s} }

// Keep stores value under key, read back and compared like a secret.
func (i Internal) Keep(ctx context.Context, key string, value []byte) error {
	name, err := internalName(key)
	if err != nil {
		return err
	}
	limit := i.store.backend.Limit()
	if size := limit.Size(name, value); size > limit.Most {
		return &coded.Error{Code: "secret-too-large", Sentence: fmt.Sprintf("what is to be kept takes %s %s and %s takes %s; nothing was changed",
			grouped(size), limit.Unit, i.store.backend.Name(), grouped(limit.Most))}
	}
	t, err := i.store.begin(ctx, name)
	if err != nil {
		return err
	}
	defer i.store.end(t)
	old, err := i.store.current(ctx, t)
	if err != nil {
		return err
	}
	return i.store.write(ctx, t, value, old)
}

// Kept returns what is stored under key, or ErrNotFound.
func (i Internal) Kept(ctx context.Context, key string) ([]byte, error) {
	name, err := internalName(key)
	if err != nil {
		return nil, err
	}
	t, err := i.store.begin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer i.store.end(t)
	return i.store.get(ctx, t)
}

// Forget removes key; one that is not there is no error.
func (i Internal) Forget(ctx context.Context, key string) error {
	name, err := internalName(key)
	if err != nil {
		return err
	}
	t, err := i.store.begin(ctx, name)
	if err != nil {
		return err
	}
	defer i.store.end(t)
	if err := i.store.delete(ctx, t); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// internalName is key where ':' keeps it apart from every secret's name, whatever a
// backend makes of letter case.
func internalName(key string) (string, error) {
	if CheckName(key) != nil {
		return "", coded.New("secret-name-invalid", "that is not a name for a sign-in")
	}
	return "SALLYPORT:" + key, nil
}
