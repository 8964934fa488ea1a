package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sallyport/internal/atomicfile"
)

func (h *Host) handText() ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(h.Places.Config, "connectors.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

func (h *Host) writeHand(before, now []byte) error {
	return atomicfile.Write(filepath.Join(h.Places.Config, "connectors.json"), now, 0o600)
}
