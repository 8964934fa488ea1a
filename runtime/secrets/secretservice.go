//go:build !darwin && !windows

package secrets

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

// SystemKeyring returns the freedesktop Secret Service on the session bus
// (gnome-keyring, KWallet, KeePassXC). It does not touch it.
func SystemKeyring(c KeyringConfig) Backend {
	getenv := c.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &secretService{service: c.service(), getenv: getenv, life: ctx, end: cancel}
}

// secretService speaks the Secret Service API itself: each call has a connection
// of its own that ends with its context, so that a bus that never answers costs
// nothing afterwards (docs/decisions/0013-own-secret-service.md). Entries look
// like those of zalando/go-keyring.
type secretService struct {
	service string
	getenv  func(string) string
	life    context.Context // of what waits for a person
	end     context.CancelFunc
	waiting sync.WaitGroup

	mu     sync.Mutex
	prompt *prompt // the window that is open now
	denied time.Time
}

// Names of the Secret Service API, version 0.2.
const (
	secretsName       = "org.freedesktop.secrets"
	secretsPath       = dbus.ObjectPath("/org/freedesktop/secrets")
	serviceInterface  = "org.freedesktop.Secret.Service"
	collectionPath    = "/org/freedesktop/secrets/collection/"
	collectionOf      = "org.freedesktop.Secret.Collection"
	itemInterface     = "org.freedesktop.Secret.Item"
	promptInterface   = "org.freedesktop.Secret.Prompt"
	noObject          = dbus.ObjectPath("/")
	errorIsLocked     = "org.freedesktop.Secret.Error.IsLocked"
	errorNoSuchObject = "org.freedesktop.Secret.Error.NoSuchObject"
)

// wireSecret is the API's struct Secret, by its signature (oayays).
type wireSecret struct {
	Session     dbus.ObjectPath
	Parameters  []byte
	Value       []byte
	ContentType string
}

func (b *secretService) Name() string { return "the keyring (Secret Service)" }

func (b *secretService) Limit() Limit { return plainLimit(mostBytes) }

// Close ends the window that may be open and waits for what waited for it.
func (b *secretService) Close() error {
	b.end()
	b.waiting.Wait()
	return nil
}

func (b *secretService) Set(ctx context.Context, key string, value []byte) error {
	return b.with(ctx, func(bus *bus) error {
		collection, err := b.unlocked(ctx, bus)
		if err != nil {
			return err
		}
		session, err := bus.session(ctx)
		if err != nil {
			return err
		}
		properties := map[string]dbus.Variant{
			itemInterface + ".Label":      dbus.MakeVariant("Password for '" + key + "' on '" + b.service + "'"),
			itemInterface + ".Attributes": dbus.MakeVariant(b.attributes(key)),
		}
		secret := wireSecret{session, []byte{}, value, "text/plain; charset=utf8"}
		var item, asks dbus.ObjectPath
		err = bus.call(ctx, collection, collectionOf+".CreateItem", properties, secret, true).Store(&item, &asks)
		if err != nil {
			return err
		}
		return bus.ask(ctx, asks)
	})
}

func (b *secretService) Get(ctx context.Context, key string) (value []byte, err error) {
	err = b.with(ctx, func(bus *bus) error {
		collection, err := b.unlocked(ctx, bus)
		if err != nil {
			return err
		}
		items, err := b.find(ctx, bus, collection, key)
		if err != nil {
			return err
		}
		// A keyring may lock single entries (KeePassXC asks for each).
		if err := b.unlock(ctx, bus, items[0], itemInterface); err != nil {
			return err
		}
		session, err := bus.session(ctx)
		if err != nil {
			return err
		}
		var secret wireSecret
		if err := bus.call(ctx, items[0], itemInterface+".GetSecret", session).Store(&secret); err != nil {
			return err
		}
		value = secret.Value
		return nil
	})
	return value, err
}

func (b *secretService) Delete(ctx context.Context, key string) error {
	return b.with(ctx, func(bus *bus) error {
		collection, err := b.unlocked(ctx, bus)
		if err != nil {
			return err
		}
		items, err := b.find(ctx, bus, collection, key)
		if err != nil {
			return err
		}
		for _, item := range items {
			var asks dbus.ObjectPath
			if err := bus.call(ctx, item, itemInterface+".Delete").Store(&asks); err != nil {
				return err
			}
			if err := bus.ask(ctx, asks); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *secretService) Check(ctx context.Context) error {
	return b.with(ctx, func(bus *bus) error {
		collection, err := bus.collection(ctx)
		if err != nil {
			return err
		}
		shut, err := bus.locked(ctx, collection, collectionOf)
		if err == nil && shut {
			return locked(nil)
		}
		return err
	})
}

// with opens a connection for f and closes it, and names what goes wrong.
func (b *secretService) with(ctx context.Context, f func(*bus) error) error {
	bus, err := dial(ctx, b.getenv)
	if err != nil {
		return err
	}
	defer bus.close()
	err = f(bus)
	if err != nil && ctx.Err() != nil && !named(err) {
		return ctx.Err()
	}
	return busError(err)
}

// unlocked returns the collection that entries are kept in, unlocked.
func (b *secretService) unlocked(ctx context.Context, bus *bus) (dbus.ObjectPath, error) {
	collection, err := bus.collection(ctx)
	if err != nil {
		return "", err
	}
	return collection, b.unlock(ctx, bus, collection, collectionOf)
}

func (b *secretService) attributes(key string) map[string]string {
	return map[string]string{"service": b.service, "username": key}
}

// find returns the entries under key, at least one.
func (b *secretService) find(ctx context.Context, bus *bus, collection dbus.ObjectPath, key string) ([]dbus.ObjectPath, error) {
	var items []dbus.ObjectPath
	if err := bus.call(ctx, collection, collectionOf+".SearchItems", b.attributes(key)).Store(&items); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, ErrNotFound
	}
	return items, nil
}

// errDismissed is a prompt's answer when the person, or the lack of one, said no.
var errDismissed = errors.New("the prompt was dismissed")
