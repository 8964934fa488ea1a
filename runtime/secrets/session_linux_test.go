package secrets

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

// testSession is a login of its own: a bus and, unless it has none, gnome-keyring,
// with a home and a runtime folder that nobody else uses. Nothing of the user's own
// session is touched, nothing is installed, and all of it ends with the test.
type testSession struct {
	// address is the bus's, as in DBUS_SESSION_BUS_ADDRESS.
	address string
	// home and runtime are its HOME and XDG_RUNTIME_DIR.
	home, runtime string

	t      testing.TB
	bus    *exec.Cmd
	daemon *exec.Cmd
}

// env returns the variables that make a program part of the session, and no
// other of this process's but PATH.
func (s *testSession) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "XDG_RUNTIME_DIR=" + s.runtime,
		"DBUS_SESSION_BUS_ADDRESS=" + s.address,
	}
}

// getenv is os.Getenv of such a program.
func (s *testSession) getenv(name string) string {
	for _, pair := range s.env() {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// sessionNoBus returns a session without a bus.
func sessionNoBus(t testing.TB) *testSession {
	t.Helper()
	home, err := os.MkdirTemp("", "keyring") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	s := &testSession{home: home, runtime: filepath.Join(home, "run"), t: t}
	if err := os.Mkdir(s.runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// sessionNoProvider returns a session with a bus on which nobody offers a keyring.
func sessionNoProvider(t testing.TB) *testSession {
	t.Helper()
	need(t, "dbus-daemon", "dbus")
	s := sessionNoBus(t)
	socket := filepath.Join(s.runtime, "bus")
	file := filepath.Join(s.home, "bus.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, busConfig, socket), 0o600); err != nil {
		t.Fatal(err)
	}
	s.address = "unix:path=" + socket
	s.bus = s.start("", "dbus-daemon", "--config-file="+file, "--nofork", "--nopidfile")
	s.until("the bus listens", func() bool {
		conn, err := s.connect()
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return s
}

// sessionNoCollection returns a session whose keyring has never been used: there is
// nothing to keep entries in.
func sessionNoCollection(t testing.TB) *testSession {
	t.Helper()
	s := sessionNoProvider(t)
	s.serve("")
	return s
}

// sessionUnlocked returns a session whose login keyring is open.
func sessionUnlocked(t testing.TB) *testSession {
	t.Helper()
	s := sessionNoProvider(t)
	s.serve("a password for tests", "--unlock")
	return s
}

// sessionLocked returns a session whose login keyring is locked, and nobody can be asked
// for its password.
func sessionLocked(t testing.TB) *testSession {
	t.Helper()
	s := sessionUnlocked(t)
	s.lock()
	return s
}

// lock locks the login keyring.
func (s *testSession) lock() {
	s.t.Helper()
	conn, err := s.connect()
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	login := []dbus.ObjectPath{"/org/freedesktop/secrets/collection/login"}
	call := conn.Object("org.freedesktop.secrets", "/org/freedesktop/secrets").Call("org.freedesktop.Secret.Service.Lock", 0, login)
	if call.Err != nil {
		s.t.Fatal(call.Err)
	}
}

// freeze stops the keyring in the middle of its work, so that it takes calls and
// answers none; thaw lets it go on.
func (s *testSession) freeze() { s.signal(syscall.SIGSTOP) }

// thaw undoes freeze.
func (s *testSession) thaw() { s.signal(syscall.SIGCONT) }

// endBus ends the bus, as at the end of a login.
func (s *testSession) endBus() {
	s.bus.Process.Kill()
	s.bus.Wait()
}

func (s *testSession) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.daemon.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// serve starts the keyring and waits until it answers.
func (s *testSession) serve(password string, args ...string) {
	s.t.Helper()
	need(s.t, "gnome-keyring-daemon", "gnome-keyring")
	s.daemon = s.start(password, "gnome-keyring-daemon", append([]string{"--foreground", "--components=secrets"}, args...)...)
	conn, err := s.connect()
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	s.until("the keyring answers", func() bool {
		var all dbus.Variant
		err := conn.Object("org.freedesktop.secrets", "/org/freedesktop/secrets").StoreProperty("org.freedesktop.Secret.Service.Collections", &all)
		return err == nil
	})
}

func (s *testSession) start(input, program string, args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), program, args...)
	cmd.Env = append(s.env(), "LC_ALL=C")
	cmd.Stdin = strings.NewReader(input)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// connect never waits longer than a test should.
func (s *testSession) connect() (*dbus.Conn, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	conn, err := dbus.Connect(s.address, dbus.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(conn.Context(), cancel)
	return conn, nil
}

func (s *testSession) until(what string, true func() bool) {
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

// sessionSilent returns a session whose bus takes connections and never says a word.
func sessionSilent(t testing.TB) *testSession {
	t.Helper()
	s := sessionNoBus(t)
	socket := filepath.Join(s.runtime, "bus")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s.address = "unix:path=" + socket
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
			conn.Close()
		}
	})
	return s
}
