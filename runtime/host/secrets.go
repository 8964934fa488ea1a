package host

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/env"
	"sallyport/runtime/health"
	"sallyport/runtime/plugins"
	"sallyport/runtime/secrets"
	"sallyport/runtime/store"
)

// openSecrets prepares the keyring; nothing of it is asked yet. An encrypted file
// takes its place only where the operator gave a passphrase for one. The seal key is
// no secret of the operator's: it stays out of that file.
func (h *Host) openSecrets() error {
	file, err := h.secretsFile()
	if err != nil {
		return err
	}
	keyring := h.systemKeyring()
	h.keys = h.secretsIn(keyring, 0)
	if h.Secrets = h.keys; file != nil {
		h.Secrets = h.secretsIn(file, fileLimit)
	}
	return nil
}

// fileLimit bounds a call to the encrypted file. It is no other program that could hang:
// what takes long is the work that makes its passphrase hard to guess, once a run, and
// that is a second on an idle computer and many on a busy one.
const fileLimit = time.Minute

// secretsIn bounds a backend; zero is the limit of a keyring.
func (h *Host) secretsIn(backend secrets.Backend, limit time.Duration) *secrets.Store {
	return secrets.Open(secrets.Config{Backend: backend, Timeout: limit, Names: secretNames{h.Store}, Now: h.config.Now, Logger: h.log,
		Getenv: envOf(h.config.Environ)})
}

// secretsFile is the encrypted file, or nil where the operator chose none.
func (h *Host) secretsFile() (secrets.Backend, error) {
	passphrase := h.config.SecretsPassphrase
	if passphrase == nil {
		var err error
		passphrase, err = secrets.PassphraseFromCredential(os.Getenv("CREDENTIALS_DIRECTORY"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if passphrase == nil {
		return nil, nil //nolint:nilnil // no file was chosen, which is no error
	}
	return secrets.NewFile(secrets.FileConfig{Path: h.Places.SecretsFile(), Passphrase: passphrase}), nil
}

func (h *Host) systemKeyring() secrets.Backend {
	if h.config.Keyring != nil {
		return h.config.Keyring
	}
	return secrets.SystemKeyring(secrets.KeyringConfig{Service: keyringService(h.Places), Getenv: envOf(h.config.Environ)})
}

// envOf is os.Getenv of another environment.
func envOf(environ []string) func(string) string {
	return func(name string) string {
		for _, pair := range slices.Backward(environ) {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// keyringService keeps installations in places of their own from sharing values.
func keyringService(p Places) string {
	if p == StandardPlaces() {
		return "Sallyport"
	}
	sum := sha256.Sum256([]byte(p.Data))
	return "Sallyport " + hex.EncodeToString(sum[:6])
}

// SetSecret keeps a value under a name, on record first, and restarts what uses
// it.
func (h *Host) SetSecret(ctx context.Context, name string, value []byte, by approvals.By) error {
	return h.changeSecret(ctx, audit.SecretSet, name, by, func() error { return h.Secrets.Set(ctx, name, value) })
}

// DeleteSecret forgets a value; what uses it is stopped.
func (h *Host) DeleteSecret(ctx context.Context, name string, by approvals.By) error {
	return h.changeSecret(ctx, audit.SecretDelete, name, by, func() error { return h.Secrets.Delete(ctx, name) })
}

// changeSecret is on record before it is made, and once more where it failed. What
// follows a change is done even if whoever asked has gone.
func (h *Host) changeSecret(ctx context.Context, action, name string, by approvals.By, change func() error) error {
	if err := checkSecretName(name); err != nil {
		return err // before the record, which would keep what was pasted here for good
	}
	record := audit.Record{Action: action, Result: audit.OK, Actor: by.User, Via: by.Via, Target: name}
	if _, err := h.Audit.Append(ctx, record); err != nil {
		return err
	}
	err := change()
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		record.Result, record.Reason = audit.Failed, coded.Of(err)
		_, recordErr := h.Audit.Append(ctx, record)
		if inDoubt(err) {
			h.settleLater(name)
		}
		return errors.Join(err, recordErr)
	}
	h.secretChanged(ctx, name)
	return nil
}

// checkSecretName refuses what is no name, and what looks like a value that was
// pasted where the name belongs.
func checkSecretName(name string) error {
	if err := secrets.CheckName(name); err != nil {
		return err
	}
	if env.CheckLiteral("", name) != nil {
		return &coded.Error{Code: "secret-name-invalid", Sentence: "that looks like a value and not like its name",
			Next: "name it first (sallyport secrets set NAME); the value is asked for, or read from stdin"}
	}
	return nil
}

// secretChanged stops every server that was started with the old value; the next
// call starts it with the new one. What is being started is stopped when it has
// (stopIfStale).
func (h *Host) secretChanged(ctx context.Context, name string) {
	h.changes.note(name)
	for id := range h.RunningIDs() {
		session, ok := h.Pool.Live(id)
		if !ok {
			continue
		}
		launch, err := session.Grant().Launch()
		if err != nil || !slices.Contains(launch.Permissions.Secrets, name) {
			continue
		}
		if err := h.Pool.Stop(ctx, id, secretChangedError()); err != nil {
			h.log.Error("a server could not be restarted with a new secret", "connector", id.String(), "error", err)
		}
	}
	h.closeConsolesWith(ctx, name)
	h.unblock(0)
	h.Events.add("secrets", name, "")
}

// blockedFor is how long a connector that lacks a secret is not tried again: a
// keyring may be unlocked meanwhile, and nobody tells.
const blockedFor = 30 * time.Second

// blocked are the connectors that lack a secret, and since when.
type blocked struct {
	mu    sync.Mutex
	since map[plugins.ID]time.Time
}

// startFailed blocks a connector whose start failed for want of a secret, and
// only that one.
func (h *Host) startFailed(id plugins.ID, err error) {
	var why *coded.Error
	if !errors.As(err, &why) || !strings.HasPrefix(why.Code, "secret") && !strings.HasPrefix(why.Code, "keyring-") {
		return
	}
	h.blocked.mu.Lock()
	if h.blocked.since == nil {
		h.blocked.since = map[plugins.ID]time.Time{}
	}
	h.blocked.since[id] = time.Now()
	h.blocked.mu.Unlock()
	h.Gate.Block(id, why)
}

// unblock lets those be tried again that have been blocked for so long.
func (h *Host) unblock(after time.Duration) {
	h.blocked.mu.Lock()
	var ready []plugins.ID
	for id, since := range h.blocked.since {
		if time.Since(since) >= after {
			ready = append(ready, id)
			delete(h.blocked.since, id)
		}
	}
	h.blocked.mu.Unlock()
	for _, id := range ready {
		h.Gate.Unpark(id)
	}
}

// reportSecrets tells how the keyring is, as far as somebody asked it.
func (h *Host) reportSecrets() {
	state := h.Secrets.State(h.ctx)
	switch state.Status {
	case secrets.OK, secrets.NotAsked:
		h.Health.Clear(health.SecretsUnavailable, "")
	default:
		h.Health.Set(health.SecretsUnavailable, "", nil)
	}
}

// stopIfStale stops a server that has just started if a secret was changed after
// its start had read it: secretChanged did not find it running yet.
func (h *Host) stopIfStale(id plugins.ID) {
	if start := h.changes.started(id); start == nil || !h.changes.after(start) {
		return
	}
	if err := h.Pool.Stop(h.ctx, id, secretChangedError()); err != nil && h.ctx.Err() == nil {
		h.log.Error("a server could not be restarted with a new secret", "connector", id.String(), "error", err)
	}
}

func secretChangedError() *coded.Error {
	return &coded.Error{Code: "secret-changed", Sentence: "a secret that it uses was changed", Next: "try again"}
}

// changes counts the changes of each secret, so that a start which read a value
// before one can be told from a start which read it after.
type changes struct {
	mu     sync.Mutex
	counts map[string]int
	starts map[plugins.ID]*oneStart // the last one of each connector
}

func (c *changes) note(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[name]++
}

func (c *changes) count(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[name]
}

func (c *changes) begin(start *oneStart) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.starts == nil {
		c.starts = map[plugins.ID]*oneStart{}
	}
	c.starts[start.id] = start
}

func (c *changes) started(id plugins.ID) *oneStart {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts[id]
}

// after reports whether a secret was changed after start had begun to read it.
func (c *changes) after(start *oneStart) bool {
	start.mu.Lock()
	defer start.mu.Unlock()
	for name, count := range start.counts {
		if c.count(name) != count {
			return true
		}
	}
	return false
}

type startKey struct{}

// oneStart is what one start has read: a value is read once for it and put on
// record once, however often it is asked for.
type oneStart struct {
	id plugins.ID

	mu     sync.Mutex
	counts map[string]int // of changes, when a name was first asked for
}

// forStart says whose start secrets are read for. The values are kept by the context
// only, which ends with the start.
func (h *Host) forStart(ctx context.Context, id plugins.ID, probe bool) context.Context {
	start := &oneStart{id: id, counts: map[string]int{}}
	if !probe {
		h.changes.begin(start)
	}
	return context.WithValue(ctx, startKey{}, &reading{start, map[string]string{}})
}

// reading is a start while it goes on.
type reading struct {
	*oneStart
	values map[string]string // guarded by oneStart.mu
}

// recordedSecrets gives values to env and puts each use on record first: the name,
// never the value.
type recordedSecrets struct {
	audit   *audit.Log
	secrets *secrets.Store
	changes *changes
}

// Secret returns the value of a name at the moment of a start.
func (s recordedSecrets) Secret(ctx context.Context, name string) (string, error) {
	start, ok := ctx.Value(startKey{}).(*reading)
	if !ok {
		return "", coded.New("secret-unavailable", "a secret is read for a start only")
	}
	start.mu.Lock()
	defer start.mu.Unlock()
	if value, known := start.values[name]; known {
		return value, nil
	}
	if _, asked := start.counts[name]; !asked {
		start.counts[name] = s.changes.count(name)
	}
	record := audit.Record{Action: audit.SecretUse, Result: audit.OK, Actor: "sallyport", Via: approvals.ViaSallyport,
		Target: name, Plugin: start.id.Plugin, Binding: start.id.Server}
	value, err := s.secrets.Secret(ctx, name)
	if err != nil {
		record.Result, record.Reason = audit.Refused, coded.Of(err)
	}
	if _, recordErr := s.audit.Append(ctx, record); recordErr != nil {
		return "", errors.Join(err, recordErr)
	}
	if err == nil {
		start.values[name] = value
	}
	return value, err
}

// secretNames keeps the list of names in the database: the keyring has none. It
// grants nothing, so it is not sealed.
type secretNames struct{ db *store.DB }

const secretNamesKey = "secret-names"

func (n secretNames) Names(ctx context.Context) (names []secrets.Name, err error) {
	err = n.db.View(ctx, func(tx *sql.Tx) error {
		names, err = readSecretNames(ctx, tx)
		return err
	})
	return names, err
}

func readSecretNames(ctx context.Context, tx *sql.Tx) ([]secrets.Name, error) {
	var raw []byte
	err := tx.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", secretNamesKey).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	var names []secrets.Name
	if err == nil {
		err = json.Unmarshal(raw, &names)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the names of the secrets: %w", err)
	}
	return names, nil
}

func (n secretNames) change(ctx context.Context, change func([]secrets.Name) []secrets.Name) error {
	return n.db.Update(ctx, func(tx *sql.Tx) error {
		names, err := readSecretNames(ctx, tx)
		if err != nil {
			return err
		}
		names = change(names)
		slices.SortFunc(names, func(a, b secrets.Name) int { return strings.Compare(a.Name, b.Name) })
		raw, err := json.Marshal(names)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", secretNamesKey, raw)
		return err
	})
}

// Put adds a name or gives it another time.
func (n secretNames) Put(ctx context.Context, name secrets.Name) error {
	name.SetAt = name.SetAt.UTC().Truncate(time.Second)
	return n.change(ctx, func(names []secrets.Name) []secrets.Name {
		return append(without(names, name.Name), name)
	})
}

// Drop removes a name; one that is not there is no error.
func (n secretNames) Drop(ctx context.Context, name string) error {
	return n.change(ctx, func(names []secrets.Name) []secrets.Name { return without(names, name) })
}

func without(names []secrets.Name, name string) []secrets.Name {
	return slices.DeleteFunc(names, func(n secrets.Name) bool { return n.Name == name })
}
