package artifact

import (
	"os"
	"path/filepath"
)

// tempPrefix names what a killed process may leave.
const tempPrefix = ".tmp-"

// writeFileAtomically replaces a file of ours, owner-only: readers see the old
// bytes or the new ones.
func writeFileAtomically(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
