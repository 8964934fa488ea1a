package secrets

import (
	"context"

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
	entry, err := i.entry(key)
	if err != nil {
		return err
	}
	return entry.Set(ctx, value)
}

// Kept returns what is stored under key, or ErrNotFound.
func (i Internal) Kept(ctx context.Context, key string) ([]byte, error) {
	entry, err := i.entry(key)
	if err != nil {
		return nil, err
	}
	return entry.Get(ctx)
}

// Forget removes key; one that is not there is no error.
func (i Internal) Forget(ctx context.Context, key string) error {
	entry, err := i.entry(key)
	if err != nil {
		return err
	}
	return entry.Delete(ctx)
}

// entry is an Own whose outcome is in State: without it a connector cannot work.
func (i Internal) entry(key string) (*Own, error) {
	name, err := internalName(key)
	if err != nil {
		return nil, err
	}
	return &Own{i.store, name}, nil
}

// internalName is key where ':' keeps it apart from every secret's name, whatever a
// backend makes of letter case.
func internalName(key string) (string, error) {
	if CheckName(key) != nil {
		return "", coded.New("secret-name-invalid", "that is not a name for a sign-in")
	}
	return "SALLYPORT:" + key, nil
}
