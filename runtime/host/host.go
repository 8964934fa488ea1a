// Package host builds and owns everything below it, in one readable order.
//
// The one idea: a Host is a struct of parts, not a bag of methods. What a part
// can do is asked of the part; here stands only what needs several of them, such
// as trying out a plugin that was just allowed.
//
// Nothing under runtime imports it. api, cli, app and main do.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/browser"
	"sallyport/internal/coded"
	"sallyport/internal/filestamp"
	"sallyport/internal/loopback"
	"sallyport/runtime/approvals"
	"sallyport/runtime/artifact"
	"sallyport/runtime/audit"
	"sallyport/runtime/console"
	"sallyport/runtime/env"
	"sallyport/runtime/health"
	"sallyport/runtime/install"
	"sallyport/runtime/mcp"
	"sallyport/runtime/mcp/gateway"
	"sallyport/runtime/oauth"
	"sallyport/runtime/plugins"
	"sallyport/runtime/process"
	"sallyport/runtime/secrets"
	"sallyport/runtime/store"
	"sallyport/runtime/updates"
)

// Config says what a host is made of. Places and Version are required.
type Config struct {
	Places  Places
	Version string
	// Commit and Date are what Version was built from, and of when; "" if unknown.
	Commit, Date string
	Logger       *slog.Logger     // nil discards
	Now          func() time.Time // nil is time.Now
	// Environ is the environment that children take their part of; nil is the
	// process's own.
	Environ []string
	// Home is the user's home folder; "" asks the system.
	Home string
	// SecretsPassphrase opens an encrypted file in place of the keyring; nil asks
	// for a systemd credential, and takes the keyring where there is none.
	SecretsPassphrase []byte
	// Keyring is the system's, for secrets and the seal key; nil finds it by Environ.
	Keyring secrets.Backend
	// KeyWait is how long Open waits for a keyring that has the seal key; zero is a
	// moment. A command that lives no longer than its answer waits as long as a call to
	// the keyring may take.
	KeyWait time.Duration
	// Network is how connectors are dialled; the zero one is the system's.
	Network mcp.Network
	// Browser is how a person is shown an address; the zero one is the system's.
	Browser browser.Opener
	// Program is what starts at login; "" is this program. Temps are folders whose
	// programs do not last; nil asks the system.
	Program string
	Temps   []string
	// Updates is where releases are announced; the zero one is what this build knows.
	Updates updates.Source
}

// Tokens are the tokens of this installation's files.
type Tokens struct{ Operator, Companion string }

// Host is all the parts. Where Fault is not nil the store could not be opened:
// Store, Audit, Gate, Consoles, Pool and Gateway are then nil and nothing runs.
type Host struct {
	Places    Places
	Version   string
	Commit    string // what Version was built from; "" if unknown
	Date      string // of Commit, RFC 3339; "" if unknown
	Instance  string
	User      string // who answers
	StartedAt time.Time
	Tokens    Tokens
	HealthKey []byte

	Health    *health.Tracker
	Events    *Events
	Store     *store.DB
	Audit     *audit.Log
	Gate      *approvals.Gate
	Processes *process.Manager
	Consoles  *console.Consoles
	Snapshots *artifact.Snapshots
	Installer *install.Installer
	Secrets   *secrets.Store
	OAuth     *oauth.Book
	Pool      *mcp.Pool
	Gateway   *gateway.Gateway

	log    *slog.Logger
	now    func() time.Time
	home   string
	config Config
	fault  error
	lock   *loopback.Lock
	ctx    context.Context
	quit   context.CancelFunc
	work   sync.WaitGroup
	closed sync.Once
	err    error // of Close

	keys          *secrets.Store // the system's keyring, where the secrets are elsewhere
	keyed         chan struct{}  // closed when the keyring has answered once
	doubts        doubts
	started       atomic.Bool
	path          sharedPath
	catalog       atomic.Pointer[plugins.Catalog] // replaced when config.json changes
	configStamp   atomic.Pointer[filestamp.Stamp] // of the config.json that the catalog has
	times         atomic.Pointer[Times]           // that it says
	listing       listing
	configuring   sync.Mutex // one change of the operator's own files at a time
	catalogs      catalogs
	sessions      sessions
	starts        atomic.Pointer[chan plugins.ID]
	levels        levels
	budgets       lateTimers
	blocked       blocked
	changes       changes
	skills        skillBook
	installations installations
	tries         tries
	answering     sync.RWMutex // held for reading from an answer until it is carried out
	logins        logins
	notify        subscribers
	retaining     chan struct{} // the audit is to be bounded now

	writingHand sync.Mutex // one change of connectors.json at a time

	connecting sync.Mutex // one edit of another program's file at a time
	gateItems  struct {   // what reportGate has told health
		sync.Mutex
		reported map[gateItem]bool
	}
}

// Open takes the data folder and opens everything in it, in the order of the
// text. loopback.ErrHeld means that another instance has the folder. A store
// that cannot be used is no error: the host opens with a Fault and says so
// (spec/approval.md 5.5).
func Open(ctx context.Context, cfg Config) (*Host, error) {
	h := newHost(cfg)
	if err := h.takeFolders(); err != nil {
		return nil, err
	}
	if err := h.openParts(ctx); err != nil {
		return nil, errors.Join(err, h.Close(context.WithoutCancel(ctx)))
	}
	return h, nil
}

func newHost(cfg Config) *Host {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	if cfg.Home == "" {
		cfg.Home, _ = os.UserHomeDir()
	}
	h := &Host{
		Places: cfg.Places, Version: cfg.Version, Commit: cfg.Commit, Date: cfg.Date, Instance: loopback.NewInstance(), User: operator(), StartedAt: cfg.Now().UTC(),
		Health: health.NewTracker(), Events: newEvents(cfg.Now),
		log: cfg.Logger, now: cfg.Now, home: cfg.Home, config: cfg, retaining: make(chan struct{}, 1),
	}
	h.ctx, h.quit = context.WithCancel(context.Background())
	return h
}

func (h *Host) takeFolders() (err error) {
	if err := h.Places.create(); err != nil {
		return err
	}
	if h.lock, err = loopback.Acquire(h.Places.Data); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.lock.Release())
		}
	}()
	for _, dir := range []string{h.Places.State, h.Places.Keys()} {
		// What a killed write left behind; failing to remove it harms nothing.
		if err := atomicfile.Sweep(dir, time.Minute); err != nil {
			h.log.Warn("temporary files could not be removed", "error", err)
		}
	}
	if h.HealthKey, err = health.LoadKey(h.Places.State); err != nil {
		return err
	}
	if h.Tokens.Operator, err = ensureToken(h.Places.TokenFile("operator")); err != nil {
		return err
	}
	h.Tokens.Companion, err = ensureToken(h.Places.TokenFile("companion"))
	return err
}

func (h *Host) openParts(ctx context.Context) error {
	h.catalog.Store(h.newCatalog())
	h.path.start(h.ctx, h.config)
	if err := h.openStore(ctx); err != nil {
		return h.setFault(err)
	}
	if err := h.openSecrets(); err != nil {
		return err
	}
	if err := h.openGate(ctx); err != nil {
		return err
	}
	h.openLogins()
	if err := h.openProcesses(ctx); err != nil {
		return err
	}
	h.openConsoles()
	if err := h.openInstaller(ctx); err != nil {
		return err
	}
	h.Pool = mcp.NewPool(h.poolConfig())
	h.Gateway = gateway.New(gateway.Config{Backend: (*backend)(h), Client: clientOf, Version: h.Version, Log: h.log})
	h.work.Go(h.followGate)
	h.awaitKey(ctx)
	return nil
}

// openStore opens the database. The keys' folder tells whether there was one:
// a missing database is then a fault and no first start.
func (h *Host) openStore(ctx context.Context) (err error) {
	_, statErr := os.Stat(filepath.Join(h.Places.Keys(), "head.json"))
	h.Store, err = store.Open(ctx, store.Config{Path: h.Places.Database(), MustExist: statErr == nil, Logger: h.log})
	return err
}

func (h *Host) openGate(ctx context.Context) error {
	keeper, err := approvals.OpenKeeper(ctx, h.Places.Keys(), h.Store, h.keyring())
	if err != nil {
		return err
	}
	h.Audit, err = audit.Open(ctx, audit.Config{DB: h.Store, Head: keeper, Now: h.config.Now, Logger: h.log})
	if err != nil {
		return err
	}
	if h.Snapshots, err = artifact.OpenSnapshots(h.Places.Snapshots(), artifact.Options{}); err != nil {
		return err
	}
	cache, err := artifact.OpenCache(artifact.CacheConfig{Dir: h.Places.StatCache()})
	if err != nil {
		h.log.Warn("lists are digested in full: the stat cache cannot be used", "error", err)
		cache = nil
	}
	h.Gate, err = approvals.Open(ctx, approvals.Config{
		DB: h.Store, Audit: h.Audit, Snapshots: h.Snapshots, Cache: cache, Keeper: keeper,
		Connector: h.connector, ConnectorNow: h.connectorNow, Connectors: h.connectorIDs,
		Parent:      env.ParentOf(runtime.GOOS, h.config.Environ),
		UserPath:    h.path.wait,
		PluginData:  h.Places.PluginData,
		DecisionTTL: func() time.Duration { return h.Times().Question },
		Now:         h.config.Now, Logger: h.log,
	})
	if err == nil {
		h.fetchKey()
	}
	return err
}

// connectorNow is connector by a scan that begins now.
func (h *Host) connectorNow(id plugins.ID) (plugins.Connector, bool) {
	found, err := h.scan(h.ctx, 0)
	if err != nil {
		return plugins.Connector{}, false
	}
	return found.Connector(id)
}

// openProcesses ends what a crashed host left behind before anything new starts.
func (h *Host) openProcesses(ctx context.Context) (err error) {
	shim, err := process.Shim()
	if err != nil {
		return fmt.Errorf("cannot find this program, which starts the others: %w", err)
	}
	h.Processes, err = process.New(process.Config{StateDir: h.Places.State, Secrets: recordedSecrets{h.Audit, h.Secrets, &h.changes}, Shim: shim, Logger: h.log})
	if err != nil {
		return err
	}
	report, err := h.Processes.Sweep(ctx)
	if err != nil {
		return fmt.Errorf("cannot end what an earlier run left behind: %w", err)
	}
	h.reportSweep(report)
	return nil
}

// Fault says why the store could not be opened, or nil.
func (h *Host) Fault() error { return h.fault }

// setFault keeps a store's refusal as the host's fault; any other error is one
// of opening.
func (h *Host) setFault(err error) error {
	code := health.Code(coded.Of(err))
	switch code {
	case health.StoreUnreadable, health.StoreDamaged, health.StoreNewer, health.StoreMissing:
		h.fault = err
		h.log.Error("the store cannot be used; nothing will start", "code", string(code))
		h.Health.Set(code, "", nil)
		return nil
	}
	return err
}

// Start begins what a served host does by itself: scans, watches, sweeps. A host
// that is opened for one command does without.
func (h *Host) Start() {
	h.Health.Clear(health.Starting, "")
	if h.fault != nil {
		return
	}
	h.started.Store(true)
	h.reportGate()
	h.work.Go(h.follow)
	h.work.Go(h.housekeeping)
	h.work.Go(h.watchPrograms)
}

// Context ends when the host is told to quit.
func (h *Host) Context() context.Context { return h.ctx }

// Quit ends what is in flight; Close is still needed.
func (h *Host) Quit() { h.quit() }

// Close stops every child, writes what is queued and gives the folder back.
// Further calls return what the first did.
func (h *Host) Close(ctx context.Context) error {
	h.closed.Do(func() { h.err = h.close(ctx) })
	return h.err
}

// auditGrace is how long Close tries to write what is queued. On a full disk that
// would be for ever; what is lost then is counted, and is the error.
const auditGrace = 3 * time.Second

func (h *Host) close(ctx context.Context) error {
	h.quit()
	h.sessions.end()
	h.budgets.end()
	if h.Consoles != nil {
		h.work.Go(func() { h.Consoles.Close(ctx) })
	}
	var errs []error
	if h.Gateway != nil {
		errs = append(errs, h.Gateway.Close())
	}
	if h.Pool != nil {
		errs = append(errs, h.Pool.Close(ctx))
	}
	if h.Gate != nil {
		errs = append(errs, h.Gate.Close())
	}
	h.work.Wait()
	h.path.stop()
	if h.Processes != nil {
		errs = append(errs, h.Processes.Close(ctx))
	}
	if h.Secrets != nil {
		errs = append(errs, h.Secrets.Close())
	}
	if h.keys != nil {
		errs = append(errs, h.keys.Close())
	}
	if h.Audit != nil {
		writing, cancel := context.WithTimeout(ctx, auditGrace)
		errs = append(errs, h.Audit.Close(writing))
		cancel()
	}
	if h.Store != nil {
		errs = append(errs, h.Store.Close())
	}
	h.Health.Close()
	if h.lock != nil {
		errs = append(errs, h.lock.Release())
	}
	return errors.Join(errs...)
}

// operator is the operating-system user that answers, for decisions and audit.
func operator() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}
