//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// login is a session bus and what offers a keyring on it, apart from the user's own
// and from the home under test. All of it ends with the test.
type login struct {
	t       testing.TB
	dir     string // its HOME
	address string // of the bus; "" without one
}

const keyringPassword = "a password for tests"

// busFile starts nothing by itself: a test decides who offers a keyring.
const busFile = `<busconfig><type>session</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>`

func loginWithoutBus(t testing.TB) *login {
	t.Helper()
	dir, err := os.MkdirTemp("", "login") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &login{t: t, dir: dir}
}

func loginWithoutProvider(t testing.TB) *login {
	t.Helper()
	l := loginWithoutBus(t)
	socket, file := filepath.Join(l.dir, "bus"), filepath.Join(l.dir, "bus.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, busFile, socket), 0o600); err != nil {
		t.Fatal(err)
	}
	l.address = "unix:path=" + socket
	l.start("", "dbus-daemon", "--config-file="+file, "--nofork", "--nopidfile")
	waitFor(t, "the bus listens", 20*time.Second, func() bool {
		conn, err := l.connect()
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return l
}

// loginWithKeyring has gnome-keyring with an open login keyring.
func loginWithKeyring(t testing.TB) *login {
	t.Helper()
	l := loginWithoutProvider(t)
	l.start(keyringPassword, "gnome-keyring-daemon", "--foreground", "--components=secrets", "--unlock")
	conn := l.must()
	waitFor(t, "the keyring answers", 20*time.Second, func() bool {
		var all dbus.Variant
		return service(conn).StoreProperty("org.freedesktop.Secret.Service.Collections", &all) == nil
	})
	return l
}

// loginThatIsSilent has a bus that takes connections and never says a word.
func loginThatIsSilent(t testing.TB) *login {
	t.Helper()
	l := loginWithoutBus(t)
	socket := filepath.Join(l.dir, "bus")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	l.address = "unix:path=" + socket // the kernel takes connections; nobody accepts one
	return l
}

// env makes a program a part of the login.
func (l *login) env() []string {
	return []string{"DBUS_SESSION_BUS_ADDRESS=" + l.address, "XDG_RUNTIME_DIR=" + l.dir}
}

func (l *login) start(input, program string, args ...string) {
	l.t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		l.t.Fatalf("%s is missing: install it with scripts/setup test, or sudo apt-get install dbus gnome-keyring", program)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(l.env(), "PATH="+os.Getenv("PATH"), "HOME="+l.dir, "LC_ALL=C")
	cmd.Stdin = strings.NewReader(input)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
}

func (l *login) connect() (*dbus.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	conn, err := dbus.Connect(l.address, dbus.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(conn.Context(), cancel)
	return conn, nil
}

func (l *login) must() *dbus.Conn {
	l.t.Helper()
	conn, err := l.connect()
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	return conn
}

func service(conn *dbus.Conn) dbus.BusObject {
	return conn.Object("org.freedesktop.secrets", "/org/freedesktop/secrets")
}

const loginCollection = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")

// lock locks the login keyring, as the person or a timeout would.
func (l *login) lock() {
	l.t.Helper()
	call := service(l.must()).Call("org.freedesktop.Secret.Service.Lock", 0, []dbus.ObjectPath{loginCollection})
	if call.Err != nil {
		l.t.Fatal(call.Err)
	}
}

// unlock opens it, as the person would in a window.
func (l *login) unlock() {
	l.t.Helper()
	conn := l.must()
	var output dbus.Variant
	var session dbus.ObjectPath
	err := service(conn).Call("org.freedesktop.Secret.Service.OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&output, &session)
	if err != nil {
		l.t.Fatal(err)
	}
	type secret struct {
		Session           dbus.ObjectPath
		Parameters, Value []byte
		ContentType       string
	}
	call := service(conn).Call("org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface.UnlockWithMasterPassword", 0,
		loginCollection, secret{session, []byte{}, []byte(keyringPassword), "text/plain"})
	if call.Err != nil {
		l.t.Fatal(call.Err)
	}
}
