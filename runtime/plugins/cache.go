package plugins

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sallyport/internal/filestamp"
)

// cache keeps loaded plugins by resolved root. An entry holds as long as every
// directory entry that was looked at for it has the stat it had, in the manner
// of git's index. It serves lists only: nothing is started on its word.
type cache map[string]cached

type cached struct {
	plugin  *Plugin
	touched map[string]filestamp.Stamp
	// folder is the root itself, with its times: while it is the same nothing new
	// stands in it. The zero stamp is one that proves nothing.
	folder filestamp.Stamp
	// racy: something had changed so shortly before it was read that a later
	// change might not show. Such an entry is read again.
	racy bool
}

// successor is the cache that a scan builds: what the scan does not meet is
// forgotten.
type successor struct {
	mu      sync.Mutex
	entries cache
	read    int // plugins read anew
}

func (c cache) successor() *successor { return &successor{entries: make(cache, len(c))} }

// load returns the plugin of a directory, from the cache where it holds.
func (c cache) load(from found, next *successor) *Plugin {
	entry, known := c[from.dir]
	fresh := known && entry.holds(from.dir)
	if !fresh {
		started := time.Now()
		entry = cached{folder: stampOfFolder(from.dir)}
		entry.plugin, entry.touched = load(from.dir, from.source)
		for _, s := range entry.touched {
			entry.racy = entry.racy || s.Racy(started)
		}
		if entry.folder.Racy(started) {
			entry.folder = filestamp.Stamp{}
		}
	}
	next.mu.Lock()
	defer next.mu.Unlock()
	next.entries[from.dir] = entry
	if !fresh {
		next.read++
	}
	return entry.plugin
}

func stampOfFolder(dir string) filestamp.Stamp {
	info, err := os.Lstat(dir)
	if err != nil {
		return filestamp.Stamp{}
	}
	return filestamp.Of(info)
}

func (e cached) holds(dir string) bool {
	if e.racy || len(e.touched) == 0 {
		return false
	}
	same := e.folder != filestamp.Stamp{} && stampOfFolder(dir) == e.folder
	for name, was := range e.touched {
		if same && !was.Exists() && !strings.Contains(name, "/") {
			continue
		}
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			if !isMissing(err) || was.Exists() {
				return false
			}
			continue
		}
		if filestamp.Of(info) != was {
			return false
		}
	}
	return true
}
