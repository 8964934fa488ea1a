package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/filestamp"
	"sallyport/runtime/approvals"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// lookEvery is how often the few files outside of bundles that matter are looked
// at: the programs that running servers were started from, config.json
// and connectors.json.
const lookEvery = time.Second

// follow keeps the listing and what runs in step with the disk: a change that
// matters is acted on within 2 s (spec/approval.md 5.3).
func (h *Host) follow() {
	f := &follower{host: h, trees: map[string]bool{}, programs: map[plugins.ID]string{}}
	f.config, f.hand = stampOf(h.Places.ConfigFile()), stampOf(h.Places.ConnectorsFile())
	f.watch()
	defer f.cancel()
	if err := h.Rescan(h.ctx); err == nil {
		h.Events.add("plugins", "", "")
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	started, stop := h.onStart()
	defer stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case e, ok := <-f.watcher.Events():
			if ok {
				f.changed(e)
			}
		case id := <-started:
			f.started(id)
		case <-ticker.C:
			f.look()
		}
	}
}

// follower is the state of the one goroutine that follows the disk.
type follower struct {
	host     *Host
	watcher  *plugins.Watcher
	cancel   context.CancelFunc
	trees    map[string]bool
	programs map[plugins.ID]string
	config   filestamp.Stamp
	hand     filestamp.Stamp
}

func (f *follower) watch() {
	ctx, cancel := context.WithCancel(f.host.ctx)
	f.cancel = cancel
	f.watcher = f.host.catalog.Load().Watch(ctx)
	for tree := range f.trees {
		f.watcher.WatchTree(tree)
	}
}

func (f *follower) changed(e plugins.Event) {
	h := f.host
	if h.Rescan(h.ctx) != nil {
		return
	}
	if e.Kind == plugins.TreeChanged {
		for id := range h.watchedGrants() {
			if declared, ok := h.connector(id); !ok || declared.Root == e.Path {
				h.Gate.Recheck(h.ctx, id)
			}
		}
		return
	}
	h.recheckRunning(h.ctx, "")
	h.Events.add("plugins", "", "")
}

// started begins to watch what a server that has just started came from, and
// looks once more: the change may have come in between.
func (f *follower) started(id plugins.ID) {
	h := f.host
	if declared, ok := h.connector(id); ok && declared.Root != "" && !f.trees[declared.Root] {
		f.trees[declared.Root] = true
		f.watcher.WatchTree(declared.Root)
	}
	f.programs[id] = f.programStamp(id)
	h.Gate.Recheck(h.ctx, id)
}

// look compares the programs of what runs and config.json with what they were,
// and forgets the trees of what no longer runs.
func (f *follower) look() {
	h := f.host
	running := h.watchedGrants()
	for id, before := range f.programs {
		if _, is := running[id]; !is {
			delete(f.programs, id)
			continue
		}
		if now := f.programStamp(id); now != before {
			f.programs[id] = now
			h.Gate.Recheck(h.ctx, id)
		}
	}
	f.dropTrees(running)
	if now := stampOf(h.Places.ConfigFile()); now != f.config {
		f.config = now
		f.reconfigure()
	}
	if now := stampOf(h.Places.ConnectorsFile()); now != f.hand {
		f.hand = now
		h.reread(h.ctx)
	}
}

func (f *follower) dropTrees(running map[plugins.ID]approvals.Grant) {
	needed := map[string]bool{}
	for id := range running {
		if declared, ok := f.host.connector(id); ok {
			needed[declared.Root] = true
		}
	}
	for tree := range f.trees {
		if !needed[tree] {
			delete(f.trees, tree)
			f.watcher.UnwatchTree(tree)
		}
	}
}

// reconfigure takes a changed config.json over: other folders and overlays.
func (f *follower) reconfigure() {
	h := f.host
	h.catalog.Store(h.newCatalog())
	f.cancel()
	f.watch()
	h.reread(h.ctx)
}

// reread lists anew after a file of the operator's own changed.
func (h *Host) reread(ctx context.Context) {
	if h.Rescan(ctx) == nil {
		h.recheckRunning(ctx, "")
		h.Events.add("plugins", "", "")
	}
}

// stampOf tells whether a file may have changed: a hint to look, never proof.
func stampOf(path string) filestamp.Stamp {
	info, err := os.Stat(path)
	if err != nil {
		return filestamp.Of(nil)
	}
	return filestamp.Of(info)
}

// programStamp is how everything looks that a server was started from outside its
// bundle, and every place where its command would be found instead.
func (f *follower) programStamp(id plugins.ID) string {
	launch, err := f.host.watchedGrants()[id].Launch()
	if err != nil || launch.Env == nil {
		return ""
	}
	var all strings.Builder
	for _, file := range append(programFiles(launch.Executable), earlier(launch)...) {
		target, _ := os.Readlink(file)
		fmt.Fprintln(&all, file, target, stampOf(file))
	}
	return all.String()
}

func programFiles(x env.Executable) []string {
	files := []string{x.Found, x.Real}
	for _, inner := range x.Interpreters {
		files = append(files, programFiles(inner)...)
	}
	return files
}

// earlier lists where the command's name would be found before it is found now.
// For a command that is no bare name the places mean nothing and cost little.
func earlier(l approvals.Launch) (files []string) {
	path, err := l.Env.Path()
	if err != nil {
		return nil
	}
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, filepath.Base(l.Executable.Found))
		if candidate == l.Executable.Found {
			break
		}
		files = append(files, candidate)
	}
	return files
}

// onStart delivers the connectors whose servers start.
func (h *Host) onStart() (started <-chan plugins.ID, stop func()) {
	ch := make(chan plugins.ID, 64)
	h.starts.Store(&ch)
	return ch, func() { h.starts.Store(nil) }
}
