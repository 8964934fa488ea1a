//go:build !darwin && !windows

package secrets

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"

	"github.com/godbus/dbus/v5"

	"sallyport/internal/sessionbus"
)

// bus is a connection to the session bus that ends with the context it was
// dialled for.
type bus struct{ conn *dbus.Conn }

func dial(ctx context.Context, getenv func(string) string) (*bus, error) {
	at := sessionbus.Address(getenv)
	if at == "" {
		return nil, noBus(nil)
	}
	conn, err := dbus.Dial(at, dbus.WithContext(ctx))
	if err != nil {
		if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
			return nil, denied(err)
		}
		if errors.Is(err, syscall.EAGAIN) { // nobody takes what waits already
			return nil, notAnswering()
		}
		return nil, noBus(err)
	}
	if err = conn.Auth(nil); err == nil {
		err = conn.Hello()
	} else if ctx.Err() == nil {
		err = denied(err) // the bus is another user's
	}
	if err != nil {
		(&bus{conn}).close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, busError(err)
	}
	return &bus{conn}, nil
}

func (b *bus) close() {
	b.conn.Close() //nolint:errcheck // nothing is on its way any more
}

func (b *bus) call(ctx context.Context, path dbus.ObjectPath, method string, args ...any) *dbus.Call {
	return b.conn.Object(secretsName, path).CallWithContext(ctx, method, 0, args...)
}

func (b *bus) property(ctx context.Context, path dbus.ObjectPath, of, name string, into any) error {
	var value dbus.Variant
	if err := b.call(ctx, path, "org.freedesktop.DBus.Properties.Get", of, name).Store(&value); err != nil {
		return err
	}
	return value.Store(into)
}

// session opens a "plain" session: the bus is a socket that only this user and
// root can read.
func (b *bus) session(ctx context.Context) (session dbus.ObjectPath, err error) {
	var nothing dbus.Variant
	err = b.call(ctx, secretsPath, serviceInterface+".OpenSession", "plain", dbus.MakeVariant("")).Store(&nothing, &session)
	return session, err
}

// collection returns the login collection or else the default one, which is the
// choice of zalando/go-keyring.
func (b *bus) collection(ctx context.Context) (dbus.ObjectPath, error) {
	var all []dbus.ObjectPath
	if err := b.property(ctx, secretsPath, serviceInterface, "Collections", &all); err != nil {
		return "", err
	}
	if login := dbus.ObjectPath(collectionPath + "login"); slices.Contains(all, login) {
		return login, nil
	}
	var standard dbus.ObjectPath
	if err := b.call(ctx, secretsPath, serviceInterface+".ReadAlias", "default").Store(&standard); err != nil {
		return "", err
	}
	if standard == noObject {
		return "", noCollection()
	}
	return standard, nil
}

func (b *bus) locked(ctx context.Context, path dbus.ObjectPath, of string) (shut bool, err error) {
	err = b.property(ctx, path, of, "Locked", &shut)
	return shut, err
}

// ask shows the prompt at path and waits for its answer; noObject is none.
func (b *bus) ask(ctx context.Context, path dbus.ObjectPath) error {
	if path == noObject {
		return nil
	}
	signals := make(chan *dbus.Signal, 16)
	b.conn.Signal(signals)
	match := []dbus.MatchOption{dbus.WithMatchObjectPath(path), dbus.WithMatchInterface(promptInterface), dbus.WithMatchMember("Completed")}
	if err := b.conn.AddMatchSignalContext(ctx, match...); err != nil {
		return err
	}
	if err := b.call(ctx, path, promptInterface+".Prompt", "").Err; err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return locked(ctx.Err())
		case signal, open := <-signals:
			if !open {
				return locked(dbus.ErrClosed)
			}
			if signal.Path != path || signal.Name != promptInterface+".Completed" || len(signal.Body) == 0 {
				continue
			}
			if dismissed, ok := signal.Body[0].(bool); !ok || dismissed {
				return errDismissed
			}
			return nil
		}
	}
}

// busError gives the errors of the bus and of the API their names.
func busError(err error) error {
	if err == nil || named(err) {
		return err
	}
	if errors.Is(err, errDismissed) {
		return denied(err)
	}
	var told dbus.Error
	if !errors.As(err, &told) {
		return err
	}
	const bus = "org.freedesktop.DBus.Error."
	switch name := told.Name; {
	case name == bus+"ServiceUnknown", name == bus+"NameHasNoOwner",
		strings.HasPrefix(name, bus+"Spawn."), strings.HasPrefix(name, "org.freedesktop.systemd1."):
		return noProvider(err)
	case name == bus+"NoReply", name == bus+"Timeout", name == bus+"TimedOut":
		return notAnswering()
	case name == bus+"AccessDenied", name == bus+"AuthFailed", name == bus+"InteractiveAuthorizationRequired":
		return denied(err)
	case name == errorIsLocked:
		return locked(err)
	case name == errorNoSuchObject: // it went between two calls
		return ErrNotFound
	}
	return err
}
