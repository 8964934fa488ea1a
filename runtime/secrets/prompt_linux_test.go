package secrets

import (
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"sallyport/internal/keyringtest"
)

// desktop is a keyring program that asks a person, as on a desktop: it is locked
// until its window is answered.
type desktop struct {
	t    *testing.T
	conn *dbus.Conn

	mu      sync.Mutex
	locked  bool
	windows int // that were opened
}

const (
	desktopLogin  = dbus.ObjectPath(collectionPath + "login")
	desktopItem   = desktopLogin + "/1"
	desktopWindow = dbus.ObjectPath("/org/freedesktop/secrets/prompt/1")
)

func withDesktop(t *testing.T, session *keyringtest.Session) *desktop {
	t.Helper()
	conn, err := session.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	d := &desktop{t: t, conn: conn, locked: true}
	for path, methods := range map[dbus.ObjectPath]map[string]map[string]any{
		secretsPath: {
			"org.freedesktop.DBus.Properties": {"Get": d.get},
			serviceInterface: {
				"Unlock": func([]dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
					return nil, desktopWindow, nil
				},
				"OpenSession": func(string, dbus.Variant) (dbus.Variant, dbus.ObjectPath, *dbus.Error) {
					return dbus.MakeVariant(""), secretsPath + "/session/1", nil
				},
			},
		},
		desktopLogin: {
			"org.freedesktop.DBus.Properties": {"Get": d.get},
			collectionOf: {"SearchItems": func(map[string]string) ([]dbus.ObjectPath, *dbus.Error) {
				return []dbus.ObjectPath{desktopItem}, nil
			}},
		},
		desktopItem: {
			"org.freedesktop.DBus.Properties": {"Get": d.get},
			itemInterface: {"GetSecret": func(session dbus.ObjectPath) (wireSecret, *dbus.Error) {
				return wireSecret{session, nil, []byte("the value"), "text/plain"}, nil
			}},
		},
		desktopWindow: {promptInterface: {"Prompt": d.prompt}},
	} {
		for name, table := range methods {
			if err := conn.ExportMethodTable(table, path, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := conn.RequestName(secretsName, dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desktop) get(of, name string) (dbus.Variant, *dbus.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if name == "Collections" {
		return dbus.MakeVariant([]dbus.ObjectPath{desktopLogin}), nil
	}
	return dbus.MakeVariant(d.locked), nil
}

func (d *desktop) prompt(string) *dbus.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.windows++
	return nil
}

func (d *desktop) opened() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.windows
}

// answer is the person: with the password, or with Cancel.
func (d *desktop) answer(password bool) {
	d.t.Helper()
	d.mu.Lock()
	d.locked = !password
	d.mu.Unlock()
	if err := d.conn.Emit(desktopWindow, promptInterface+".Completed", !password, dbus.MakeVariant([]dbus.ObjectPath{})); err != nil {
		d.t.Error(err)
	}
}

func onDesktop(session *keyringtest.Session) func(string) string {
	return func(name string) string {
		if name == "WAYLAND_DISPLAY" {
			return "wayland-0"
		}
		return session.Getenv(name)
	}
}

func TestWindowThatIsAnsweredLateOpensTheKeyringForTheNextCall(t *testing.T) {
	session := keyringtest.NoProvider(t)
	d := withDesktop(t, session)
	s := Open(Config{
		Backend: SystemKeyring(KeyringConfig{Getenv: onDesktop(session)}), Names: newList("A", "B", "C"),
		Timeout: 3 * time.Second, System: &System{OS: "linux", Desktop: true},
	})
	t.Cleanup(func() { s.Close() })
	var all sync.WaitGroup
	for _, name := range []string{"A", "B", "C"} {
		all.Go(func() {
			_, err := s.Secret(t.Context(), name)
			wantCode(t, err, "keyring-locked")
		})
	}
	all.Wait()
	if state := s.Probe(t.Context()); state.Status != "locked" {
		t.Errorf("state is %+v", state)
	}
	if n := d.opened(); n != 1 {
		t.Errorf("%d windows were opened", n)
	}
	d.answer(true)
	eventually(t, func() bool {
		got, err := s.Secret(t.Context(), "A")
		return err == nil && got == "the value"
	})
	if n := d.opened(); n != 1 {
		t.Errorf("%d windows were opened", n)
	}
}

func TestWindowThatIsAnsweredInTimeGivesTheValue(t *testing.T) {
	session := keyringtest.NoProvider(t)
	d := withDesktop(t, session)
	s := Open(Config{Backend: SystemKeyring(KeyringConfig{Getenv: onDesktop(session)}), Names: newList("A"), Timeout: patient})
	t.Cleanup(func() { s.Close() })
	var answering sync.WaitGroup
	answering.Go(func() {
		eventually(t, func() bool { return d.opened() == 1 })
		d.answer(true)
	})
	got, err := s.Secret(t.Context(), "A")
	answering.Wait()
	if err != nil || got != "the value" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNoIsHeardOnce(t *testing.T) {
	session := keyringtest.NoProvider(t)
	d := withDesktop(t, session)
	s := Open(Config{
		Backend: SystemKeyring(KeyringConfig{Getenv: onDesktop(session)}), Names: newList("A", "B"),
		Timeout: patient, System: &System{OS: "linux", Desktop: true},
	})
	t.Cleanup(func() { s.Close() })
	var answering sync.WaitGroup
	answering.Go(func() {
		eventually(t, func() bool { return d.opened() == 1 })
		d.answer(false)
	})
	_, err := s.Secret(t.Context(), "A")
	answering.Wait()
	wantCode(t, err, "keyring-denied")
	_, err = s.Secret(t.Context(), "B")
	wantCode(t, err, "keyring-denied")
	if n := d.opened(); n != 1 {
		t.Errorf("%d windows were opened", n)
	}
}

func TestCloseEndsTheOpenWindow(t *testing.T) {
	session := keyringtest.NoProvider(t)
	withDesktop(t, session)
	s := Open(Config{Backend: SystemKeyring(KeyringConfig{Getenv: onDesktop(session)}), Names: newList("A"), Timeout: 3 * time.Second})
	_, err := s.Secret(t.Context(), "A")
	wantCode(t, err, "keyring-locked")
	if err := s.Close(); err != nil { // and goleak finds nothing left
		t.Error(err)
	}
}
