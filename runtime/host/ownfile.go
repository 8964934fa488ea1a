package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/internal/jsonedit"
	"sallyport/internal/onejson"
	"sallyport/runtime/plugins"
)

// ownFile is a file that the operator writes by hand and asks Sallyport to edit.
// Nothing of it is lost: what cannot be understood is not edited, and a change is a
// rename of the whole.
type ownFile struct {
	name  string // for people
	path  string
	check func([]byte) error // says why a text is no such file
}

// ownText is such a file as it was read, and as it is to be.
type ownText struct {
	ownFile
	was, now []byte
	absent   bool
}

// readOwn reads one; one that is not there is empty.
func (f ownFile) read() (*ownText, error) {
	raw, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return &ownText{ownFile: f, absent: true}, nil
	}
	if err == nil {
		err = f.check(raw)
	}
	if err != nil {
		return nil, &coded.Error{Code: "config-unusable", Err: err, Sentence: f.name + " is not changed: it is not valid, or cannot be read",
			Next: "correct it (sallyport doctor says where it is), then try again"}
	}
	return &ownText{ownFile: f, was: raw, now: raw}, nil
}

// edit changes the text that will be written.
func (t *ownText) edit(change func([]byte) ([]byte, error)) error {
	now, err := change(t.now)
	if err == nil {
		err = t.check(now)
	}
	if err != nil {
		return &coded.Error{Code: "config-unusable", Err: err, Sentence: t.name + " is not changed: the value's place in it is not clear",
			Next: "edit " + t.name + " by hand"}
	}
	t.now = now
	return nil
}

func (t *ownText) changed() bool { return !bytes.Equal(t.was, t.now) }

// write puts the new text in the place of the old, if that is still what was read. A
// link stays one.
func (t *ownText) write() error {
	if !t.changed() {
		return nil
	}
	path, perm := t.path, fs.FileMode(0o600)
	if !t.absent {
		target, err := filepath.EvalSymlinks(t.path)
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", t.name, pathless(err))
		}
		info, err := os.Stat(target)
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", t.name, pathless(err))
		}
		path, perm = target, info.Mode().Perm()
	}
	raw, err := os.ReadFile(path)
	if t.absent && !errors.Is(err, fs.ErrNotExist) || !t.absent && (err != nil || !bytes.Equal(raw, t.was)) {
		return &coded.Error{Code: "config-changed-meanwhile", Sentence: t.name + " was changed by something else at this moment, so it is left alone", Next: "try again"}
	}
	if err := atomicfile.Write(path, t.now, perm); err != nil {
		return fmt.Errorf("cannot write %s: %w", t.name, pathless(err))
	}
	return nil
}

// pathless takes the path, which is the user's own, off an error.
func pathless(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func (h *Host) configFile() ownFile {
	return ownFile{name: "config.json", path: h.Places.ConfigFile(), check: func(raw []byte) error {
		var c Configuration
		if err := onejson.Decode(raw, &c); err != nil || len(c.Connectors) == 0 {
			return err
		}
		_, err := plugins.ParseOverlays(c.Connectors)
		return err
	}}
}

// overlayIn is what the operator's configuration says about one connector.
func overlayIn(config *ownText, id plugins.ID) (plugins.Overlay, error) {
	var c Configuration
	if config.absent {
		return plugins.Overlay{}, nil
	}
	if err := onejson.Decode(config.now, &c); err != nil || len(c.Connectors) == 0 {
		return plugins.Overlay{}, err
	}
	overlays, err := plugins.ParseOverlays(c.Connectors)
	if err != nil {
		return plugins.Overlay{}, err
	}
	own := overlays[id.String()]
	return own, own.Err
}

// connectorsFile is where connectors without a bundle are written down.
func (h *Host) connectorsFile() ownFile {
	return ownFile{name: plugins.HandFile, path: h.Places.ConnectorsFile(), check: jsonedit.Check}
}
