package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/internal/unpack"
	"sallyport/runtime/artifact"
)

// folder copies a folder. Links are copied as links; that they stay inside is
// decided by the digest of the copy (spec/artifact-digest.md 4).
func (j *job) folder(ctx context.Context, source Source) error {
	if err := j.outside(source.Path); err != nil {
		return err
	}
	from, err := os.OpenRoot(source.Path)
	if err != nil {
		return unreadable(".", err)
	}
	defer from.Close()
	options := j.options("reading")
	options.KeepCase = true // two files differing in case are flagged, as they are there (C54)
	target, err := unpack.Create(ctx, j.tree, options)
	if err != nil {
		return err
	}
	if err := copyFolder(from, target, "."); err != nil {
		return errors.Join(err, target.Abandon())
	}
	result, err := target.Close()
	if err != nil {
		return err
	}
	j.warn(result)
	if _, err := os.Lstat(filepath.Join(j.tree, ".git")); err == nil {
		j.record.Warnings = append(j.record.Warnings, Warning{Code: "git-inside", Path: ".git"})
	}
	j.record.Origin = Origin{Kind: Folder, Text: j.installer.label(source.Path)}
	return nil
}

// outside refuses a folder that holds the staging folder: it would be copied into
// itself.
func (j *job) outside(folder string) error {
	resolved, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return unreadable(".", err)
	}
	staging, err := filepath.EvalSymlinks(j.dir)
	if err != nil {
		return unreadable(".", err)
	}
	if rel, err := filepath.Rel(resolved, staging); err == nil && filepath.IsLocal(rel) {
		return &coded.Error{Code: "source-holds-sallyport", Sentence: "Sallyport's own data lies in this folder", Next: "name the plugin's own folder"}
	}
	return nil
}

func copyFolder(from *os.Root, target *unpack.Target, dir string) error {
	entries, err := list(from, dir)
	if err != nil {
		return unreadable(dir, err)
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		switch entry.Type() {
		case 0:
			err = copyFile(from, target, name)
		case fs.ModeDir:
			if err = target.Dir(name); err == nil {
				err = copyFolder(from, target, name)
			}
		case fs.ModeSymlink:
			err = copyLink(from, target, name)
		default:
			err = &coded.Error{Code: artifact.CodeSpecialFile, Sentence: "a pipe, socket or device cannot be part of a bundle", Next: "remove it from the folder", Path: name}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func list(from *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := from.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func copyFile(from *os.Root, target *unpack.Target, name string) error {
	f, err := from.OpenFile(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return unreadable(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return unreadable(name, err)
	}
	if !info.Mode().IsRegular() {
		return unreadable(name, fs.ErrNotExist)
	}
	_, err = target.File(name, info.Mode()&0o111 != 0, f)
	var read *fs.PathError
	if errors.As(err, &read) && read.Op == "read" {
		return unreadable(name, err)
	}
	return err
}

func copyLink(from *os.Root, target *unpack.Target, name string) error {
	text, err := from.Readlink(name)
	if err != nil {
		return unreadable(name, err)
	}
	return target.Link(name, filepath.ToSlash(text))
}

// unreadable says which entry of the source ends the installation (C56): there is
// never a bundle of the readable rest.
func unreadable(name string, err error) error {
	e := &coded.Error{Code: artifact.CodeUnreadable, Path: name, Err: err, Next: "give yourself permission to read it, then try again"}
	shown := fmt.Sprintf("%q", name)
	switch {
	case errors.Is(err, fs.ErrPermission):
		e.Sentence = "cannot read " + shown + ": permission"
	case errors.Is(err, fs.ErrNotExist):
		e.Code, e.Sentence, e.Next = artifact.CodeChanged, shown+" changed while it was being read", "try again when nothing writes to the folder"
	default:
		e.Sentence = "cannot read " + shown
	}
	e.Path = ""
	return e
}
