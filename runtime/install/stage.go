package install

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/unpack"
	"sallyport/runtime/artifact"
	"sallyport/runtime/plugins"
	"sallyport/runtime/signature"
)

// job is one staging while it is made.
type job struct {
	installer *Installer
	dir       string // the staging folder
	tree      string // the bundle in it
	work      string // for helpers; removed at the end
	progress  func(Step)
	record    stagedRecord
}

// Stage copies a source into a private folder, reads it as a plugin and digests
// it. After an error, or when ctx ends, nothing of it is on disk. progress may be
// nil; it is called by one goroutine at a time.
func (i *Installer) Stage(ctx context.Context, source Source, progress func(Step)) (*Staged, error) {
	return i.stage(ctx, progress, func(ctx context.Context, j *job) error {
		switch source.Kind {
		case Folder:
			return j.folder(ctx, source)
		case Archive:
			return j.archive(ctx, source)
		case NPM:
			return j.npm(ctx, source)
		case Git:
			return j.git(ctx, source)
		}
		return unknownSource()
	})
}

func (i *Installer) stage(ctx context.Context, progress func(Step), fill func(context.Context, *job) error) (staged *Staged, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id := "s-" + strings.ToLower(rand.Text()[:16])
	i.setActive(id, true)
	defer i.setActive(id, false)
	dir := filepath.Join(i.config.Staging, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a staging folder: %w", pathless(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeAll(dir))
		}
	}()
	j := &job{installer: i, dir: dir, tree: filepath.Join(dir, treeName), work: filepath.Join(dir, workName), progress: seldom(progress)}
	if err := os.Mkdir(j.work, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a staging folder: %w", pathless(err))
	}
	if err := fill(ctx, j); err != nil {
		return nil, err
	}
	if err := removeAll(j.work); err != nil {
		return nil, err
	}
	return j.finish(ctx, id)
}

// tellEvery is how often progress is told at most, but for a new step.
const tellEvery = 100 * time.Millisecond

// seldom thins progress out. It may be nil.
func seldom(progress func(Step)) func(Step) {
	if progress == nil {
		return func(Step) {}
	}
	var mu sync.Mutex
	var doing string
	var told time.Time
	return func(s Step) {
		mu.Lock()
		defer mu.Unlock()
		if s.Doing == doing && time.Since(told) < tellEvery {
			return
		}
		doing, told = s.Doing, time.Now()
		progress(s)
	}
}

// finish reads what was staged as a plugin, mends its entry points and digests
// it, in this order: the digest is of what would be activated.
func (j *job) finish(ctx context.Context, id string) (*Staged, error) {
	plugin, err := plugins.Load(ctx, j.tree)
	if err != nil {
		return nil, err
	}
	if plugin.Invalid != nil {
		return nil, notAPlugin(plugin.Invalid)
	}
	if err := usableName(plugin.Name); err != nil {
		return nil, err
	}
	if err := j.mend(plugin); err != nil {
		return nil, err
	}
	tree, err := artifact.Of(ctx, j.tree, artifact.Options{Limits: j.installer.config.Limits, Progress: func(p artifact.Progress) {
		j.progress(Step{Doing: "digesting", Entries: p.Entries, Bytes: p.Bytes})
	}})
	if err != nil {
		return nil, err
	}
	for _, w := range tree.Warnings {
		j.record.Warnings = append(j.record.Warnings, Warning{Code: w.Code, Path: w.Path, Other: w.Other})
	}
	j.record.Files, j.record.Bytes, j.record.At = tree.Files, tree.Bytes, j.installer.now().UTC()
	if j.record.Signature.State == "" {
		j.record.Signature = signatureOf(signature.Report{State: signature.Unsigned})
	}
	staged := &Staged{ID: id, Dir: j.tree, Digest: tree.Digest, Plugin: *plugin, stagedRecord: j.record, home: j.installer}
	if err := staged.save(j.dir); err != nil {
		return nil, err
	}
	return staged, nil
}

// notAPlugin is the plugin's own refusal, with what it means here.
func notAPlugin(invalid *coded.Error) error {
	refusal := *invalid
	refusal.Next = "ask its maker for a plugin that is whole, or correct the source and install it again"
	if invalid.Code == "manifest-missing" {
		refusal.Sentence = "there is no plugin in it: it has no manifest at its top"
		refusal.Next = "name the folder or archive whose top has the plugin's manifest"
	}
	return &refusal
}

// usableName refuses a plugin's name that cannot be one folder on every system.
func usableName(name string) error {
	if name == "" || len(name) > 128 || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\:*?"<>|`, r)
	}) || unpack.ImpossibleOnWindows(name) {
		return &coded.Error{Code: "name-invalid", Sentence: "the plugin's name cannot be the name of a folder", Next: "ask its maker for another name"}
	}
	if strings.EqualFold(name, plugins.ByHand) {
		// Removing it would end the approvals, and take the data, of the operator's own.
		return &coded.Error{Code: "name-invalid", Sentence: "the plugin has the name that connectors written by hand have here", Next: "ask its maker for another name"}
	}
	return nil
}

// mend makes the files that the plugin itself says it starts executable: packing
// on Windows, and many tools, lose that bit (C47).
func (j *job) mend(plugin *plugins.Plugin) error {
	root, err := os.OpenRoot(j.tree)
	if err != nil {
		return fmt.Errorf("cannot open what is staged: %w", pathless(err))
	}
	defer root.Close()
	mended := map[string]bool{}
	for _, connector := range plugin.Connectors {
		path, inside := insidePath(connector)
		if !inside || mended[path] {
			continue
		}
		info, err := root.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o100 != 0 {
			continue // reported when it is started or asked about, by whoever looks for it
		}
		if err := root.Chmod(path, 0o755); err != nil {
			return fmt.Errorf("cannot make %q executable: %w", path, pathless(err))
		}
		mended[path] = true
		j.record.Mended = append(j.record.Mended, path)
	}
	return nil
}

// insidePath returns the path below the root that a declared command names.
func insidePath(connector plugins.Connector) (string, bool) {
	command, inside := strings.CutPrefix(connector.Launch.Command, "./")
	for word, place := range plugins.DialectOf(connector.Format).Places {
		switch place {
		case plugins.PlaceRoot:
			if rest, ok := strings.CutPrefix(command, "${"+word+"}"); ok {
				command, inside = strings.TrimLeft(rest, "/"), true
			}
		case plugins.PlaceSeparator:
			command = strings.ReplaceAll(command, "${"+word+"}", "/")
		}
	}
	command = filepath.Clean(filepath.FromSlash(strings.TrimLeft(command, "/")))
	return command, inside && filepath.IsLocal(command) && command != "."
}

// options are those of a folder that is being made.
func (j *job) options(doing string) unpack.Options {
	limits := j.installer.config.Limits
	return unpack.Options{
		Limits:   unpack.Limits{Entries: limits.Entries, FileBytes: limits.FileBytes, TotalBytes: limits.TreeBytes},
		Progress: func(p unpack.Progress) { j.progress(Step{Doing: doing, Entries: p.Entries, Bytes: p.Bytes}) },
	}
}

// warn keeps what unpack has to say.
func (j *job) warn(result unpack.Result) {
	for _, w := range result.Warnings {
		j.record.Warnings = append(j.record.Warnings, Warning{Code: w.Code, Path: w.Path})
	}
}

func (i *Installer) setActive(id string, active bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if active {
		i.active[id] = true
	} else {
		delete(i.active, id)
	}
}

// pathless takes absolute paths out of an error of package os.
func pathless(err error) error {
	var pathError *fs.PathError
	var linkError *os.LinkError
	switch {
	case errors.As(err, &pathError):
		return pathError.Err
	case errors.As(err, &linkError):
		return linkError.Err
	}
	return err
}

// copyTrouble says what went wrong in a copy, without paths.
func copyTrouble(err error) error {
	var refusal *coded.Error
	if errors.As(err, &refusal) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) {
		return &coded.Error{Code: "disk-full", Sentence: "the disk is full", Next: "free some space, then try again", Err: err}
	}
	return fmt.Errorf("cannot copy the archive: %w", pathless(err))
}
