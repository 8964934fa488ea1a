package keyringtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// busConfig starts nothing by itself: a test decides who offers a keyring.
const busConfig = `<busconfig>
<type>session</type>
<listen>unix:path=%s</listen>
<auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
`

// Session is a login of its own: a bus and, unless it has none, gnome-keyring,
// with a home and a runtime folder that nobody else uses. Nothing of the user's own
// session is touched, nothing is installed, and all of it ends with the test.
type Session struct {
	// Address is the bus's, as in DBUS_SESSION_BUS_ADDRESS.
	Address string
	// Home and Runtime are its HOME and XDG_RUNTIME_DIR.
	Home, Runtime string

	t      testing.TB
	bus    *exec.Cmd
	daemon *exec.Cmd
}

// Env returns the variables that make a program part of the session, and no
// other of this process's but PATH.
func (s *Session) Env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.Home, "XDG_RUNTIME_DIR=" + s.Runtime,
		"DBUS_SESSION_BUS_ADDRESS=" + s.Address,
	}
}

// Getenv is os.Getenv of such a program.
func (s *Session) Getenv(name string) string {
	for _, pair := range s.Env() {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// NoBus returns a session without a bus.
func NoBus(t testing.TB) *Session {
	t.Helper()
	home, err := os.MkdirTemp("", "keyring") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	s := &Session{Home: home, Runtime: filepath.Join(home, "run"), t: t}
	if err := os.Mkdir(s.Runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// NoProvider returns a session with a bus on which nobody offers a keyring.
func NoProvider(t testing.TB) *Session {
	t.Helper()
	need(t, "dbus-daemon", "dbus")
	s := NoBus(t)
	socket := filepath.Join(s.Runtime, "bus")
	file := filepath.Join(s.Home, "bus.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, busConfig, socket), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Address = "unix:path=" + socket
	s.bus = s.start("", "dbus-daemon", "--config-file="+file, "--nofork", "--nopidfile")
	s.until("the bus listens", func() bool {
		conn, err := s.Connect()
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return s
}

// NoCollection returns a session whose keyring has never been used: there is
// nothing to keep entries in.
func NoCollection(t testing.TB) *Session {
	t.Helper()
	s := NoProvider(t)
	s.serve("")
	return s
}

// Unlocked returns a session whose login keyring is open.
func Unlocked(t testing.TB) *Session {
	t.Helper()
	s := NoProvider(t)
	s.serve(Password, "--unlock")
	return s
}

// Locked returns a session whose login keyring is locked, and nobody can be asked
// for its password.
func Locked(t testing.TB) *Session {
	t.Helper()
	s := Unlocked(t)
	s.Lock()
	return s
}

// Password opens every keyring of this package.
const Password = "a password for tests"

const (
	login = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")
)

func service(conn *dbus.Conn) dbus.BusObject {
	return conn.Object("org.freedesktop.secrets", "/org/freedesktop/secrets")
}

// Lock locks the login keyring, as the person or a time-out would.
func (s *Session) Lock() {
	s.t.Helper()
	s.with(func(conn *dbus.Conn) error {
		return service(conn).Call("org.freedesktop.Secret.Service.Lock", 0, []dbus.ObjectPath{login}).Err
	})
}

// Unlock opens it, as the person would in a window.
func (s *Session) Unlock() {
	s.t.Helper()
	type secret struct {
		Session           dbus.ObjectPath
		Parameters, Value []byte
		ContentType       string
	}
	s.with(func(conn *dbus.Conn) error {
		var output dbus.Variant
		var session dbus.ObjectPath
		err := service(conn).Call("org.freedesktop.Secret.Service.OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&output, &session)
		if err != nil {
			return err
		}
		return service(conn).Call("org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface.UnlockWithMasterPassword", 0,
			login, secret{session, []byte{}, []byte(Password), "text/plain"}).Err
	})
}

// Entries counts what the login keyring holds.
func (s *Session) Entries() int {
	s.t.Helper()
	var items []dbus.ObjectPath
	s.with(func(conn *dbus.Conn) error {
		return conn.Object("org.freedesktop.secrets", login).StoreProperty("org.freedesktop.Secret.Collection.Items", &items)
	})
	return len(items)
}

func (s *Session) with(do func(*dbus.Conn) error) {
	s.t.Helper()
	conn, err := s.Connect()
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := do(conn); err != nil {
		s.t.Fatal(err)
	}
}

// Freeze stops the keyring in the middle of its work, so that it takes calls and
// answers none; thaw lets it go on.
func (s *Session) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (s *Session) Thaw() { s.signal(syscall.SIGCONT) }

// EndBus ends the bus, as at the end of a login.
func (s *Session) EndBus() {
	_ = s.bus.Process.Kill()
	_ = s.bus.Wait()
}

func (s *Session) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.daemon.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// serve starts the keyring and waits until it answers.
func (s *Session) serve(input string, args ...string) {
	s.t.Helper()
	need(s.t, "gnome-keyring-daemon", "gnome-keyring")
	s.daemon = s.start(input, "gnome-keyring-daemon", append([]string{"--foreground", "--components=secrets"}, args...)...)
	conn, err := s.Connect()
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	s.until("the keyring answers", func() bool {
		var all dbus.Variant
		err := service(conn).StoreProperty("org.freedesktop.Secret.Service.Collections", &all)
		return err == nil
	})
}

func (s *Session) start(input, program string, args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(s.Env(), "LC_ALL=C")
	cmd.Stdin = strings.NewReader(input)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd
}

// Connect is a connection to the bus. It never waits longer than a test should.
func (s *Session) Connect() (*dbus.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	conn, err := dbus.Connect(s.Address, dbus.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(conn.Context(), cancel)
	return conn, nil
}

func (s *Session) until(what string, true func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited 20 s in vain until %s", what)
		}
	}
}

// need fails the test where program is not installed.
func need(t testing.TB, program, name string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%s is missing: install it with scripts/setup test, or sudo apt-get install %s", program, name)
	}
}

// Silent returns a session whose bus takes connections and never says a word.
func Silent(t testing.TB) *Session {
	t.Helper()
	s := NoBus(t)
	socket := filepath.Join(s.Runtime, "bus")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s.Address = "unix:path=" + socket
	var taken []net.Conn
	var taking sync.WaitGroup
	taking.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			taken = append(taken, conn)
		}
	})
	t.Cleanup(func() {
		listener.Close()
		taking.Wait()
		for _, conn := range taken {
			_ = conn.Close()
		}
	})
	return s
}
