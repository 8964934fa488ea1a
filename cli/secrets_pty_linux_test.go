package cli_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A value that is typed is not shown, and is nowhere when there is no keyring.
func TestASecretIsTypedUnseen(t *testing.T) {
	home := t.TempDir()
	s := onTerminal(t, home, "secrets", "set", "NOTES")
	deadline := time.Now().Add(30 * time.Second)
	for hidden := false; !hidden; time.Sleep(5 * time.Millisecond) {
		state, err := unix.IoctlGetTermios(int(s.keys.Fd()), unix.TCGETS)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the terminal still shows what is typed: %v\n%s", err, s.text())
		}
		hidden = state.Lflag&unix.ECHO == 0
	}
	s.answer("Value of NOTES (it is not shown):\r\n", "typed-in-secret\n")
	if code := s.end(); code != 1 || !strings.Contains(s.text(), "keyring-no-bus") || strings.Contains(s.text(), "typed-in-secret") {
		t.Errorf("exit %d\n%s", code, s.text())
	}
}
