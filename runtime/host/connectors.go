package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// AddConnector writes a connector into connectors.json. It is data and nothing more:
// what would run is shown, asked about and approved like any plugin's.
func (h *Host) AddConnector(ctx context.Context, name string, entry plugins.HandEntry, by approvals.By) (plugins.ID, error) {
	id := plugins.ID{Plugin: plugins.ByHand, Server: name}
	if err := refuseLiterals(entry); err != nil {
		return id, err
	}
	return id, h.editConnectors(ctx, by, name, "add", func(e *plugins.HandEdit) error { return e.Add(name, entry) })
}

// RemoveConnector takes a connector out of connectors.json. If it runs it is stopped;
// its own folder stays.
func (h *Host) RemoveConnector(ctx context.Context, name string, by approvals.By) error {
	return h.editConnectors(ctx, by, name, "remove", func(e *plugins.HandEdit) error { return e.Remove(name) })
}

// RenameConnector gives a connector another name. That is another connector: it is
// approved anew. Its own folder goes with it.
func (h *Host) RenameConnector(ctx context.Context, from, to string, by approvals.By) (plugins.ID, error) {
	id := plugins.ID{Plugin: plugins.ByHand, Server: to}
	err := h.editConnectors(ctx, by, from, "rename", func(e *plugins.HandEdit) error { return e.Rename(from, to) })
	if err != nil {
		return id, err
	}
	return id, h.moveData(from, to)
}

// moveData lets the data of a connector follow its name. What is there under the new
// name already is nobody's to overwrite.
func (h *Host) moveData(from, to string) error {
	folder := func(name string) string {
		c := plugins.Connector{ID: plugins.ID{Plugin: plugins.ByHand, Server: name}, Format: plugins.ByHand}
		return h.Places.PluginData(c.DataName())
	}
	if _, err := os.Lstat(folder(from)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := atomicfile.RenameNew(folder(from), folder(to)); err != nil {
		return &coded.Error{Code: "data-not-moved", Sentence: "the connector has its new name; the folder with its data still has the old one", Err: err,
			Next: "move it by hand below plugin-data/connectors in the data folder"}
	}
	return nil
}

// editConnectors changes connectors.json, on record first, and lists anew.
func (h *Host) editConnectors(ctx context.Context, by approvals.By, name, what string, edit func(*plugins.HandEdit) error) error {
	h.writingHand.Lock()
	defer h.writingHand.Unlock()
	before, err := h.handText()
	if err != nil {
		return err
	}
	changed, err := plugins.EditHand(before)
	if err != nil {
		return err
	}
	if err := edit(changed); err != nil {
		return err
	}
	record := audit.Record{Action: audit.Setting, Result: audit.OK, Actor: by.User, Via: by.Via, Plugin: plugins.ByHand, Binding: name, Target: what}
	if _, err := h.Audit.Append(ctx, record); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if err := h.writeHand(before, changed.Text()); err != nil {
		record.Result, record.Reason = audit.Failed, coded.Of(err)
		_, recordErr := h.Audit.Append(ctx, record)
		return errors.Join(err, recordErr)
	}
	h.reread(ctx)
	return nil
}

// handText returns the text of connectors.json, nil where there is none.
func (h *Host) handText() ([]byte, error) {
	raw, err := os.ReadFile(h.Places.ConnectorsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &coded.Error{Code: "connectors-unreadable", Sentence: "connectors.json cannot be read", Next: "give yourself permission to read it", Err: err}
	}
	return raw, nil
}

// writeHand replaces connectors.json, if it still has the text before. A link to
// somewhere else stays one.
func (h *Host) writeHand(before, now []byte) error {
	path := h.Places.ConnectorsFile()
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	present, err := h.handText()
	if err != nil {
		return err
	}
	if !bytes.Equal(present, before) {
		return &coded.Error{Code: "connectors-changed", Sentence: "connectors.json was changed by somebody else in the meantime, and is left as it is", Next: "try again"}
	}
	if err := atomicfile.Write(path, now, 0o600); err != nil {
		return &coded.Error{Code: "connectors-unwritable", Sentence: "connectors.json cannot be written", Next: "see whether the disk is full or the folder is yours", Err: err}
	}
	return nil
}

// refuseLiterals keeps credentials from being written into the file by a command.
func refuseLiterals(entry plugins.HandEntry) error {
	texts := env.Texts{Args: entry.Args, URL: entry.URL}
	for _, name := range slices.Sorted(maps.Keys(entry.Env)) {
		texts.Env = append(texts.Env, env.NameValue{Name: name, Value: unreferenced(entry.Env[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(entry.Headers)) {
		texts.Headers = append(texts.Headers, env.NameValue{Name: name, Value: unreferenced(entry.Headers[name])})
	}
	for _, l := range env.FindLiterals(texts) {
		if l.Placeholder {
			continue
		}
		next := fmt.Sprintf("keep it in the keyring: sallyport secrets set %s; then write secret:%s in its place", l.Secret, l.Secret)
		if l.Where == env.InArgument || l.Where == env.InAddress {
			next = "hand it over in an environment variable or a header, as secret:NAME"
		}
		return &coded.Error{Code: "literal-secret", Sentence: fmt.Sprintf("%s looks like %s written out, so nothing was written", l.Name, l.Kind), Next: next}
	}
	return nil
}

// unreferenced empties a value that has a reference: what is left of it is judged when
// the connector is approved.
func unreferenced(value string) string {
	if plugins.HasReference(value) {
		return ""
	}
	return value
}
