package host

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/coded"
)

// C75: a change that somebody else made in the meantime is not overwritten, and a
// link to somewhere else stays one.
func TestConnectorsJSONIsReplacedOnlyAsItWasRead(t *testing.T) {
	h := &Host{Places: PlacesIn(t.TempDir())}
	elsewhere := filepath.Join(t.TempDir(), "dotfiles.json")
	for _, err := range []error{os.MkdirAll(h.Places.Config, 0o700), os.WriteFile(elsewhere, []byte("{}"), 0o600), os.Symlink(elsewhere, h.Places.ConnectorsFile())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := h.writeHand([]byte("{ }"), []byte("new")); coded.Of(err) != "connectors-changed" {
		t.Errorf("got %v", err)
	}
	if err := h.writeHand(nil, []byte("new")); coded.Of(err) != "connectors-changed" {
		t.Errorf("a file that has come: %v", err)
	}
	if err := h.writeHand([]byte("{}"), []byte("new")); err != nil {
		t.Errorf("got %v", err)
	}
	if raw, err := os.ReadFile(elsewhere); string(raw) != "new" || err != nil {
		t.Errorf("the file behind the link holds %q %v", raw, err)
	}
	if info, err := os.Lstat(h.Places.ConnectorsFile()); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
}
