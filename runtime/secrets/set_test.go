package secrets

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSizeIsCheckedInTheBackendsOwnUnitBeforeTheCall(t *testing.T) {
	cjk := strings.Repeat("密", 1300) // 3,900 bytes, 1,300 UTF-16 units
	for _, row := range []struct {
		what    string
		limit   Limit
		value   string
		numbers []string // in the refusal; nil: it is stored
	}{
		{"Windows: 1,280 letters", windowsLimit(), strings.Repeat("x", 1280), nil},
		{"Windows: 1,281 letters", windowsLimit(), strings.Repeat("x", 1281), nil},
		{"Windows: 1,461 letters", windowsLimit(), strings.Repeat("x", 1461), nil},
		{"Windows: 2,560 letters", windowsLimit(), strings.Repeat("x", 2560), nil},
		{"Windows: 2,561 letters", windowsLimit(), strings.Repeat("x", 2561), []string{"2,561 bytes", "2,560"}},
		{"Windows: a PEM block of 3 kB", windowsLimit(), strings.Repeat("x", 3000), []string{"3,000 bytes", "2,560"}},
		{"Windows: 1,300 characters of Chinese", windowsLimit(), cjk, []string{"3,900 bytes", "2,560"}},
		{"Windows: nothing", windowsLimit(), "", nil},
		// 36 of words and blanks, 9 of service, 5 of key, 18 of prefix; 4,028 are left: 3,021 in base64.
		{"macOS: as much as a line takes", macLimit("Sallyport"), strings.Repeat("x", 3021), nil},
		{"macOS: one byte more", macLimit("Sallyport"), strings.Repeat("x", 3022), []string{"4,100 bytes", "4,096"}},
		{"macOS: nothing", macLimit("Sallyport"), "", nil},
		{"a limit of ours", plainLimit(mostBytes), strings.Repeat("x", mostBytes+1), []string{"65,537 bytes", "65,536"}},
	} {
		t.Run(row.what, func(t *testing.T) {
			f, names := newFake(), newList()
			f.limit = row.limit
			s := Open(Config{Backend: f, Names: names})
			if err := s.Set(t.Context(), "TOKEN", []byte("old")); err != nil {
				t.Fatal(err)
			}
			before := len(f.made())
			err := s.Set(t.Context(), "TOKEN", []byte(row.value))
			if row.numbers == nil {
				if got, readErr := s.Secret(t.Context(), "TOKEN"); err != nil || readErr != nil || got != row.value {
					t.Errorf("it is not stored: %v, %v", err, readErr)
				}
				return
			}
			wantCode(t, err, "secret-too-large")
			for _, number := range row.numbers {
				if !strings.Contains(err.Error(), number) {
					t.Errorf("%q does not say %s", err, number)
				}
			}
			if len(f.made()) != before {
				t.Errorf("the keyring was asked: %v", f.made()[before:])
			}
			if got, err := s.Secret(t.Context(), "TOKEN"); err != nil || got != "old" {
				t.Errorf("the old value is %q, %v", got, err)
			}
		})
	}
}

func TestLineOfSecurityIsAsLongAsTheLibraryMakesIt(t *testing.T) {
	for _, row := range []struct{ service, key, words string }{
		{"Sallyport", "TOKEN", "add-generic-password -U -s Sallyport -a TOKEN -w go-keyring-base64:YWJj\n"},
		{"Sallyport", "token:0a1b", "add-generic-password -U -s Sallyport -a token:0a1b -w go-keyring-base64:YWJj\n"},
		{"it's mine", "T", `add-generic-password -U -s 'it'"'"'s mine' -a T -w go-keyring-base64:YWJj` + "\n"},
	} {
		if got := macLimit(row.service).Size(row.key, []byte("abc")); got != len(row.words) {
			t.Errorf("%q: %d, want %d", row.words, got, len(row.words))
		}
	}
}

func TestValueComesBackOrTheOldOneStays(t *testing.T) {
	for _, row := range []struct {
		what   string
		encode bool
		code   map[string]string // by key of awkward; others are stored
	}{
		{"a library that encodes", true, nil},
		{"a library that only decodes", false, map[string]string{
			"a space at each end": "secret-not-storable", "newlines at the end": "secret-not-storable",
			"carriage returns": "secret-not-storable", "what go-keyring writes": "secret-not-storable",
			"what it writes, not decodable": "keyring-failed", "a PEM block": "secret-not-storable",
		}},
	} {
		for what, value := range awkward {
			for _, old := range []string{"", "old"} {
				t.Run(row.what+" "+what+" "+old, func(t *testing.T) {
					s := Open(Config{Backend: libraryOf(plainLimit(mostBytes), row.encode, true), Names: newList()})
					if old != "" {
						if err := s.Set(t.Context(), "TOKEN", []byte(old)); err != nil {
							t.Fatal(err)
						}
					}
					code := row.code[what]
					wantCode(t, s.Set(t.Context(), "TOKEN", []byte(value)), code)
					got, err := s.Secret(t.Context(), "TOKEN")
					switch {
					case code == "" && (err != nil || got != value):
						t.Errorf("got %q, %v", got, err)
					case code != "" && old != "" && (err != nil || got != old):
						t.Errorf("the old value is %q, %v", got, err)
					case code != "" && old == "":
						wantCode(t, err, "secret-unknown")
					}
				})
			}
		}
	}
}

func TestKeyringThatDropsTheValueIsNotBelieved(t *testing.T) {
	f, names := newFake(), newList()
	s := Open(Config{Backend: &forgetful{f}, Names: names})
	wantCode(t, s.Set(t.Context(), "TOKEN", []byte("x")), "keyring-failed")
	if listed, err := s.List(t.Context()); err != nil || len(listed) != 0 {
		t.Errorf("the list is %v, %v", listed, err)
	}
}

// forgetful takes values and keeps none, as "security -i" may do after a refusal.
type forgetful struct{ *fake }

func (f *forgetful) Set(context.Context, string, []byte) error { return nil }

func TestOldValueThatCannotBePutBackIsReported(t *testing.T) {
	f := newFake()
	s := Open(Config{Backend: f, Names: newList()})
	if err := s.Set(t.Context(), "TOKEN", []byte("old")); err != nil {
		t.Fatal(err)
	}
	sets := 0
	f.changed = func(value []byte) []byte { return append(value, '!') }
	f.before = func(_ context.Context, act, _ string) error {
		if act == "set" {
			sets++
		}
		if sets > 1 {
			return errors.New("full")
		}
		return nil
	}
	wantCode(t, s.Set(t.Context(), "TOKEN", []byte("new")), "secret-not-restored")
}

func TestNameThatDiffersByCaseIsAnother(t *testing.T) {
	f := newFake()
	s := Open(Config{Backend: f, Names: newList()})
	for _, name := range []string{"TOKEN", "token", "Token"} {
		if err := s.Set(t.Context(), name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	keys := map[string]bool{}
	for key := range f.values {
		keys[strings.ToUpper(key)] = true
	}
	if len(keys) != 3 {
		t.Errorf("a keyring that ignores case would mix up %v", f.values)
	}
}

func TestNameIsOneThatAPermissionCanList(t *testing.T) {
	s := Open(Config{Backend: newFake(), Names: newList()})
	for _, name := range []string{"", "A B", "A/B", "A:B", "Ä", "A\n", strings.Repeat("A", 129)} {
		wantCode(t, s.Set(t.Context(), name, nil), "secret-name-invalid")
		_, err := s.Secret(t.Context(), name)
		wantCode(t, err, "secret-name-invalid")
	}
	for _, name := range []string{"A", "a.b-c_9", strings.Repeat("A", 128)} {
		wantCode(t, s.Set(t.Context(), name, nil), "")
	}
}

func TestSecretNotOnTheListIsUnknownWithoutACall(t *testing.T) {
	f := newFake()
	s := Open(Config{Backend: f, Names: newList()})
	_, err := s.Secret(t.Context(), "TOKEN")
	wantCode(t, err, "secret-unknown")
	if len(f.made()) != 0 {
		t.Errorf("calls: %v", f.made())
	}
}

func TestListSaysWhenAndNothingElse(t *testing.T) {
	now := time.Unix(1, 0)
	f := newFake()
	s := Open(Config{Backend: f, Names: newList(), Now: func() time.Time { return now }})
	for _, name := range []string{"B", "A", "B"} {
		if err := s.Set(t.Context(), name, []byte("x")); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	before := len(f.made())
	got, err := s.List(t.Context())
	if err != nil || len(got) != 2 || got[0] != (Name{"A", time.Unix(2, 0)}) || got[1] != (Name{"B", time.Unix(3, 0)}) {
		t.Errorf("got %v, %v", got, err)
	}
	if len(f.made()) != before {
		t.Errorf("calls: %v", f.made()[before:])
	}
}

// exit is how os/exec says that /usr/bin/security failed.
type exit int

func (e exit) Error() string { return "exit status" }
func (e exit) ExitCode() int { return int(e) }

func TestErrorsOfMacOSAndWindowsHaveNames(t *testing.T) {
	for _, row := range []struct {
		what    string
		explain func(error) error
		err     error
		code    string
		next    string
	}{
		{"macOS: locked over SSH", macError, exit(36), "keyring-locked", "unlock"},
		{"macOS: Deny pressed", macError, exit(128), "keyring-denied", "Always Allow"},
		{"macOS: authorization failed", macError, exit(51), "keyring-denied", "Always Allow"},
		{"macOS: no login keychain", macError, exit(50), "keyring-no-collection", "Keychain Access"},
		{"macOS: anything else", macError, exit(1), "keyring-failed", "find-generic-password"},
		{"macOS: security is missing", macError, errors.New("no such file"), "keyring-failed", "find-generic-password"},
		{"Windows: no log-in session", windowsError, syscall.Errno(1312), "keyring-no-provider", "password"},
		{"Windows: denied", windowsError, syscall.Errno(5), "keyring-denied", "policy"},
		{"Windows: the service is down", windowsError, syscall.Errno(1722), "keyring-not-answering", "VaultSvc"},
		{"Windows: anything else", windowsError, syscall.Errno(87), "keyring-failed", "Credential Manager"},
	} {
		t.Run(row.what, func(t *testing.T) {
			l := libraryOf(plainLimit(10), true, true)
			l.explain = row.explain
			l.get = func(string, string) (string, error) { return "", row.err }
			system := System{OS: "windows"}
			if strings.HasPrefix(row.what, "macOS") {
				system.OS = "darwin"
			}
			s := Open(Config{Backend: l, Names: newList("A"), System: &system})
			_, err := s.Secret(t.Context(), "A")
			wantCode(t, err, row.code)
			state := s.State(t.Context())
			if state.Code != row.code || !strings.Contains(state.Next, row.next) {
				t.Errorf("state is %+v", state)
			}
		})
	}
}

func TestEverySystemHasAdviceForEveryState(t *testing.T) {
	for _, system := range []System{
		{OS: "linux", Desktop: true}, {OS: "linux"}, {OS: "linux", SSH: true}, {OS: "linux", WSL: true}, {OS: "linux", Container: true},
		{OS: "darwin", Desktop: true}, {OS: "darwin", SSH: true}, {OS: "windows", Desktop: true},
	} {
		for _, code := range []string{codeNoBus, codeNoProvider, codeNoCollection, codeLocked, codeDenied, codeNotAnswering, codeFailed} {
			if advice(code, system) == "" {
				t.Errorf("%+v has none for %s", system, code)
			}
		}
	}
}

// A value is compared without being given to anybody.
func TestHoldsComparesWithoutGiving(t *testing.T) {
	f, names := newFake(), newList()
	s := Open(Config{Backend: f, Names: names})
	if err := s.Set(t.Context(), "TOKEN", []byte("value")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, value string
		known, same bool
	}{{"TOKEN", "value", true, true}, {"TOKEN", "valu", true, false}, {"TOKEN", "", true, false}, {"OTHER", "value", false, false}} {
		known, same, err := s.Holds(t.Context(), row.name, []byte(row.value))
		if known != row.known || same != row.same || err != nil {
			t.Errorf("%s %q: %v %v %v", row.name, row.value, known, same, err)
		}
	}
	f.before = func(context.Context, string, string) error { return errors.New("no") }
	if _, same, err := s.Holds(t.Context(), "TOKEN", []byte("value")); same || err == nil {
		t.Errorf("a keyring that does not answer: %v %v", same, err)
	}
	if _, _, err := s.Holds(t.Context(), "a b", nil); err == nil {
		t.Error("a name that is none")
	}
}
