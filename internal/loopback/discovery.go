package loopback

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/atomicfile"
)

// DiscoveryFile is the name of the discovery file in the state folder.
const DiscoveryFile = "desktop.json"

// Discovery says where the running instance is (spec/local-api.md 2). It is a
// hint: a crash leaves it behind, and another program may have the port since.
// Whoever reads it proves the instance (health.Prove) before sending anything.
type Discovery struct {
	Service    string    `json:"service"`
	Version    string    `json:"version"`
	Instance   string    `json:"instance"`
	PID        int       `json:"pid"`
	StartedAt  time.Time `json:"startedAt"`
	URL        string    `json:"url"`
	Port       int       `json:"port"`
	Executable string    `json:"executable"`
}

// WriteDiscovery puts d into dir, readable by its owner alone, by rename. Port
// must be bound already; URL is made from it.
func WriteDiscovery(dir string, d Discovery) error {
	d.URL = URL(d.Port)
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", DiscoveryFile, err)
	}
	return atomicfile.Write(filepath.Join(dir, DiscoveryFile), append(data, '\n'), 0o600)
}

// ReadDiscovery returns what dir's discovery file says. The error is
// fs.ErrNotExist when there is none. The URL is made from the port again, so that
// a file which names another host cannot send anybody there.
func ReadDiscovery(dir string) (Discovery, error) {
	data, err := readSmall(filepath.Join(dir, DiscoveryFile), 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return Discovery{}, fs.ErrNotExist
	}
	if err != nil {
		return Discovery{}, fmt.Errorf("cannot read %q: %w", DiscoveryFile, err)
	}
	var d Discovery
	if err := json.Unmarshal(data, &d); err != nil {
		return Discovery{}, fmt.Errorf("cannot read %q: it is not JSON of the right shape", DiscoveryFile)
	}
	if d.Port < 1 || d.Port > HighestPort {
		return Discovery{}, fmt.Errorf("cannot read %q: port %d is not a port", DiscoveryFile, d.Port)
	}
	d.URL = URL(d.Port)
	return d, nil
}

// RemoveDiscovery removes dir's discovery file if it is instance's own: a
// successor may have replaced it already.
func RemoveDiscovery(dir, instance string) error {
	d, err := ReadDiscovery(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.Instance != instance {
		return nil
	}
	return os.Remove(filepath.Join(dir, DiscoveryFile))
}
