package unpack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"time"
)

// Target is a new folder that is being filled. It is for one goroutine. It ends
// with Close, which keeps the folder, or Abandon, which leaves nothing of it.
type Target struct {
	ctx    context.Context
	dir    string
	root   *os.Root
	opts   Options
	limits Limits
	result Result
	seen   map[string]entry // by key
	dirs   map[string]bool  // folders made, by path
	buf    []byte
	told   time.Time
}

type entry struct {
	path string
	dir  bool
}

// Create makes the folder dir, at which nothing may be.
func Create(ctx context.Context, dir string, opts Options) (*Target, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, cannotWrite("", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.Join(cannotWrite("", err), os.Remove(dir))
	}
	return &Target{
		ctx: ctx, dir: dir, root: root, opts: opts, limits: opts.Limits.orDefault(),
		seen: map[string]entry{}, dirs: map[string]bool{}, buf: make([]byte, 128<<10),
	}, nil
}

// Close ends the target and keeps the folder.
func (t *Target) Close() (Result, error) {
	if err := t.ctx.Err(); err != nil {
		return Result{}, err
	}
	t.tell(true)
	if err := t.root.Close(); err != nil {
		return Result{}, cannotWrite("", err)
	}
	return t.result, nil
}

// Abandon ends the target and removes the folder.
func (t *Target) Abandon() error {
	t.root.Close()
	if err := os.RemoveAll(t.dir); err != nil {
		return fmt.Errorf("cannot remove what was unpacked: %w", cannotWrite("", err))
	}
	return nil
}

// finish closes after a success and abandons after anything else.
func (t *Target) finish(err error) (Result, error) {
	var result Result
	if err == nil {
		if result, err = t.Close(); err == nil {
			return result, nil
		}
	}
	return Result{}, errors.Join(err, t.Abandon())
}

// Dir makes a folder, unless it is there already because of what it holds.
func (t *Target) Dir(name string) error {
	p, err := clean(name, t.limits)
	if err != nil || p == "" {
		return err
	}
	if err := t.parents(p); err != nil {
		return err
	}
	return t.mkdir(p)
}

// File makes a file, 0755 or 0644, with all of content, and returns its size.
func (t *Target) File(name string, executable bool, content io.Reader) (int64, error) {
	return t.file(name, executable, content, nil)
}

// file is File; after every piece, guard may refuse the count so far.
func (t *Target) file(name string, executable bool, content io.Reader, guard func(int64) error) (n int64, err error) {
	p, err := t.claim(name)
	if err != nil {
		return 0, err
	}
	f, err := t.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, cannotWrite(p, err)
	}
	n, err = t.fill(f, p, content, guard)
	mode := os.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	if err == nil && f.Chmod(mode) != nil {
		err = cannotWrite(p, errors.New("its mode cannot be set"))
	}
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = cannotWrite(p, closeErr)
	}
	t.result.Files++
	return n, err
}

// Link makes a symbolic link. Where it leads is for the caller to check when the
// folder is whole; nothing is ever written through it.
func (t *Target) Link(name, text string) error {
	p, err := t.claim(name)
	if err != nil {
		return err
	}
	if err := t.root.Symlink(text, p); err != nil {
		return cannotWrite(p, err)
	}
	return nil
}

// claim takes the path of a file or link that nothing has yet.
func (t *Target) claim(name string) (string, error) {
	p, err := clean(name, t.limits)
	if err != nil {
		return "", err
	}
	if p == "" {
		return "", badName(name)
	}
	if err := t.parents(p); err != nil {
		return "", err
	}
	if other, taken := t.seen[key(p, t.opts.KeepCase)]; taken {
		return "", clash(p, other)
	}
	return p, t.add(p, false)
}

func clash(p string, other entry) error {
	if other.path == p {
		return duplicate(p)
	}
	return collision(p)
}

// parents makes the folders above p that are not there yet.
func (t *Target) parents(p string) error {
	dir := path.Dir(p)
	if dir == "." || t.dirs[dir] {
		return nil
	}
	if err := t.parents(dir); err != nil {
		return err
	}
	return t.mkdir(dir)
}

func (t *Target) mkdir(p string) error {
	if t.dirs[p] {
		return nil
	}
	if other, taken := t.seen[key(p, t.opts.KeepCase)]; taken {
		return clash(p, other)
	}
	if err := t.add(p, true); err != nil {
		return err
	}
	if err := t.root.Mkdir(p, 0o755); err != nil {
		return cannotWrite(p, err)
	}
	t.dirs[p] = true
	return nil
}

// add counts an entry whose path is free.
func (t *Target) add(p string, dir bool) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if t.result.Entries++; t.result.Entries > t.limits.Entries {
		return tooMany(t.limits.Entries)
	}
	if ImpossibleOnWindows(p) {
		if runtime.GOOS == "windows" {
			return notOnWindows(p)
		}
		t.warn(CodeNotOnWindows, p)
	}
	t.seen[key(p, t.opts.KeepCase)] = entry{p, dir}
	t.tell(false)
	return nil
}

func (t *Target) warn(code, p string) {
	if len(t.result.Warnings) < maxWarnings {
		t.result.Warnings = append(t.result.Warnings, Warning{code, p})
	}
}

// fill copies content and counts it: no size is believed before it was read.
func (t *Target) fill(f *os.File, p string, content io.Reader, guard func(int64) error) (n int64, err error) {
	for {
		if err := t.ctx.Err(); err != nil {
			return n, err
		}
		count, readErr := content.Read(t.buf)
		n += int64(count)
		t.result.Bytes += int64(count)
		switch {
		case n > t.limits.FileBytes:
			return n, fileTooLarge(p, t.limits.FileBytes)
		case t.result.Bytes > t.limits.TotalBytes:
			return n, tooLarge(t.limits.TotalBytes)
		}
		if guard != nil {
			if err := guard(n); err != nil {
				return n, err
			}
		}
		if _, err := f.Write(t.buf[:count]); err != nil {
			return n, cannotWrite(p, err)
		}
		t.tell(false)
		if errors.Is(readErr, io.EOF) {
			return n, nil
		}
		if readErr != nil {
			return n, readErr
		}
	}
}

func (t *Target) tell(now bool) {
	if t.opts.Progress == nil || !now && time.Since(t.told) < progressEvery {
		return
	}
	t.told = time.Now()
	t.opts.Progress(Progress{Entries: t.result.Entries, Bytes: t.result.Bytes})
}
