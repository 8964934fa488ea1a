package clients

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/internal/owneronly"
)

// Change is an edit of one file that was worked out and not made.
type Change struct {
	Client  string
	File    string // a label
	Project string
	// Diff is the exact unified difference of the texts; "" where nothing changes.
	Diff string
	// Sum is the hash of the file as it was; "" where there is none.
	Sum string
	// Note is what to know before: a program that writes its file by itself.
	Note string
	// Removed names the entries that are taken out.
	Removed []string

	path          string // the real file
	before, after []byte
	exists        bool
	mode          fs.FileMode
	entry         string // hash of the entry as it is written
	project       string
}

// Record is what has to be known of a change to undo it and to notice others.
type Record struct {
	Client  string `json:"client"`
	File    string `json:"file"` // a label
	Path    string `json:"path"`
	Project string `json:"project,omitempty"`
	// Backup is the file of the original bytes, beside the record; "" where there was no
	// file.
	Backup string `json:"backup,omitempty"`
	// Before and After are hashes of the whole file, Entry of our entry alone.
	Before string `json:"before,omitempty"`
	After  string `json:"after"`
	Entry  string `json:"entry"`
	// Folders were made for the file, from the innermost out.
	Folders []string `json:"folders,omitempty"`
	// Later are backups of edits after the first, with Before the hash of each.
	Later []Backup `json:"later,omitempty"`
	// Removed names what was taken out; how it stood is in the backups.
	Removed []string  `json:"removed,omitempty"`
	At      time.Time `json:"at"`
}

// Backup is a file as it was before an edit.
type Backup struct {
	File   string `json:"file"`
	Before string `json:"before"`
}

// Then returns the record of a second edit of the file that r is about, so that one
// undo leads back to before the first. If somebody else edited the file in between,
// no undo is exact any more.
func (r Record) Then(second Record) Record {
	merged := second
	if second.Before != r.After {
		merged.After = ""
	}
	merged.Before, merged.Backup, merged.Folders = r.Before, r.Backup, r.Folders
	merged.Later = slices.Clone(r.Later)
	if second.Backup != "" {
		merged.Later = append(merged.Later, Backup{second.Backup, second.Before})
	}
	merged.Removed = slices.Clone(r.Removed)
	for _, name := range second.Removed {
		if !slices.Contains(merged.Removed, name) {
			merged.Removed = append(merged.Removed, name)
		}
	}
	return merged
}

func sum(raw []byte) string {
	digest := sha256.Sum256(raw)
	return hex.EncodeToString(digest[:])
}

// Plan works out the edit that makes a client use Sallyport: one entry, in the
// user's file or in that of a project; without names entries that are taken out.
func (c Client) Plan(system System, project string, launch Launch, without ...string) (*Change, error) {
	place, path, err := c.writable(system, project)
	if err != nil {
		return nil, err
	}
	change, text, enc, err := c.open(system, place, path, project)
	if err != nil {
		return nil, err
	}
	own := insertion{name: EntryName, value: c.entry(launch)}
	e := editor{place.format, c.shapeFor(place, text)}
	now, _, err := e.edited(fresh(c, place, text, change.exists), &own, without...)
	if err != nil {
		return nil, e.refusal(err, c.Snippet(launch))
	}
	change.Removed = without
	change.after = enc.encode(now)
	change.entry = entryHash(e, now)
	change.Diff = udiff.Unified(change.File, change.File, text, now)
	change.Note = c.Keeps
	return change, nil
}

// shapeFor is the shape of a place that a text has, or the first.
func (c Client) shapeFor(p place, text string) shape {
	root, err := parse(p.format, text)
	if err != nil {
		return p.shapes[0]
	}
	for _, s := range slices.Backward(p.shapes) {
		holder := root.path(s.path...)
		if s.perProject || holder == nil || holder.kind != isObject && holder.kind != isList {
			continue
		}
		if s.openCode && len(s.path) == 2 && holder.get("type") != nil {
			continue
		}
		return s
	}
	return p.shapes[0]
}

// fresh is the text to begin with: that of the file, or what a new one must hold.
func fresh(c Client, p place, text string, exists bool) string {
	if c.Name == "continue" && p.format == isYAML && !exists {
		return "name: Sallyport\nversion: 0.0.1\nschema: v1\n"
	}
	return text
}

func entryHash(e editor, text string) string {
	root, err := parse(e.format, text)
	if err != nil {
		return ""
	}
	entry := e.find(root, EntryName)
	if entry == nil {
		return ""
	}
	return sum([]byte(canonical(entry)))
}

// Snippet is the entry as a person would paste it.
func (c Client) Snippet(launch Launch) string {
	p := c.places[0]
	s := p.shapes[0]
	in := insertion{name: EntryName, value: c.entry(launch)}
	switch p.format {
	case isTOML:
		text, _ := editor{p.format, s}.insertTOML("", &node{}, in)
		return strings.TrimSpace(text)
	case isYAML:
		return s.path[0] + ":\n" + editor{p.format, s}.writeYAML(in, "  ", "\n")
	}
	return "{" + jsonStyle{}.write(s.path, in, "", true, s.list) + "}"
}

// writable is the file of a client that an entry is written into: the first that is
// there, or the first that could be.
func (c Client) writable(system System, project string) (place, string, error) {
	var first place
	var path string
	for _, p := range c.places {
		if (p.scope == Project) != (project != "") || p.scope == Profile {
			continue
		}
		if found := system.find(p, project); len(found) > 0 && (!p.extra || p.scope == Project) && !strings.HasSuffix(p.path, "*.yaml") && !strings.HasSuffix(p.path, "*.json") {
			return p, found[0], nil
		}
		target, sure, ok := system.target(p, project)
		if sure {
			return p, target, nil
		}
		if ok && (path == "" || !isFolder(filepath.Dir(path)) && isFolder(filepath.Dir(target))) {
			first, path = p, target // where the program keeps files already
		}
	}
	if path == "" {
		return place{}, "", &coded.Error{Code: "client-no-project", Sentence: c.Title + " has no configuration of a single project that can be written",
			Next: "leave out --project"}
	}
	if first.instead != "" {
		if older := filepath.Join(system.folder(first.base, project), filepath.FromSlash(first.instead)); exists(older) {
			return place{}, "", &coded.Error{Code: "client-file-unsafe", Sentence: fmt.Sprintf("%s uses %s, which it would no longer read if %s were made", c.Title, system.Label(older), system.Label(path)),
				Next: "let the program move to its new file first, then try again"}
		}
	}
	return first, path, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// open reads the file that a path leads to, with what a writer must keep of it.
func (c Client) open(system System, p place, path, project string) (*Change, string, encoding, error) {
	change := &Change{Client: c.Name, File: system.Label(path), mode: 0o600, project: project}
	if project != "" {
		change.Project, change.mode = system.Label(project), 0o644
	}
	real, err := realFile(system, path)
	if err != nil {
		return nil, "", encoding{}, err
	}
	change.path = real
	info, err := os.Lstat(real)
	if errors.Is(err, fs.ErrNotExist) {
		return change, "", encoding{}, nil
	}
	if err == nil {
		err = mayReplace(info)
	}
	if err != nil {
		return nil, "", encoding{}, asCoded(err)
	}
	raw, err := readBounded(real)
	if err != nil {
		return nil, "", encoding{}, unreadable(err)
	}
	text, enc, err := decode(raw)
	if err != nil {
		return nil, "", encoding{}, unreadable(err)
	}
	change.before, change.exists, change.mode, change.Sum = raw, true, info.Mode().Perm(), sum(raw)
	return change, text, enc, nil
}

func asCoded(err error) error {
	if coded.Of(err) != "" {
		return err
	}
	return unreadable(err)
}

// mayReplace refuses files that a rename would take from somebody.
func mayReplace(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return unreadable(errors.New("it is no regular file"))
	case info.Mode().Perm()&0o200 == 0:
		return &coded.Error{Code: "client-file-read-only", Sentence: "the file is read-only",
			Next: "somebody meant it to stay as it is; make it writable if that was you"}
	case !ours(info):
		return &coded.Error{Code: "client-file-not-yours", Sentence: "the file belongs to another user", Next: "run this as that user"}
	}
	return nil
}

// realFile follows links, so that the file behind a link is written and the link
// stays. A link that leads out of the home folder is not followed.
func realFile(system System, path string) (string, error) {
	deepest, rest := path, ""
	var real string
	for {
		var err error
		if real, err = filepath.EvalSymlinks(deepest); err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", unreadable(err)
		}
		if info, err := os.Lstat(deepest); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", linkRefused("a link leads to nothing")
		}
		if filepath.Dir(deepest) == deepest {
			return "", unreadable(err)
		}
		rest = filepath.Join(filepath.Base(deepest), rest)
		deepest = filepath.Dir(deepest)
	}
	real = filepath.Join(real, rest)
	if real == filepath.Clean(path) {
		return real, nil
	}
	home, err := filepath.EvalSymlinks(system.Home)
	if err != nil {
		return "", unreadable(err)
	}
	if real != home && !strings.HasPrefix(real, home+string(filepath.Separator)) {
		return "", linkRefused("a link leads out of your home folder")
	}
	return real, nil
}

func linkRefused(why string) error {
	return &coded.Error{Code: "client-link-outside", Sentence: why + ", so the file is not written", Next: "edit the file that it leads to by hand"}
}

// Plan names the change: who agreed to one agreed to these bytes in this file.
func (ch *Change) Plan() string { return planOf(ch.path, ch.before, ch.after) }

func planOf(path string, before, after []byte) string {
	return sum([]byte(path + "\x00" + sum(before) + sum(after)))[:32]
}

// Nothing reports whether the file is already what it would become.
func (ch *Change) Nothing() bool { return ch.exists && bytes.Equal(ch.before, ch.after) }

// Apply makes the change, if the file is still what it was planned on: the original
// bytes are kept in backups first, and keep is given the record before the file is
// written, so that no write is without one.
func (ch *Change) Apply(backups string, now time.Time, keep func(Record) error) (Record, error) {
	record := Record{Client: ch.Client, File: ch.File, Path: ch.path, Project: ch.project, Before: ch.Sum, After: sum(ch.after),
		Entry: ch.entry, Removed: ch.Removed, At: now.UTC().Truncate(time.Second)}
	if err := owneronly.Folder(backups); err != nil {
		return record, fmt.Errorf("cannot keep a backup: %w", err)
	}
	if ch.exists {
		record.Backup = fmt.Sprintf("%s-%s-%s.bak", ch.Client, now.UTC().Format("20060102T150405.000000000"), ch.Sum[:12])
		if err := atomicfile.WriteNew(filepath.Join(backups, record.Backup), ch.before, 0o600); err != nil {
			return record, fmt.Errorf("cannot keep a backup: %w", err)
		}
	}
	var err error
	if record.Folders, err = makeFolders(filepath.Dir(ch.path)); err != nil {
		return record, fmt.Errorf("cannot make the folder of the file: %s", pathless(err))
	}
	if err := keep(record); err != nil {
		return record, err
	}
	return record, replaceFile(ch.path, ch.before, ch.after, ch.exists, ch.mode)
}

func replaceFile(path string, expected, data []byte, exists bool, mode fs.FileMode) error {
	if !exists {
		err := atomicfile.WriteNew(path, data, mode)
		if errors.Is(err, fs.ErrExist) {
			return changedMeanwhile()
		}
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return changedMeanwhile()
	}
	now, err := readBounded(path)
	if err != nil || !bytes.Equal(now, expected) {
		return changedMeanwhile()
	}
	if err := atomicfile.Write(path, data, mode); err != nil {
		return err
	}
	return keepOwner(path, info)
}

func changedMeanwhile() error {
	return &coded.Error{Code: "changed-meanwhile", Sentence: "the file was changed meanwhile and is left as it is",
		Next: "look at the difference again, and close the program that the file belongs to"}
}

// makeFolders makes the folders that are missing and returns them, the innermost
// first.
func makeFolders(folder string) (made []string, err error) {
	for dir := folder; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		made = append(made, dir)
	}
	for _, dir := range slices.Backward(made) {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return made, nil
}

// Target is the label of the file that Plan writes.
func (c Client) Target(system System, project string) (string, error) {
	_, path, err := c.writable(system, project)
	return system.Label(path), err
}
