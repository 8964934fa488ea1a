package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Cache re-digests trees that were seen before from an lstat of every entry, in
// the manner of git's index. It is for lists and scans, never for a start: whoever
// may write the folder may write the cache, and a store through a shared mapping
// can leave every time as it was. A start uses Of or Snapshots.Verify.
//
// An entry is reused when device, inode, size, mode, mtime and ctime are those
// of the digest, and only if mtime and ctime lie before the moment t0 at which
// that digest began, with the file system's dirty pages written out at t0: a
// later change then moves ctime to t0 or behind it. Entries as young as t0 are
// read again the next time. On file systems that do not keep to this (memory,
// FUSE, network, overlays) every call is a full digest.
//
// A Cache is safe for concurrent use.
type Cache struct {
	config CacheConfig
}

// CacheConfig says where a Cache keeps its files. Dir is required.
type CacheConfig struct {
	// Dir holds one file a tree, owner-only. It is made if it is missing.
	Dir     string
	Options Options
	// KeepSmall also caches trees that are as quickly digested as looked up.
	KeepSmall bool
	// Log hears of cache files that were ignored or not written; may be nil.
	Log *slog.Logger
}

// OpenCache returns a cache in config.Dir.
func OpenCache(config CacheConfig) (*Cache, error) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot open the digest cache: %w", err)
	}
	return &Cache{config: config}, nil
}

// A tree up to this size is digested in full every time: that is as quick as
// looking it up, and the first look at a folder of a thousand small plugins does
// not wait a thousand times for the disk to be in step.
const (
	smallFiles = 200
	smallBytes = 1 << 20
)

// Tree returns what Of would, from an lstat of every entry where that is enough.
func (c *Cache) Tree(ctx context.Context, dir string) (*Tree, error) {
	root, err := resolveRoot(dir)
	if err != nil || !cacheable(root) {
		return Of(ctx, dir, c.config.Options)
	}
	file := c.file(root)
	if _, err := os.Lstat(file); os.IsNotExist(err) && !c.config.KeepSmall {
		tree, err := Of(ctx, dir, c.config.Options)
		if err != nil || tree.Files+tree.Links+tree.Dirs <= smallFiles && tree.Bytes <= smallBytes {
			return tree, err
		}
	}
	reuse := &reuse{dirs: map[string]*cachedDir{}}
	if err := reuse.load(file, root); err != nil && !os.IsNotExist(err) {
		c.config.Log.Debug("digest cache ignored", "err", err)
	}
	w := newWalk(ctx, c.config.Options)
	w.reuse = reuse
	tree, err := w.run(root)
	if err != nil {
		return nil, err
	}
	if reuse.misses.Load() > 0 || reuse.hits.Load() != int64(reuse.loaded) {
		if err := writeFileAtomically(file, encodeCache(root, w.root)); err != nil {
			c.config.Log.Debug("digest cache not written", "err", err)
		}
	}
	return tree, nil
}

// Forget drops what the cache holds of the tree below dir.
func (c *Cache) Forget(dir string) error {
	root, err := resolveRoot(dir)
	if err != nil {
		root = filepath.Clean(dir)
	}
	if err := os.Remove(c.file(root)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("cannot forget the digest cache of a folder: %w", err)
	}
	return nil
}

// Collect drops what the cache holds of all trees but those below dirs.
func (c *Cache) Collect(dirs []string) error {
	keep := map[string]bool{}
	for _, dir := range dirs {
		if root, err := resolveRoot(dir); err == nil {
			keep[filepath.Base(c.file(root))] = true
		}
	}
	entries, err := os.ReadDir(c.config.Dir)
	if err != nil {
		return fmt.Errorf("cannot list the digest cache: %w", err)
	}
	var failures []error
	for _, e := range entries {
		ours := strings.HasSuffix(e.Name(), cacheSuffix) || strings.HasPrefix(e.Name(), tempPrefix)
		if ours && !keep[e.Name()] {
			failures = append(failures, os.Remove(filepath.Join(c.config.Dir, e.Name())))
		}
	}
	return errors.Join(failures...)
}

const cacheSuffix = ".cache"

func (c *Cache) file(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(c.config.Dir, hex.EncodeToString(sum[:16])+cacheSuffix)
}

func resolveRoot(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// clockGrain is how far a file system's clock may lag behind ours: a tick of the
// kernel, and then some.
const clockGrain = 100 * time.Millisecond

// reuse is what a walk knows from an earlier one.
type reuse struct {
	dirs   map[string]*cachedDir // by NFC path
	loaded int                   // entries in dirs
	dev    uint64                // device that all of them are on

	hits, misses atomic.Int64
	begin        sync.Once
	t0           int64 // nanoseconds; set by begin
}

// knows fills e from the cache if the file is exactly the one that was hashed.
func (r *reuse) knows(w *walk, n *node, e *entry, s *scratch) bool {
	if i, ok := n.cached.find(e.raw); ok {
		id, err := w.src.lstat(n.handle, e.raw, s)
		if err == nil && id == n.cached.identity(i, r.dev) && id.kind() == KindFile && id.size <= w.limits.FileBytes {
			e.id, e.hashed, e.trusted = id, true, true
			copy(e.sum[:], n.cached.sum(i))
			r.hits.Add(1)
			return true
		}
	}
	r.misses.Add(1)
	r.begin.Do(func() { r.t0 = w.src.settle(n.handle) })
	return false
}

// settled reports whether a file just hashed may be trusted later.
func (r *reuse) settled(w *walk, id identity) bool {
	return id.mtime < r.t0 && id.ctime < r.t0 && id.dev == w.root.id.dev
}

// encodeCache returns the cache file for a walked tree: its trusted files only.
func encodeCache(root string, top *node) []byte {
	e := cacheEncoder{}
	e.begin(root, top.id.dev)
	e.node(top)
	return e.end()
}
