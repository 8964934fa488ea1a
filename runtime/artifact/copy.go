package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// copier copies one tree, opening each child from its parent's handle. It shares
// data where the file system can (a reflink), and never makes a hard link: that
// would leave the source a way to write into the copy. A refusal of the contract
// is about the source; any other error is about the copy.
type copier struct {
	ctx     context.Context
	opts    Options
	limits  Limits
	entries atomic.Int64
	bytes   atomic.Int64
	noClone atomic.Bool
}

// copyTree fills the empty directory target with what is below source, owner-only
// and read-only.
func copyTree(ctx context.Context, source, target string, opts Options) error {
	if info, err := os.Stat(source); err != nil || !info.IsDir() {
		return refuse(CodeNotADirectory, "", err)
	}
	from, err := os.OpenRoot(source)
	if err != nil {
		return refuse(CodeUnreadable, "", err)
	}
	defer from.Close()
	to, err := os.OpenRoot(target)
	if err != nil {
		return err
	}
	defer to.Close()
	c := &copier{ctx: ctx, opts: opts, limits: opts.Limits.orDefault()}
	if err := c.dir(from, to, "", 0); err != nil {
		return err
	}
	return to.Chmod(".", 0o500)
}

// dir copies what is in from to to: files first, several at once, then the
// directories one after the other.
func (c *copier) dir(from, to *os.Root, path string, depth int) error {
	if depth > maxDepth {
		return refuse(CodePathTooLong, path, nil)
	}
	entries, err := listRoot(from)
	if err != nil {
		return refuse(CodeUnreadable, path, err)
	}
	if c.entries.Add(int64(len(entries))) > int64(c.limits.Entries) {
		return refuse(CodeTooManyEntries, "", nil)
	}
	var files errgroup.Group
	files.SetLimit(c.opts.workers())
	var dirs []string
	for _, e := range entries {
		name := e.Name()
		switch kindOfMode(e.Type()) {
		case KindDir:
			dirs = append(dirs, name)
		case KindFile:
			files.Go(func() error { return c.file(from, to, name, join(path, name)) })
		case KindLink:
			files.Go(func() error { return copyLink(from, to, name, join(path, name)) })
		default:
			err = refuse(CodeSpecialFile, join(path, name), nil)
		}
	}
	if groupErr := files.Wait(); groupErr != nil {
		return groupErr
	}
	if err != nil {
		return err
	}
	for _, name := range dirs {
		if err := c.subdir(from, to, name, join(path, name), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func listRoot(root *os.Root) ([]fs.DirEntry, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func (c *copier) subdir(from, to *os.Root, name, path string, depth int) error {
	source, _, err := rootSource{}.openDir(handle{root: from}, name, nil)
	if err != nil {
		return refuse(codeOf(err), path, err)
	}
	defer source.root.Close()
	if err := to.Mkdir(name, 0o700); err != nil {
		return err
	}
	target, err := to.OpenRoot(name)
	if err != nil {
		return err
	}
	defer target.Close()
	if err := c.dir(source.root, target, path, depth); err != nil {
		return err
	}
	return target.Chmod(".", 0o500)
}

func copyLink(from, to *os.Root, name, path string) error {
	text, err := from.Readlink(name)
	if err != nil {
		return refuse(codeOf(err), path, err)
	}
	return to.Symlink(text, name)
}

func (c *copier) file(from, to *os.Root, name, path string) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.opts.hook != nil {
		c.opts.hook("copying", path)
	}
	source, id, err := rootSource{}.openFile(handle{root: from}, name, nil)
	if err != nil {
		return refuse(codeOf(err), path, err)
	}
	defer source.f.Close()
	if id.size > c.limits.FileBytes {
		return refuse(CodeFileTooLarge, path, nil)
	}
	if c.bytes.Add(id.size) > c.limits.TreeBytes {
		return refuse(CodeTreeTooLarge, path, nil)
	}
	target, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := c.content(target, source.f, id.size, path); err != nil {
		target.Close()
		return err
	}
	// After the last write, which would clear set-uid and set-gid.
	return errors.Join(target.Chmod(snapshotMode(id.mode)), target.Close())
}

func (c *copier) content(to, from *os.File, size int64, path string) error {
	if !c.noClone.Load() {
		if err := cloneFile(to, from); err == nil {
			return nil
		}
		c.noClone.Store(true)
	}
	n, err := io.Copy(to, io.LimitReader(from, size+1))
	if n > size {
		return refuse(CodeChanged, path, nil)
	}
	if err != nil && c.ctx.Err() == nil {
		if isReadError(err) {
			return refuse(CodeUnreadable, path, err)
		}
		return fmt.Errorf("cannot copy a file: %w", err)
	}
	return c.ctx.Err()
}

// isReadError tells an error of the source from one of the copy.
func isReadError(err error) bool {
	var at *fs.PathError
	return errors.As(err, &at) && at.Op == "read"
}

// snapshotMode is what a snapshot's file has: readable by its owner, and the
// counted bits that it was digested with.
func snapshotMode(mode uint32) os.FileMode {
	m := os.FileMode(0o400 | mode&0o100)
	for bit, flag := range map[uint32]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}
