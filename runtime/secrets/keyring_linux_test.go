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
	"go.uber.org/goleak"

	"sallyport/internal/coded"
	"sallyport/runtime/secrets/keyringtest"
)

// TestMain lets the test program be the independent other side: a user of
// zalando/go-keyring in the same session.
func TestMain(m *testing.M) {
	if name := os.Getenv("OTHER_SIDE_READS"); name != "" {
		value, err := keyring.Get("Sallyport", name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Print(value)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

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

// awkward are values that some keyring or library is known to change.
var awkward = map[string]string{
	"an ordinary token":               "ghp_0123456789abcdef",
	"an empty value":                  "",
	"a space at each end":             " a ",
	"newlines at the end":             "a\n\n",
	"carriage returns":                "a\r\nb\r",
	"a NUL":                           "a\x00b",
	"bytes that are no UTF-8":         "\xff\xfe\x80",
	"what go-keyring writes":          "go-keyring-base64:aGVsbG8=",
	"what go-keyring wrote once":      "go-keyring-encoded:68656c6c6f",
	"what it writes, not decodable":   "go-keyring-base64:%%%",
	"a PEM block":                     "-----BEGIN PRIVATE KEY-----\nMIIEv\n-----END PRIVATE KEY-----\n",
	"quotes and a shell":              `'"$(id)` + "`;\\",
	"characters outside the BMP":      "密碼🔑",
	"a byte order mark":               "\ufeffx",
	"the most that is taken on Linux": strings.Repeat("x", mostBytes),
}

func TestUnlockedKeyringGivesEveryValueBackByteForByte(t *testing.T) {
	session := keyringtest.Unlocked(t)
	s := in(t, session, newList(), 0)
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
	s := in(t, session, newList(), 0)
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
	s := in(t, keyringtest.Unlocked(t), newList(), 0)
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
	}{
		{"no bus", keyringtest.NoBus, "keyring-no-bus", "no-bus", "XDG_RUNTIME_DIR"},
		{"a bus that ended", func(t testing.TB) *keyringtest.Session {
			s := keyringtest.NoProvider(t)
			s.EndBus()
			return s
		}, "keyring-no-bus", "no-bus", "XDG_RUNTIME_DIR"},
		{"no provider", keyringtest.NoProvider, "keyring-no-provider", "no-provider", "install gnome-keyring"},
		{"no collection", keyringtest.NoCollection, "keyring-no-collection", "no-collection", "--unlock"},
		{"a locked collection", keyringtest.Locked, "keyring-locked", "locked", "--unlock"},
		{"a bus that never answers", keyringtest.Silent, "keyring-not-answering", "not-answering", "restart the keyring"},
		{"a keyring that never answers", func(t testing.TB) *keyringtest.Session {
			s := keyringtest.Unlocked(t)
			s.Freeze()
			return s
		}, "keyring-not-answering", "not-answering", "restart the keyring"},
	} {
		t.Run(row.what, func(t *testing.T) {
			names := newList("OLD")
			s := in(t, row.start(t), names, time.Second)
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
	s := in(t, session, newList(), time.Second)
	if err := s.Set(t.Context(), "TOKEN", []byte("x")); err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(session.Home+"/dbus-launch", []byte(script), 0o700); err != nil { //nolint:gosec // it must run
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
	stores := []*Store{in(t, session, names, 20*time.Second), in(t, session, names, 20*time.Second)}
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

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if coded.Of(err) != code {
		t.Errorf("error is %v (%s), want %s", err, coded.Of(err), code)
	}
}

func eventually(t *testing.T, true func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited 20 s in vain")
		}
	}
}
