// Package install brings a plugin from a source to a staged, digested bundle, and
// a staged bundle into the plugins folder.
//
// The one idea: what was reviewed is what is activated. A source (a folder, an
// archive, an npm package of an exact version, a commit of a local git
// repository) is copied into a private folder once; that copy is what is read,
// digested and asked about, and after the answer it is digested again and moved,
// never fetched again.
//
// It decides nothing and runs nothing of a plugin. It runs two programs, npm and
// git, with fixed arguments, scripts and hooks off (spec/approval.md 5.4a).
// Where a bundle came from is kept beside it, never inside, so that the digest is
// the bundle's alone.
//
// approvals, host and what stands above import it.
package install

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sallyport/internal/owneronly"
	"sallyport/runtime/artifact"
)

// Config says where things lie. The four folders are required and must be on one
// file system; they are made when they are missing.
type Config struct {
	Staging  string // bundles that wait for an answer
	Plugins  string // the active bundle of each name
	Previous string // the bundle before it, for Undo
	Info     string // where each came from
	// Home is the user's home folder, which is written as ~.
	Home string
	// Limits of a bundle; zero fields are the product policy.
	Limits artifact.Limits
	// Path gives the PATH on which npm, node and git are looked for; nil takes the
	// one of Environ.
	Path func(context.Context) (string, error)
	// Environ is the environment that helpers get their proxies and certificates
	// from; nil is the process's own.
	Environ []string
	// Registry is where npm packages come from; "" is the public one.
	Registry string
	Now      func() time.Time // nil is time.Now
	Logger   *slog.Logger     // nil discards
}

// Installer stages and activates. It is safe for concurrent use.
type Installer struct {
	config Config
	log    *slog.Logger
	now    func() time.Time

	shelves sync.Mutex // one change of the plugins folder at a time

	mu     sync.Mutex
	active map[string]bool // staging folders that are being filled

	// hook is called at every step that a kill could end (tests only).
	hook func(step string)
}

// New returns an installer and makes its folders.
func New(config Config) (*Installer, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Environ == nil {
		config.Environ = os.Environ()
	}
	if config.Registry == "" {
		config.Registry = "https://registry.npmjs.org/"
	}
	for _, folder := range []string{config.Staging, config.Plugins, config.Previous, config.Info} {
		if err := owneronly.Folder(folder); err != nil {
			return nil, err
		}
	}
	return &Installer{config: config, log: config.Logger, now: config.Now, active: map[string]bool{}}, nil
}

// Step is what Stage is doing, and how far it has come.
type Step struct {
	// Doing is "reading", "unpacking", "resolving", "fetching", "checking" or
	// "digesting".
	Doing   string
	Entries int
	Bytes   int64
}

// label writes a path for people: the home folder as ~.
func (i *Installer) label(path string) string {
	if rest, ok := strings.CutPrefix(path, i.config.Home+string(filepath.Separator)); ok && i.config.Home != "" {
		return "~/" + filepath.ToSlash(rest)
	}
	return path
}

func (i *Installer) at(step string) {
	if i.hook != nil {
		i.hook(step)
	}
}
