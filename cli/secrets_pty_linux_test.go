package cli_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A value that is typed is not shown, and is nowhere when there is no keyring.
func TestASecretIsTypedUnseen(t *testing.T) {
	home := t.TempDir()
	s := onTerminal(t, home, "secrets", "set", "NOTES")
	s.untilUnseen()
	s.answer("Value of NOTES (it is not shown):\r\n", "typed-in-secret\n")
	if code := s.end(); code != 1 || !strings.Contains(s.text(), "keyring-no-bus") || strings.Contains(s.text(), "typed-in-secret") {
		t.Errorf("exit %d\n%s", code, s.text())
	}
}

// So is a sensitive setting of a bundle; what could not be kept is in no file.
func TestASensitiveSettingIsTypedUnseen(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".agents", "plugins", "demo")
	manifest := `{"manifest_version": "0.3", "name": "demo", "version": "1.0.0", "server": {"type": "node", "entry_point": "i.js", "mcp_config": {"command": "node"}},
		"user_config": {"api_key": {"type": "string", "sensitive": true, "required": true}}}`
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	s := onTerminal(t, home, "config", "demo", "--secret", "api_key")
	s.untilUnseen()
	s.answer("Value of api_key (it is not shown):\r\n", "typed-in-secret\n")
	if code := s.end(); code != 1 || !strings.Contains(s.text(), "keyring-no-bus") || strings.Contains(s.text(), "typed-in-secret") {
		t.Errorf("exit %d\n%s", code, s.text())
	}
	if _, err := os.Stat(filepath.Join(home, ".config", "sallyport", "config.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a config.json: %v", err)
	}
}

// untilUnseen waits until the terminal no longer shows what is typed.
func (s *screen) untilUnseen() {
	s.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for hidden := false; !hidden; time.Sleep(5 * time.Millisecond) {
		state, err := unix.IoctlGetTermios(int(s.keys.Fd()), unix.TCGETS)
		if err != nil || time.Now().After(deadline) {
			s.t.Fatalf("the terminal still shows what is typed: %v\n%s", err, s.text())
		}
		hidden = state.Lflag&unix.ECHO == 0
	}
}
