package artifact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// A recipe is the list of steps that spec/vectors/artifact/vectors.json gives
// for a tree. An unknown key is an error: a vector that is not built whole
// proves nothing.
type recipeStep struct {
	Dir    *recipeName `json:"dir"`
	File   *recipeName `json:"file"`
	Link   *recipeName `json:"link"`
	Hard   *recipeName `json:"hard"`
	Fifo   *recipeName `json:"fifo"`
	Socket *recipeName `json:"socket"`
	Mtime  *recipeName `json:"mtime"`

	To     json.RawMessage `json:"to"`
	Text   *string         `json:"text"`
	Base64 *string         `json:"base64"`
	Zeros  *int            `json:"zeros"`
	Mode   string          `json:"mode"`
}

// recipeName is a name, or {"base64": …} where it is not UTF-8.
type recipeName string

func (n *recipeName) UnmarshalJSON(b []byte) error {
	var plain string
	if json.Unmarshal(b, &plain) == nil {
		*n = recipeName(plain)
		return nil
	}
	var coded struct {
		Base64 []byte `json:"base64"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&coded); err != nil {
		return err
	}
	*n = recipeName(coded.Base64)
	return nil
}

func decodeRecipe(b []byte) ([]recipeStep, error) {
	var steps []recipeStep
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return steps, d.Decode(&steps)
}

// buildRecipe applies the steps below root, modes exactly as given.
func buildRecipe(t testing.TB, root string, steps []recipeStep) {
	t.Helper()
	for i, s := range steps {
		if err := s.apply(root); err != nil {
			t.Fatalf("cannot apply step %d: %v", i, err)
		}
	}
}

func (s recipeStep) apply(root string) error {
	at := func(n *recipeName) string { return root + "/" + string(*n) }
	switch {
	case s.Dir != nil:
		if err := os.MkdirAll(at(s.Dir), 0o755); err != nil {
			return err
		}
		return s.chmod(at(s.Dir), "755")
	case s.File != nil:
		return s.writeFile(at(s.File))
	case s.Link != nil:
		if err := os.MkdirAll(filepath.Dir(at(s.Link)), 0o755); err != nil {
			return err
		}
		to, err := s.target()
		if err != nil {
			return err
		}
		return os.Symlink(to, at(s.Link))
	case s.Hard != nil:
		to, err := s.target()
		if err != nil {
			return err
		}
		return os.Link(root+"/"+to, at(s.Hard))
	case s.Fifo != nil:
		return makeFifo(at(s.Fifo))
	case s.Socket != nil:
		return makeSocket(root, string(*s.Socket))
	case s.Mtime != nil:
		var seconds int64
		if err := json.Unmarshal(s.To, &seconds); err != nil {
			return err
		}
		return os.Chtimes(at(s.Mtime), time.Unix(seconds, 0), time.Unix(seconds, 0))
	}
	return fmt.Errorf("step names nothing to make")
}

func (s recipeStep) target() (string, error) {
	var n recipeName
	err := json.Unmarshal(s.To, &n)
	return string(n), err
}

func (s recipeStep) writeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	var data []byte
	switch {
	case s.Text != nil:
		data = []byte(*s.Text)
	case s.Base64 != nil:
		var err error
		if data, err = base64.StdEncoding.DecodeString(*s.Base64); err != nil {
			return err
		}
	case s.Zeros != nil:
		data = make([]byte, *s.Zeros)
	default:
		return fmt.Errorf("file %q has no contents", path)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return err
	}
	return s.chmod(path, "644")
}

func (s recipeStep) chmod(path, otherwise string) error {
	if s.Mode != "" {
		otherwise = s.Mode
	}
	bits, err := strconv.ParseUint(otherwise, 8, 32)
	if err != nil {
		return err
	}
	return chmodExact(path, uint32(bits))
}

// makeSocket binds from inside root: the whole path may be too long for a socket.
func makeSocket(root, name string) error {
	old, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	defer os.Chdir(old)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	return l.Close()
}
