package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

const testWork = 10 // scrypt at its cost for a person would be all that is tested

func encrypted(path, passphrase string) *File {
	return NewFile(FileConfig{Path: path, Passphrase: []byte(passphrase), WorkFactor: testWork})
}

func inFile(t *testing.T, path, passphrase string, names NameStore) *Store {
	t.Helper()
	return Open(Config{Backend: encrypted(path, passphrase), Names: names, Timeout: time.Minute})
}

func TestEncryptedFileGivesEveryValueBackByteForByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "private", "secrets.age")
	names := newList()
	s := inFile(t, path, "pass", names)
	for what, value := range awkward {
		t.Run(what, func(t *testing.T) {
			if err := s.Set(t.Context(), "VALUE", []byte(value)); err != nil {
				t.Fatal(err)
			}
			for _, store := range []*Store{s, inFile(t, path, "pass", names)} {
				if got, err := store.Secret(t.Context(), "VALUE"); err != nil || got != value {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode is %v", info.Mode())
	}
}

func TestEncryptedFileHoldsNothingInTheClear(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.age")
	s := inFile(t, path, "the passphrase", newList())
	if err := s.Set(t.Context(), "THE_NAME", []byte("the value")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"the value", "THE_NAME", "the passphrase", "AGE-SECRET-KEY"} {
		if bytes.Contains(data, []byte(word)) {
			t.Errorf("it holds %q", word)
		}
	}
}

func TestPassphraseIsForgottenAfterItsFirstUse(t *testing.T) {
	passphrase := []byte("pass")
	f := NewFile(FileConfig{Path: filepath.Join(t.TempDir(), "secrets.age"), Passphrase: passphrase, WorkFactor: testWork})
	if err := f.Set(t.Context(), "A", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(passphrase, make([]byte, 4)) {
		t.Errorf("it is still %q", passphrase)
	}
}

func TestFileThatCannotBeReadIsKept(t *testing.T) {
	for _, row := range []struct {
		what   string
		spoil  func(data []byte) []byte
		phrase string
		code   string
	}{
		{"a wrong passphrase", func(data []byte) []byte { return data }, "other", "secrets-file-passphrase"},
		{"an empty file", func([]byte) []byte { return nil }, "pass", "secrets-file-damaged"},
		{"something else", func([]byte) []byte { return []byte("TOKEN=abc\n") }, "pass", "secrets-file-damaged"},
		{"one that was cut", func(data []byte) []byte { return data[:len(data)-40] }, "pass", "secrets-file-damaged"},
		{"one without its values", func(data []byte) []byte { return data[:len(data)/2] }, "pass", "secrets-file-damaged"},
		{"something after its end", func(data []byte) []byte { return append(data, "more"...) }, "pass", "secrets-file-damaged"},
	} {
		t.Run(row.what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secrets.age")
			names := newList()
			if err := inFile(t, path, "pass", names).Set(t.Context(), "OLD", []byte("value")); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			spoiled := row.spoil(data)
			if err := os.WriteFile(path, spoiled, 0o600); err != nil {
				t.Fatal(err)
			}
			s := inFile(t, path, row.phrase, names)
			_, err = s.Secret(t.Context(), "OLD")
			wantCode(t, err, row.code)
			wantCode(t, s.Set(t.Context(), "NEW", []byte("x")), row.code)
			wantCode(t, s.Delete(t.Context(), "OLD"), row.code)
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, spoiled) {
				t.Errorf("the file changed: %v", err)
			}
			if state := s.Probe(t.Context()); state.Code != row.code {
				t.Errorf("state is %+v", state)
			}
		})
	}
}

func TestEveryByteOfTheFileIsProtected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.age")
	f := encrypted(path, "pass")
	if err := f.Set(t.Context(), "A", []byte("x")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		changed := bytes.Clone(data)
		changed[i] ^= 4
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Get(t.Context(), "A"); err == nil && string(got) != "x" {
			t.Fatalf("byte %d changed the value to %q", i, got)
		} else if err != nil && !named(err) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
}

func TestFileWithAnotherKeyIsNotMixedUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.age")
	s := inFile(t, path, "pass", newList())
	if err := s.Set(t.Context(), "A", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := inFile(t, path, "other", newList()).Set(t.Context(), "A", []byte("y")); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.Set(t.Context(), "B", []byte("z")), "secrets-file-replaced")
}

func TestTwoProgramsWriteOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.age")
	names := newList()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			s := inFile(t, path, "pass", names) // each with a key of its own to find
			for round := range 4 {
				if err := s.Set(context.Background(), fmt.Sprintf("NAME_%d_%d", i, round), []byte{byte(i), byte(round)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s := inFile(t, path, "pass", names)
	for i := range 4 {
		for round := range 4 {
			if got, err := s.Secret(t.Context(), fmt.Sprintf("NAME_%d_%d", i, round)); err != nil || got != string([]byte{byte(i), byte(round)}) {
				t.Errorf("%d %d is %q, %v", i, round, got, err)
			}
		}
	}
}

func TestPassphraseComesFromACredential(t *testing.T) {
	for _, row := range []struct {
		what, text, want, code string
	}{
		{"one line", "pass word\n", "pass word", ""},
		{"no newline", " pass ", " pass ", ""},
		{"a line of Windows", "pass\r\n", "pass", ""},
		{"empty", "\n", "", "secrets-passphrase-unreadable"},
		{"too long", string(make([]byte, mostPassphrase+1)), "", "secrets-passphrase-unreadable"},
	} {
		t.Run(row.what, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, CredentialName), []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := PassphraseFromCredential(folder)
			wantCode(t, err, row.code)
			if string(got) != row.want {
				t.Errorf("got %q", got)
			}
		})
	}
	for _, folder := range []string{"", t.TempDir()} {
		if _, err := PassphraseFromCredential(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without one the error is %v", err)
		}
	}
}

func FuzzFileThatIsNotOursIsReportedAndKept(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed.age")
	if err := encrypted(path, "pass").Set(f.Context(), "A", []byte("x")); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte("-----BEGIN AGE ENCRYPTED FILE-----\n-----END AGE ENCRYPTED FILE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "secrets.age")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		err := encrypted(path, "pass").Set(t.Context(), "B", []byte("y"))
		now, readErr := os.ReadFile(path)
		if readErr != nil || err != nil && !bytes.Equal(now, data) {
			t.Errorf("after %v the file changed", err)
		}
		if err != nil && !named(err) {
			t.Errorf("error without a name: %v", err)
		}
	})
}
