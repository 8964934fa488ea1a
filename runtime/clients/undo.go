package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/aymanbagabas/go-udiff"

	"sallyport/internal/coded"
)

// State is what has become of an entry that Sallyport wrote.
type State string

// The states.
const (
	Unchanged    State = "unchanged"     // the file is as it was written
	FileEdited   State = "file-edited"   // other parts changed; our entry is as it was
	EntryEdited  State = "entry-edited"  // somebody edited our entry
	EntryMissing State = "entry-missing" // somebody took it out, or the file is gone
	Unreadable   State = "unreadable"    // the file cannot be understood
)

// State looks at the file of a record.
func (r Record) State() State {
	raw, err := readBounded(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return EntryMissing
	}
	if err != nil {
		return Unreadable
	}
	if sum(raw) == r.After {
		return Unchanged
	}
	e, ok := r.editor()
	text, _, err := decode(raw)
	if err != nil || !ok {
		return Unreadable
	}
	if _, err := parse(e.format, text); err != nil {
		return Unreadable
	}
	switch entryHash(e, text) {
	case r.Entry:
		return FileEdited
	case "":
		return EntryMissing
	}
	return EntryEdited
}

// editor is the editor for the file of a record, by its client's row and its text.
func (r Record) editor() (editor, bool) {
	client, ok := ByName(r.Client)
	if !ok {
		return editor{}, false
	}
	want := isJSON
	switch filepath.Ext(r.Path) {
	case ".toml":
		want = isTOML
	case ".yaml", ".yml":
		want = isYAML
	}
	raw, err := readBounded(r.Path)
	if err != nil {
		return editor{}, false
	}
	text, _, err := decode(raw)
	if err != nil {
		return editor{}, false
	}
	for _, p := range client.places {
		if p.format == want && (p.scope == Project) == (r.Project != "") && (!p.extra || p.scope == Project) {
			return editor{p.format, client.shapeFor(p, text)}, true
		}
	}
	return editor{}, false
}

// Undo is a change back that was worked out and not made.
type Undo struct {
	Record Record
	Diff   string
	// Exact means that the original bytes are put back; otherwise the file was edited
	// since, and only our entry is taken out and the removed ones put back.
	Exact bool
	// Delete means that there was no file before, and will be none.
	Delete bool

	now, after []byte
	mode       fs.FileMode
}

// PlanUndo works out how a record is undone.
func PlanUndo(r Record, backups string) (*Undo, error) {
	raw, err := readBounded(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &coded.Error{Code: "client-file-gone", Sentence: "the file is not there any more, so nothing is to be undone",
			Next: "connect the program again if you want it connected"}
	}
	if err != nil {
		return nil, unreadable(err)
	}
	info, err := os.Lstat(r.Path)
	if err == nil {
		err = mayReplace(info)
	}
	if err != nil {
		return nil, asCoded(err)
	}
	u := &Undo{Record: r, now: raw, mode: info.Mode().Perm()}
	if sum(raw) == r.After {
		u.Exact, u.Delete = true, r.Backup == ""
		if !u.Delete {
			u.after, err = readBackup(backups, Backup{r.Backup, r.Before})
		}
	} else {
		u.after, err = r.takenOut(raw, backups)
	}
	if err != nil {
		return nil, err
	}
	old, _, _ := decode(raw)
	now, _, _ := decode(u.after)
	u.Diff = udiff.Unified(r.File, r.File, old, now)
	return u, nil
}

// Backups are the files that the record's undo needs, the newest first.
func (r Record) Backups() []Backup {
	all := slices.Clone(r.Later)
	slices.Reverse(all)
	if r.Backup != "" {
		all = append(all, Backup{r.Backup, r.Before})
	}
	return all
}

func readBackup(backups string, b Backup) ([]byte, error) {
	raw, err := readBounded(filepath.Join(backups, filepath.Base(b.File)))
	if err == nil && sum(raw) != b.Before {
		err = errors.New("it is not what was kept")
	}
	if err != nil {
		return nil, &coded.Error{Code: "backup-unusable", Sentence: "the backup of the file cannot be used: " + pathless(err), Err: err,
			Next: "take the entry sallyport out of the file by hand"}
	}
	return raw, nil
}

// takenOut is the file as it is now without our entry, with the removed ones.
func (r Record) takenOut(raw []byte, backups string) ([]byte, error) {
	e, ok := r.editor()
	text, enc, err := decode(raw)
	if err != nil || !ok {
		return nil, &coded.Error{Code: "client-file-invalid", Sentence: "the file was edited since and cannot be understood now",
			Next: "correct it, or take the entry sallyport out by hand"}
	}
	root, err := parse(e.format, text)
	if err != nil {
		return nil, e.refusal(err, "take the entry sallyport out of the file")
	}
	var without []string
	if e.find(root, EntryName) != nil {
		without = []string{EntryName}
	}
	now, _, err := e.edited(text, nil, without...)
	for _, name := range slices.Backward(r.Removed) { // each goes in first
		if err != nil {
			break
		}
		if root, parseErr := parse(e.format, now); parseErr != nil || e.find(root, name) != nil {
			continue // somebody put it back already
		}
		stood := r.stood(e, name, backups)
		if stood == "" {
			return nil, e.refusal(errUnsafe, fmt.Sprintf("put the entry %s back from the backup", show(name)))
		}
		now, _, err = e.edited(now, &insertion{name: name, raw: stood})
	}
	if err != nil {
		return nil, e.refusal(err, "take the entry sallyport out of the file")
	}
	return enc.encode(now), nil
}

// Plan names the undo: who agreed to one agreed to these bytes in this file.
func (u *Undo) Plan() string { return planOf(u.Record.Path, u.now, u.after) }

// stood is an entry as it stood in the newest backup that has it; "" for none.
func (r Record) stood(e editor, name, backups string) string {
	for _, b := range r.Backups() {
		raw, err := readBackup(backups, b)
		if err != nil {
			continue
		}
		text, _, err := decode(raw)
		if err != nil {
			continue
		}
		if _, was, err := e.remove(text, name); err == nil && was != "" {
			return was
		}
	}
	return ""
}

// Apply makes the undo: nothing of it, if the file is not what it was planned on.
func (u *Undo) Apply() error {
	if !u.Delete {
		return replaceFile(u.Record.Path, u.now, u.after, true, u.mode)
	}
	now, err := readBounded(u.Record.Path)
	if err != nil || sum(now) != u.Record.After {
		return changedMeanwhile()
	}
	if err := os.Remove(u.Record.Path); err != nil {
		return fmt.Errorf("cannot remove the file that was made: %s", pathless(err))
	}
	for _, folder := range u.Record.Folders {
		if os.Remove(folder) != nil {
			return nil // somebody has put something into it
		}
	}
	return nil
}
