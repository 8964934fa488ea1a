package secrets

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"sallyport/internal/keyringtest"
)

// otherSide lets the test program be the independent other side: a user of
// zalando/go-keyring in the same session.
func otherSide() {
	name := os.Getenv("OTHER_SIDE_READS")
	if name == "" {
		return
	}
	value, err := keyring.Get("Sallyport", name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(value)
	os.Exit(0)
}

// patient is the limit where no test is about it: the machine may be busy.
const patient = 30 * time.Second

func in(t *testing.T, session *keyringtest.Session, names NameStore, limit time.Duration) *Store {
	t.Helper()
	s := Open(Config{
		Backend: SystemKeyring(KeyringConfig{Getenv: session.Getenv}),
		Names:   names, Timeout: limit, System: &System{OS: "linux"},
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestUnlockedKeyringGivesEveryValueBackByteForByte(t *testing.T) {
	session := keyringtest.Unlocked(t)
	s := in(t, session, newList(), patient)
	for what, value := range awkward {
		t.Run(what, func(t *testing.T) {
			if err := s.Set(t.Context(), "VALUE", []byte(value)); err != nil {
				t.Fatal(err)
			}
			got, err := s.Secret(t.Context(), "VALUE")
			if err != nil || got != value {
				t.Errorf("got %q, %v", got, err)
			}
			if state := s.State(t.Context()); state.Status != OK {
				t.Errorf("state is %+v", state)
			}
		})
	}
}

func TestGoKeyringReadsWhatWasStored(t *testing.T) {
	session := keyringtest.Unlocked(t)
	s := in(t, session, newList(), patient)
	for _, value := range []string{"first", "second\n"} {
		if err := s.Set(t.Context(), "TOKEN", []byte(value)); err != nil {
			t.Fatal(err)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(session.Env(), "OTHER_SIDE_READS=TOKEN")
		out, err := cmd.Output()
		if err != nil || string(out) != value {
			t.Errorf("it reads %q, %v", out, err)
		}
	}
}

func TestDeletedSecretIsUnknown(t *testing.T) {
	s := in(t, keyringtest.Unlocked(t), newList(), patient)
	if err := s.Set(t.Context(), "TOKEN", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "TOKEN"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Secret(t.Context(), "TOKEN")
	wantCode(t, err, "secret-unknown")
	wantCode(t, s.Delete(t.Context(), "TOKEN"), "secret-unknown")
	if names, err := s.List(t.Context()); err != nil || len(names) != 0 {
		t.Errorf("list is %v, %v", names, err)
	}
}

func TestKeyringThatCannotBeUsedSaysWhy(t *testing.T) {
	for _, row := range []struct {
		what   string
		start  func(testing.TB) *keyringtest.Session
		code   string
		status string
		next   string
		limit  time.Duration // short only where it is waited for
	}{
		{"no bus", keyringtest.NoBus, "keyring-no-bus", "no-bus", "XDG_RUNTIME_DIR", patient},
		{"a bus that ended", func(t testing.TB) *keyringtest.Session {
			s := keyringtest.NoProvider(t)
			s.EndBus()
			return s
		}, "keyring-no-bus", "no-bus", "XDG_RUNTIME_DIR", patient},
		{"no provider", keyringtest.NoProvider, "keyring-no-provider", "no-provider", "install gnome-keyring", patient},
		{"no collection", keyringtest.NoCollection, "keyring-no-collection", "no-collection", "--unlock", patient},
		{"a locked collection", keyringtest.Locked, "keyring-locked", "locked", "--unlock", patient},
		{"a bus that never answers", keyringtest.Silent, "keyring-not-answering", "not-answering", "restart the keyring", time.Second},
		{"a keyring that never answers", func(t testing.TB) *keyringtest.Session {
			s := keyringtest.Unlocked(t)
			s.Freeze()
			return s
		}, "keyring-not-answering", "not-answering", "restart the keyring", time.Second},
	} {
		t.Run(row.what, func(t *testing.T) {
			names := newList("OLD")
			s := in(t, row.start(t), names, row.limit)
			if state := s.State(t.Context()); state.Status != NotAsked {
				t.Errorf("before any call it is %+v", state)
			}
			_, err := s.Secret(t.Context(), "OLD")
			wantCode(t, err, row.code)
			wantCode(t, s.Set(t.Context(), "NEW", []byte("x")), row.code)
			wantCode(t, s.Delete(t.Context(), "OLD"), row.code)
			state := s.State(t.Context())
			if state.Status != row.status || !strings.Contains(state.Next, row.next) {
				t.Errorf("state is %+v", state)
			}
			if probed := s.Probe(t.Context()); probed.Status != row.status {
				t.Errorf("the probe says %+v", probed)
			}
			if listed, err := s.List(t.Context()); err != nil || len(listed) != 1 || listed[0].Name != "OLD" {
				t.Errorf("the list is %v, %v", listed, err)
			}
		})
	}
}

func TestKeyringThatComesBackIsUsedAgain(t *testing.T) {
	session := keyringtest.Unlocked(t)
	names := newList()
	if err := in(t, session, names, patient).Set(t.Context(), "TOKEN", []byte("x")); err != nil {
		t.Fatal(err)
	}
	s := in(t, session, names, time.Second)
	session.Freeze()
	_, err := s.Secret(t.Context(), "TOKEN")
	wantCode(t, err, "keyring-not-answering")
	session.Thaw()
	eventually(t, func() bool {
		got, err := s.Secret(t.Context(), "TOKEN")
		return err == nil && got == "x"
	})
}

func TestNoBusIsLaunched(t *testing.T) {
	session := keyringtest.NoBus(t)
	launched := session.Home + "/launched"
	script := "#!/bin/sh\ntouch " + launched + "\n"
	if err := os.WriteFile(session.Home+"/dbus-launch", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", session.Home+":"+os.Getenv("PATH"))
	for _, address := range []string{"", "autolaunch:", "autolaunch:scope=*x", "unixexec:path=" + session.Home + "/dbus-launch"} {
		s := Open(Config{Names: newList("A"), Backend: SystemKeyring(KeyringConfig{Getenv: func(name string) string {
			if name == "DBUS_SESSION_BUS_ADDRESS" {
				return address
			}
			return session.Getenv(name)
		}})})
		_, err := s.Secret(t.Context(), "A")
		wantCode(t, err, "keyring-no-bus")
	}
	if _, err := os.Stat(launched); err == nil {
		t.Error("dbus-launch was run")
	}
}

func TestTwoStoresWriteAtOnce(t *testing.T) {
	session := keyringtest.Unlocked(t)
	names := newList()
	stores := []*Store{in(t, session, names, patient), in(t, session, names, patient)}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s, name := stores[i%2], fmt.Sprintf("NAME_%d", i)
			for round := range 3 {
				value := bytes.Repeat([]byte{byte(i), byte(round)}, 100)
				if err := s.Set(context.Background(), name, value); err != nil {
					t.Error(err)
				}
				if got, err := stores[1-i%2].Secret(context.Background(), name); err != nil || got != string(value) {
					t.Errorf("%s is %q, %v", name, got, err)
				}
			}
		})
	}
	all.Wait()
}
