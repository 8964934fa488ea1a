package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/host"
)

// Without a keyring the connector is blocked with the keyring's own reason, and
// nothing is kept anywhere else.
func TestASignInWithoutAKeyring(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	r := newRemote(t)
	h, err := host.Open(t.Context(), host.Config{Places: r.places, Version: "1.2.3", Home: r.home,
		Environ: []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh", "DBUS_SESSION_BUS_ADDRESS=unix:path=" + filepath.Join(t.TempDir(), "nobody")}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close(h)
	if err := r.allow(h); coded.Of(err) != "oauth-login-needed" {
		t.Fatal(err)
	}
	if _, err := h.BeginLogin(t.Context(), r.id, true, operator); !strings.HasPrefix(coded.Of(err), "keyring-") {
		t.Fatal(err)
	}
	if n := len(r.auth.Requests("")); n != 0 {
		t.Errorf("%d requests went to the sign-in", n)
	}
}
