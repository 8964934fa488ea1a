//go:build !windows

package secrets

import (
	"context"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPassphraseComesFromADescriptorAndClosesIt(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("pass\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	fd, err := unix.Dup(int(r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	got, err := PassphraseFromFD(t.Context(), fd)
	if err != nil || string(got) != "pass" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = PassphraseFromFD(t.Context(), fd)
	wantCode(t, err, "secrets-passphrase-unreadable")
	_, err = PassphraseFromFD(t.Context(), 0)
	wantCode(t, err, "secrets-passphrase-unreadable")
}

func TestDescriptorThatNeverEndsIsGivenUp(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	fd, err := unix.Dup(int(r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = PassphraseFromFD(ctx, fd)
	wantCode(t, err, "secrets-passphrase-unreadable")
}
