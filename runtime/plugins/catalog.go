package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sallyport/internal/coded"
)

// Kind says what a folder of the configuration is.
type Kind string

const (
	// Detect takes a folder with a manifest for a plugin and any other for a folder
	// of plugins.
	Detect Kind = ""
	// Many is a folder whose immediate children are plugins.
	Many Kind = "many"
	// One is a plugin itself.
	One Kind = "one"
)

// Folder is one place where plugins lie. It may not exist yet, and it may be a
// link.
type Folder struct {
	Path  string // absolute
	Label string // what people see: "~/.agents/plugins", "bundled"
	Kind  Kind
}

// Config is what a Catalog is made with. Only Folders is required.
type Config struct {
	// Folders are looked at in order; of two plugins with one name the first wins.
	Folders []Folder
	// Hand is the path of connectors.json; "" or no file: none.
	Hand string
	// Overlay is the operator's configuration by connector id, PLUGIN/SERVER.
	Overlay map[string]Overlay
	// Publisher says who signed the plugin that Sallyport installed at a root; nil and ""
	// are nobody.
	Publisher func(root string) (publisher, tree string)
	Logger    *slog.Logger
	// Poll is how often a watcher looks where it cannot be told; 0 is 1 s.
	Poll time.Duration
	// WatchBudget is how many directories a watcher may watch; 0 is 8192.
	WatchBudget int
}

// Catalog lists the plugins of its folders. It is safe for concurrent use.
type Catalog struct {
	config Config
	log    *slog.Logger

	scanning sync.Mutex
	cache    cache

	naming sync.Mutex
	named  map[string][]string // root → what its manifest names, for watchers
}

// New returns a catalog; it reads nothing yet.
func New(config Config) *Catalog {
	log := config.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Catalog{config: config, log: log, cache: cache{}}
}

// Listing is what one scan found. It is for reading: parts of it are shared
// with later listings.
type Listing struct {
	// Plugins in the order of the folders, then by folder name. Rejected and
	// shadowed ones are among them.
	Plugins []Plugin
	// Problems are those of folders and of entries that are no plugins.
	Problems []Problem
}

// Connectors returns every connector that has its id to itself, sorted by id:
// those of plugins that are neither rejected nor shadowed. Invalid ones are
// among them.
func (l *Listing) Connectors() []Connector {
	var all []Connector
	for _, p := range l.Plugins {
		if p.Invalid == nil {
			all = append(all, p.Connectors...)
		}
	}
	slices.SortFunc(all, func(a, b Connector) int {
		return cmp.Or(cmp.Compare(a.ID.Plugin, b.ID.Plugin), cmp.Compare(a.ID.Server, b.ID.Server))
	})
	return all
}

// Connector returns the connector with that id from the plugin that has the name.
func (l *Listing) Connector(id ID) (Connector, bool) {
	if p, ok := l.Plugin(id.Plugin); ok {
		return p.Connector(id)
	}
	return Connector{}, false
}

// Plugin returns the plugin that has the name: neither rejected nor shadowed.
func (l *Listing) Plugin(name string) (*Plugin, bool) {
	for i := range l.Plugins {
		if p := &l.Plugins[i]; p.Name == name && p.Invalid == nil {
			return p, true
		}
	}
	return nil, false
}

// found is a directory that may be a plugin.
type found struct {
	dir    string // resolved
	base   string // its name in the folder
	source string
	folder string
}

// Scan lists everything. An unchanged plugin is not read again. It returns an
// error only when ctx ends.
func (c *Catalog) Scan(ctx context.Context) (*Listing, error) {
	c.scanning.Lock()
	defer c.scanning.Unlock()
	listing := &Listing{}
	var candidates []found
	for _, folder := range c.config.Folders {
		inside, problems := look(folder)
		candidates = append(candidates, inside...)
		listing.Problems = append(listing.Problems, problems...)
	}
	loaded := make([]*Plugin, len(candidates))
	next := c.cache.successor()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	const batch = 32
	for start := 0; start < len(candidates); start += batch {
		group.Go(func() error {
			for i := start; i < min(start+batch, len(candidates)); i++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				loaded[i] = c.cache.load(candidates[i], next)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	c.cache = next.entries
	c.remember(loaded)
	if p := loadHand(c.config.Hand); p != nil {
		listing.Plugins = append(listing.Plugins, c.finish(*p, found{base: ByHand, source: HandFile}))
	}
	for i, p := range loaded {
		if p.Invalid != nil && p.Invalid.Code == "manifest-missing" {
			listing.Problems = append(listing.Problems, Problem{
				Code: "no-manifest", Path: candidates[i].source, Sentence: "the folder has no manifest of a plugin",
			})
			continue
		}
		listing.Plugins = append(listing.Plugins, c.finish(*p, candidates[i]))
	}
	listing.settleNames()
	c.unusedOverlays(listing)
	c.log.Debug("plugins scanned", "plugins", len(listing.Plugins), "read", next.read)
	return listing, nil
}

// remember keeps what manifests name beyond the usual places.
func (c *Catalog) remember(loaded []*Plugin) {
	named := map[string][]string{}
	for _, p := range loaded {
		if len(p.named) > 0 {
			named[p.Root] = p.named
		}
	}
	c.naming.Lock()
	defer c.naming.Unlock()
	c.named = named
}

func (c *Catalog) namedBy(dir string) []string {
	c.naming.Lock()
	defer c.naming.Unlock()
	return c.named[dir]
}

// finish puts on a loaded plugin what does not come from its files.
func (c *Catalog) finish(p Plugin, from found) Plugin {
	p.Source, p.Folder = from.source, from.folder
	if p.Invalid != nil {
		p.Name = from.base
	}
	p.Problems = slices.Clone(p.Problems)
	p.Connectors = slices.Clone(p.Connectors)
	for i, connector := range p.Connectors {
		connector.Source = p.Source
		if c.config.Publisher != nil {
			connector.Publisher, connector.SignedTree = c.config.Publisher(p.Root)
		}
		if overlay, ok := c.config.Overlay[connector.ID.String()]; ok {
			connector = overlay.apply(connector)
			if connector.Invalid != nil && connector.Invalid.Code == "overlay-invalid" {
				p.Problems = append(p.Problems, Problem{Code: "overlay-invalid", Path: "config.json", Sentence: connector.Invalid.Sentence})
			}
		}
		p.Connectors[i] = connector.settled()
	}
	return p
}

// unusedOverlays mentions what the operator wrote for a connector that is not
// there: a misspelt id must not pass in silence.
func (c *Catalog) unusedOverlays(l *Listing) {
	for _, id := range slices.Sorted(maps.Keys(c.config.Overlay)) {
		parsed, err := ParseID(id)
		if _, found := l.Connector(parsed); err != nil || !found {
			l.Problems = append(l.Problems, Problem{Code: "overlay-unused", Path: "config.json",
				Sentence: "the configuration names a connector " + show(id) + " that is not there"})
		}
	}
}

// settleNames lets the first plugin of a name have it and marks the others.
func (l *Listing) settleNames() {
	owner := map[string]string{ByHand: HandFile} // also while there is no such file
	for i := range l.Plugins {
		p := &l.Plugins[i]
		if p.Invalid != nil || p.Format == ByHand {
			continue
		}
		first, taken := owner[p.Name]
		if !taken {
			owner[p.Name] = p.Source
			continue
		}
		problem := Problem{Code: "name-taken", Path: p.Source,
			Sentence: fmt.Sprintf("the name %s belongs to the plugin in %s, so the one in %s is not used", p.Name, first, p.Source)}
		p.Problems = append(p.Problems, problem)
		p.Invalid = coded.New(problem.Code, problem.Sentence)
		p.Invalid.Next = "remove one of the two, or change the order of the folders"
		for j := range p.Connectors {
			p.Connectors[j].Invalid = p.Invalid
		}
	}
}

// look returns the directories of a folder that may be plugins. Hidden entries,
// files and a folder that does not exist are nothing to speak of.
func look(folder Folder) (inside []found, problems []Problem) {
	problem := func(code, path, sentence string) []Problem {
		return []Problem{{Code: code, Path: path, Sentence: sentence}}
	}
	dir, err := resolveDir(folder.Path)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, problem("folder-unreadable", folder.Label, "the folder "+reason(err))
	}
	if folder.Kind == One || folder.Kind == Detect && isPlugin(dir) {
		return []found{{dir: dir, base: filepath.Base(folder.Path), source: folder.Label, folder: folder.Label}}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, problem("folder-unreadable", folder.Label, "the folder "+reason(err))
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		path, source := filepath.Join(dir, name), folder.Label+"/"+name
		if entry.Type()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			if path, err = resolveDir(path); errors.Is(err, errKind) {
				continue
			} else if err != nil {
				problems = append(problems, problem("folder-unreadable", source, "the link "+reason(err))...)
				continue
			}
		} else if !entry.IsDir() {
			continue
		}
		inside = append(inside, found{dir: path, base: name, source: source, folder: folder.Label})
	}
	return inside, problems
}

func sortedProblems(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Sentence, b.Sentence))
	})
	return list
}
