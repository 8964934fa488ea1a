package loginitem

import (
	"bytes"
	"errors"
	"io/fs"

	"golang.org/x/sys/windows/registry"
)

const (
	runKey   = `Software\Microsoft\Windows\CurrentVersion\Run`
	pauseKey = `Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run`
	runName  = "Sallyport"
	mostRun  = 260 // what Windows reads of a value
)

// system: Windows reads the values of HKCU\...\Run when its user logs in.
func (i Item) system() (place, form, error) { return run{}, runValue, nil }

// unit: Windows has no systemd.
func (i Item) unit() string { return "" }

type run struct{}

func (run) how() string   { return "registry" }
func (run) where() string { return `HKCU\` + runKey + `\` + runName }

func (run) read() ([]byte, bool, error) {
	key, err := registry.OpenKey(registry.CURRENT_USER, runKey, registry.QUERY_VALUE)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer key.Close()
	text, _, err := key.GetStringValue(runName)
	switch {
	case errors.Is(err, registry.ErrNotExist):
		return nil, false, nil
	case errors.Is(err, registry.ErrUnexpectedType):
		return nil, true, errForeign
	}
	return []byte(text), true, err
}

func (r run) write(now, was []byte) error {
	if len(now) > mostRun {
		return errors.New("the path of the program is too long for it")
	}
	if text, there, err := r.read(); err != nil || there != (was != nil) || !bytes.Equal(text, was) {
		return errors.Join(err, errors.New("it was changed by something else at this moment"))
	}
	key, _, err := registry.CreateKey(registry.CURRENT_USER, runKey, registry.SET_VALUE)
	if err != nil {
		return err
	}
	defer key.Close()
	if err := key.SetStringValue(runName, string(now)); err != nil {
		return err
	}
	return r.unpause()
}

func (run) remove() error {
	key, err := registry.OpenKey(registry.CURRENT_USER, runKey, registry.SET_VALUE)
	if err != nil {
		return err
	}
	defer key.Close()
	return key.DeleteValue(runName)
}

// paused: the system's settings keep what a person turned off in a list of their own,
// whose first byte is odd then.
func (run) paused() bool {
	key, err := registry.OpenKey(registry.CURRENT_USER, pauseKey, registry.QUERY_VALUE)
	if err != nil {
		return false
	}
	defer key.Close()
	state, _, err := key.GetBinaryValue(runName)
	return err == nil && len(state) > 0 && state[0]&1 == 1
}

func (run) unpause() error {
	key, err := registry.OpenKey(registry.CURRENT_USER, pauseKey, registry.SET_VALUE)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer key.Close()
	if err := key.DeleteValue(runName); err != nil && !errors.Is(err, registry.ErrNotExist) {
		return err
	}
	return nil
}
