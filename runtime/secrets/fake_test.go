package secrets

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"
)

// fake is a keyring in memory that can be made to fail or to hang.
type fake struct {
	limit Limit

	mu     sync.Mutex
	values map[string][]byte
	// before runs in front of each call ("set", "get", "delete", "check").
	before func(ctx context.Context, act, key string) error
	// changed is what Set keeps of a value.
	changed func([]byte) []byte
	calls   []string
}

func newFake() *fake { return &fake{limit: plainLimit(mostBytes), values: map[string][]byte{}} }

func (f *fake) Name() string { return "the fake" }
func (f *fake) Limit() Limit { return f.limit }
func (f *fake) Close() error { return nil }

// made returns the calls so far.
func (f *fake) made() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *fake) begin(ctx context.Context, act, key string) error {
	f.mu.Lock()
	f.calls = append(f.calls, act+" "+key)
	before := f.before
	f.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(ctx, act, key)
}

func (f *fake) Set(ctx context.Context, key string, value []byte) error {
	if err := f.begin(ctx, "set", key); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed != nil {
		value = f.changed(value)
	}
	f.values[key] = value
	return nil
}

func (f *fake) Get(ctx context.Context, key string) ([]byte, error) {
	if err := f.begin(ctx, "get", key); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	value, ok := f.values[key]
	if !ok {
		return nil, ErrNotFound
	}
	return value, nil
}

func (f *fake) Delete(ctx context.Context, key string) error {
	if err := f.begin(ctx, "delete", key); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.values[key]; !ok {
		return ErrNotFound
	}
	delete(f.values, key)
	return nil
}

func (f *fake) Check(ctx context.Context) error { return f.begin(ctx, "check", "") }

var errAbsent = errors.New("absent")

// libraryOf is a library that keeps values in memory. With encode it behaves as
// zalando/go-keyring does on macOS: it writes base64 behind a prefix and decodes
// what has one; without, it decodes and does not encode, as a careless one would.
func libraryOf(limit Limit, encode, decode bool) *library {
	const prefix = "go-keyring-base64:"
	var mu sync.Mutex
	kept := map[string]string{}
	return &library{
		name: "the library", service: "Sallyport", limit: limit, absent: errAbsent, explain: func(err error) error { return err },
		set: func(service, user, value string) error {
			mu.Lock()
			defer mu.Unlock()
			if encode {
				value = prefix + base64.StdEncoding.EncodeToString([]byte(value))
			}
			kept[service+user] = value
			return nil
		},
		get: func(service, user string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			value, ok := kept[service+user]
			if !ok {
				return "", errAbsent
			}
			if decode {
				value = strings.TrimSpace(value)
				if coded, ok := strings.CutPrefix(value, prefix); ok {
					plain, err := base64.StdEncoding.DecodeString(coded)
					return string(plain), err
				}
			}
			return value, nil
		},
		remove: func(service, user string) error {
			mu.Lock()
			defer mu.Unlock()
			if _, ok := kept[service+user]; !ok {
				return errAbsent
			}
			delete(kept, service+user)
			return nil
		},
	}
}
