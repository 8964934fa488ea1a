package approvals

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/audit"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
	"sallyport/runtime/store"
)

// DefaultDecisionTTL is how long a question waits for an answer.
const DefaultDecisionTTL = 10 * time.Minute

// Config says what a Gate works with. Fields are required unless they say what
// their zero value means.
type Config struct {
	DB        *store.DB
	Audit     *audit.Log
	Snapshots *artifact.Snapshots
	// Cache serves lists; nil digests in full every time.
	Cache *artifact.Cache
	// Connector returns a connector as it is declared on disk now. It is called
	// without any lock of the gate's.
	Connector func(plugins.ID) (plugins.Connector, bool)
	// ConnectorNow is Connector by a look at the disk that begins now, for questions
	// and starts, so that a refusal names every field that changed; nil takes
	// Connector, which may be a moment old.
	ConnectorNow func(plugins.ID) (plugins.Connector, bool)
	// Connectors lists those on disk now, for Statuses; may be nil.
	Connectors func() []plugins.ID
	Parent     env.Parent
	// UserPath returns the user's PATH, for questions; nil takes the parent's.
	UserPath func(context.Context) (string, error)
	// PluginData returns PLUGIN_DATA of a plugin, absolute.
	PluginData func(plugin string) string
	// Keeper holds the seal key and the sealed head. Where it is nil, one is opened
	// in KeyDir, which is not the database's folder.
	Keeper *Keeper
	KeyDir string
	Now    func() time.Time // nil: time.Now
	// DecisionTTL is how long a question waits that is asked now; nil: DefaultDecisionTTL.
	DecisionTTL func() time.Duration
	// CallTTL is how long a call waits for one; zero: DefaultCallTTL.
	CallTTL time.Duration
	Logger  *slog.Logger // may be nil
}

// Gate decides what may run. It is the only maker of grants. All methods may be
// called concurrently.
type Gate struct {
	cfg      Config
	resolver Resolver
	keeper   *Keeper
	log      *slog.Logger

	// clients is read by every call, without the lock.
	clients atomic.Pointer[map[string]*client]
	policy  atomic.Pointer[policy] // as clients
	scopes  atomic.Uint64          // counts changes of clients

	// collecting is held for writing while snapshots are dropped, and for reading
	// while one is made that the set of those to keep may not have yet.
	collecting sync.RWMutex

	// mu is held while a change is decided, written and taken over, never while
	// files are read.
	mu        sync.Mutex
	closed    bool
	docs      *documents
	records   map[plugins.ID]*record
	decisions map[string]*Decision
	answering map[string]bool         // decisions whose answer is being checked
	lives     map[plugins.ID]*life    // of approved connectors
	probes    map[string]*probe       // by decision
	trouble   map[plugins.ID]*trouble // parked and blocked
	failures  map[plugins.ID]failure  // why the last attempt came to nothing
	subs      map[int]chan Event
	nextSub   int
	waiting   map[string]*callWait // calls that wait, by decision
	unused    map[string]unused    // allowed calls that were not made yet, by decision
	sessions  sessionTokens
}

// life is what all grants of one approval have in common: their end.
type life struct {
	ctx context.Context
	end context.CancelCauseFunc
}

func newLife() *life {
	ctx, end := context.WithCancelCause(context.Background())
	return &life{ctx, end}
}

// trouble is a state that the supervisor sets.
type trouble struct {
	state State
	why   *coded.Error
}

// failure is why the last attempt at an identity came to nothing.
type failure struct {
	identity Identity
	why      *coded.Error
}

// Open opens the gate. It fails only where the store cannot be read; records
// that do not verify open as not approved (spec/approval.md 5.4). Decisions that
// were being tried when Sallyport ended are closed.
func Open(ctx context.Context, cfg Config) (*Gate, error) {
	g := &Gate{
		cfg: cfg, log: cfg.Logger, keeper: cfg.Keeper,
		resolver:  Resolver{Parent: cfg.Parent, PluginData: cfg.PluginData, Cache: cfg.Cache},
		answering: map[string]bool{}, lives: map[plugins.ID]*life{}, probes: map[string]*probe{},
		waiting: map[string]*callWait{}, unused: map[string]unused{},
		trouble: map[plugins.ID]*trouble{}, failures: map[plugins.ID]failure{}, subs: map[int]chan Event{},
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if g.cfg.Now == nil {
		g.cfg.Now = time.Now
	}
	if g.cfg.DecisionTTL == nil {
		g.cfg.DecisionTTL = func() time.Duration { return DefaultDecisionTTL }
	}
	if g.cfg.CallTTL <= 0 {
		g.cfg.CallTTL = DefaultCallTTL
	}
	var err error
	if g.keeper == nil {
		if g.keeper, err = OpenKeeper(ctx, cfg.KeyDir, cfg.DB, nil); err != nil {
			return nil, fmt.Errorf("cannot open the approvals: %w", err)
		}
	}
	if g.docs, err = openDocuments(ctx, cfg.DB, g.keeper); err != nil {
		return nil, err
	}
	g.sessions.init()
	g.takeOver()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.settleProbes(ctx); err != nil {
		return nil, err
	}
	if err := g.interruptCalls(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// Close ends every grant and stops all subscriptions. The store stays open: it
// belongs to whoever opened it.
func (g *Gate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	why := coded.New("closing", "Sallyport is closing")
	for decision := range g.waiting {
		g.wake(decision, DecisionInterrupted, "") // on disk when it is opened again
	}
	for id, l := range g.lives {
		l.end(why)
		delete(g.lives, id)
	}
	for id, p := range g.probes {
		p.life.end(why)
		delete(g.probes, id)
	}
	for n, sub := range g.subs {
		close(sub)
		delete(g.subs, n)
	}
	return nil
}

// takeOver decodes the documents that count.
func (g *Gate) takeOver() {
	g.records, g.decisions = map[plugins.ID]*record{}, map[string]*Decision{}
	for key := range g.docs.rows {
		g.takeOverRow(key)
	}
	g.takeOverClients()
	g.takeOverPolicy()
}

func (g *Gate) takeOverRow(key docKey) {
	body, ok, problem := g.docs.get(key.kind, key.id)
	switch key.kind {
	case settingKind:
		if key.id == policyID {
			g.takeOverPolicy()
		}
	case approvalKind:
		id := parseID(key.id)
		delete(g.records, id)
		if !ok || problem != nil {
			return
		}
		if r, problem := decodeRecord(body); problem == nil && (plugins.ID{Plugin: r.Plugin, Server: r.Server}) == id {
			g.records[id] = r
		}
	case decisionKind:
		delete(g.decisions, key.id)
		if !ok || problem != nil {
			return
		}
		if d, err := decodeDecision(body); err == nil && d.ID == key.id && (d.Kind == KindCall) == (d.Call != nil) && (d.Stage == StageBundle) == (d.Bundle != nil) {
			g.decisions[key.id] = d
			if !d.Open() {
				g.wake(d.ID, d.State, d.Code)
			}
		}
	}
}

// transaction is one change of the store: documents, journal and audit are
// written together or not at all, before anything takes effect
// (spec/audit.md 3).
type transaction struct {
	batch   batch
	journal []journalLine
	audit   []audit.Record
}

func newTransaction() *transaction { return &transaction{batch: batch{}} }

type journalLine struct {
	decision, event string
	by              By
	detail          string
}

func (t *transaction) note(decision, event string, by By, detail string) {
	t.journal = append(t.journal, journalLine{decision, event, by, detail})
}

func (t *transaction) putRecord(id plugins.ID, r *record) error {
	return t.batch.put(approvalKind, id.String(), r)
}

func (t *transaction) putDecision(d *Decision) error { return t.batch.put(decisionKind, d.ID, d) }

// commit writes t and then takes it over in memory. g.mu is held.
func (g *Gate) commit(ctx context.Context, t *transaction) error {
	if g.closed {
		return coded.New("closing", "Sallyport is closing")
	}
	at := g.now()
	var apply func()
	err := g.cfg.DB.Update(ctx, func(tx *sql.Tx) (err error) {
		if len(t.batch) > 0 {
			if apply, err = g.docs.write(ctx, tx, t.batch); err != nil {
				return err
			}
		}
		for _, line := range t.journal {
			if err := writeJournal(ctx, tx, at, line); err != nil {
				return err
			}
		}
		for _, record := range t.audit {
			if _, err := g.cfg.Audit.AppendTx(tx, record); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot record the change, so nothing was changed: %w", err)
	}
	if apply == nil {
		return nil
	}
	apply()
	for key := range t.batch {
		g.takeOverRow(key)
	}
	// A head that lags behind is what a crash here leaves too: it catches up.
	if err := g.docs.saveHead(); err != nil {
		g.log.Error("the sealed head cannot be written", "error", err)
	}
	return nil
}

// now is the present time in UTC.
func (g *Gate) now() time.Time { return g.cfg.Now().UTC() }

// past returns t, or now where t lies in the future: a clock that went back must
// not make a thing last longer (C80).
func (g *Gate) past(t time.Time) time.Time {
	if now := g.now(); t.After(now) {
		return now
	}
	return t
}

// auditOf makes the record of what by did to a connector.
func (g *Gate) auditOf(action, result string, id plugins.ID, by By) audit.Record {
	return audit.Record{Action: action, Result: result, Plugin: id.Plugin, Binding: id.Server, Actor: by.User, Via: by.Via}
}

// endLife ends the grants of a connector with a reason. g.mu is held.
func (g *Gate) endLife(id plugins.ID, why *coded.Error) {
	if l := g.lives[id]; l != nil {
		l.end(why)
		delete(g.lives, id)
	}
}

// endProbe ends the grant that a decision's first try has. g.mu is held.
func (g *Gate) endProbe(decision string, why *coded.Error) {
	if p := g.probes[decision]; p != nil {
		p.life.end(why)
		delete(g.probes, decision)
	}
}

// Problems lists why sealed records do not count, for health: the codes
// seal-key-missing, approval-rolled-back, approval-tampered and their like; and
// seal-key-open, with which they do count.
func (g *Gate) Problems() []*coded.Error {
	open := g.keeper.exposed()
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.docs.problems()
	if open != nil {
		all = append(all, open)
	}
	return all
}

func parseID(s string) plugins.ID {
	for i := range len(s) {
		if s[i] == '/' {
			return plugins.ID{Plugin: s[:i], Server: s[i+1:]}
		}
	}
	return plugins.ID{Plugin: s}
}
