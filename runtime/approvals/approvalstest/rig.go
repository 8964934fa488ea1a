// Package approvalstest makes a real gate in temporary folders, for tests of
// what needs a grant.
//
// The one idea: only approvals makes grants, so a test walks the way a person
// does: write a plugin, ask, answer, probe, choose tools. Rig does that in one
// line and lets a test stop at any step.
//
// Tests only. process, mcp, gateway and host may import it from _test files.
package approvalstest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"sallyport/runtime/approvals"
	"sallyport/runtime/artifact"
	"sallyport/runtime/audit"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
	"sallyport/runtime/store"
)

// Operator is who answers in a Rig.
var Operator = approvals.By{User: "tester", Via: approvals.ViaCLI}

// Client is a client that every Rig has, with the scope All.
const Client = "test"

// Rig is a gate and everything under it. Its plugin is "demo" with one stdio
// server "main", in Root.
type Rig struct {
	Gate      *approvals.Gate
	DB        *store.DB
	Audit     *audit.Log
	Keeper    *approvals.Keeper
	Snapshots *artifact.Snapshots
	Clock     *Clock
	Dir       string // everything is below it
	Root      string // the plugin's folder
	ID        plugins.ID
	// Keyring is for the next Open; nil keeps the seal key in a file.
	Keyring approvals.Keyring

	t      testing.TB
	log    *slog.Logger
	mu     sync.Mutex
	edits  []func(*plugins.Connector)
	parent env.Parent
}

// New returns a Rig whose plugin starts "node server.js" and is not approved. On
// the way it writes a stand-in for node, which no system can execute, into the
// folder "bin"; "early" stands before it on the PATH. A test that starts something
// changes the command, see Edit.
func New(t testing.TB) *Rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	r := &Rig{
		t: t, Dir: dir, Root: filepath.Join(dir, "demo"), ID: plugins.ID{Plugin: "demo", Server: "main"},
		Clock: &Clock{now: time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)}, log: slog.New(slog.DiscardHandler),
	}
	for _, name := range []string{"demo", "data", "keys", "early", "bin"} {
		must(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	r.parent = env.Parent{System: runtime.GOOS, Vars: map[string]string{
		"PATH": filepath.Join(dir, "early") + string(filepath.ListSeparator) + filepath.Join(dir, "bin"), "HOME": dir,
	}}
	r.WriteOutside("bin/"+programName("node"), "stand-in for node\n", 0o755)
	r.Bundle("node", "${PLUGIN_ROOT}/server.js")
	r.Write("server.js", "// version one\nconsole.log('hello')\n", 0o644)
	r.Open()
	_, err = r.Gate.AddClient(t.Context(), Client, approvals.Scope{All: true}, Operator)
	must(t, err)
	t.Cleanup(r.Close)
	t.Cleanup(func() { makeWritable(filepath.Join(dir, "data")) })
	return r
}

func programName(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// makeWritable lets the temporary folder be removed: snapshots are read-only.
func makeWritable(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
}

// Open opens store, audit and gate; New has done so already.
func (r *Rig) Open() {
	r.t.Helper()
	must(r.t, r.TryOpen())
}

// TryOpen is Open for a test that expects a refusal.
func (r *Rig) TryOpen() error {
	ctx := context.Background()
	var err error
	if r.DB, err = store.Open(ctx, store.Config{Path: r.Database()}); err != nil {
		return err
	}
	if r.Keeper, err = approvals.OpenKeeper(ctx, r.Keys(), r.DB, r.Keyring); err != nil {
		return err
	}
	if r.Audit, err = audit.Open(ctx, audit.Config{DB: r.DB, Head: r.Keeper, Now: r.Clock.Now}); err != nil {
		return err
	}
	if r.Snapshots, err = artifact.OpenSnapshots(filepath.Join(r.Dir, "data", "snapshots"), artifact.Options{}); err != nil {
		return err
	}
	cache, err := artifact.OpenCache(artifact.CacheConfig{Dir: filepath.Join(r.Dir, "data", "cache")})
	if err != nil {
		return err
	}
	r.Gate, err = approvals.Open(ctx, approvals.Config{
		DB: r.DB, Audit: r.Audit, Snapshots: r.Snapshots, Cache: cache, Keeper: r.Keeper,
		Connector: r.Connector, Connectors: func() []plugins.ID { return []plugins.ID{r.ID} },
		Parent: r.parent, PluginData: r.PluginData, Now: r.Clock.Now, Logger: r.log,
	})
	return err
}

// Database is the path of the store's file.
func (r *Rig) Database() string { return filepath.Join(r.Dir, "data", "sallyport.db") }

// Keys is the folder of the seal key and the sealed head.
func (r *Rig) Keys() string { return filepath.Join(r.Dir, "keys") }

// PluginData is PLUGIN_DATA of a plugin.
func (r *Rig) PluginData(plugin string) string { return filepath.Join(r.Dir, "plugin-data", plugin) }

// Close closes everything; a second call does nothing.
func (r *Rig) Close() {
	if r.Gate != nil {
		r.Gate.Close()
		r.Gate = nil
	}
	if r.Audit != nil {
		r.Audit.Close(context.Background())
		r.Audit = nil
	}
	if r.DB != nil {
		r.DB.Close()
		r.DB = nil
	}
}

// Reopen is a restart of Sallyport.
func (r *Rig) Reopen() {
	r.t.Helper()
	r.Close()
	r.Open()
}

// Connector reads the plugin from disk and applies the edits.
func (r *Rig) Connector(id plugins.ID) (plugins.Connector, bool) {
	p, err := plugins.Load(context.Background(), r.Root)
	if err != nil {
		return plugins.Connector{}, false
	}
	c, ok := p.Connector(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, edit := range r.edits {
		edit(&c)
	}
	return c, ok
}

// Edit changes the declared connector from now on, as an operator's overlay or
// another manifest would.
func (r *Rig) Edit(edit func(*plugins.Connector)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.edits = append(r.edits, edit)
}

// Bundle writes manifest and server list of the plugin. The command is a bare
// name or ./path; for an absolute one use Edit.
func (r *Rig) Bundle(command string, args ...string) {
	r.t.Helper()
	if args == nil {
		args = []string{}
	}
	r.WriteJSON("plugin.json", map[string]any{
		"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json",
		"name":    "demo", "version": "1.4.0", "description": "a plugin for tests",
	})
	r.WriteJSON("mcp.json", map[string]any{
		"$schema":    "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
		"mcpServers": map[string]any{"main": map[string]any{"type": "stdio", "command": command, "args": args}},
	})
}

// Write puts a file into the plugin's folder.
func (r *Rig) Write(name, content string, mode os.FileMode) {
	r.t.Helper()
	r.WriteOutside(filepath.Join("demo", name), content, mode)
}

// WriteJSON is Write for a JSON document.
func (r *Rig) WriteJSON(name string, v any) {
	r.t.Helper()
	raw, err := json.MarshalIndent(v, "", "  ")
	must(r.t, err)
	r.Write(name, string(raw)+"\n", 0o644)
}

// WriteOutside puts a file below Dir.
func (r *Rig) WriteOutside(name, content string, mode os.FileMode) {
	r.t.Helper()
	path := filepath.Join(r.Dir, filepath.FromSlash(name))
	must(r.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(r.t, os.WriteFile(path, []byte(content), mode))
	must(r.t, os.Chmod(path, mode))
}

// Ask asks whether the plugin may run.
func (r *Rig) Ask() approvals.Decision {
	r.t.Helper()
	d, err := r.Gate.Ask(r.t.Context(), r.ID, Operator)
	must(r.t, err)
	return d
}

// Probing asks, answers yes and returns the decision with its probe grant.
func (r *Rig) Probing() (approvals.Decision, approvals.Grant) {
	r.t.Helper()
	d, err := r.Gate.Answer(r.t.Context(), r.Ask().ID, approvals.Answer{Allow: true}, Operator)
	must(r.t, err)
	grant, err := r.Gate.ProbeGrant(r.t.Context(), d.ID)
	must(r.t, err)
	return d, grant
}

// Offered walks up to the question which tools may be used.
func (r *Rig) Offered(offer approvals.Offer) approvals.Decision {
	r.t.Helper()
	d, _ := r.Probing()
	tools, err := r.Gate.Probed(r.t.Context(), d.ID, offer)
	must(r.t, err)
	return tools
}

// Approve walks the whole way: the connector is enabled with these tools.
func (r *Rig) Approve(offer approvals.Offer, tools ...string) approvals.Decision {
	r.t.Helper()
	if tools == nil {
		tools = []string{}
	}
	d, err := r.Gate.Answer(r.t.Context(), r.Offered(offer).ID, approvals.Answer{Allow: true, Tools: tools}, Operator)
	must(r.t, err)
	return d
}

// Grant returns the grant to start the approved connector.
func (r *Rig) Grant() approvals.Grant {
	r.t.Helper()
	grant, err := r.Gate.Grant(r.t.Context(), r.ID)
	must(r.t, err)
	return grant
}

// CallGrant approves nothing: it takes a grant that is Live and returns the proof
// that Client may call the tool.
func (r *Rig) CallGrant(grant approvals.Grant, tool string) approvals.CallGrant {
	r.t.Helper()
	call, err := r.Gate.CallGrant(r.t.Context(), grant, tool, Client)
	must(r.t, err)
	return call
}

// Tool is a definition with a name and a description.
func Tool(name, description string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, description))
}

// OfferOf is an offer of tools with these names.
func OfferOf(names ...string) approvals.Offer {
	offer := approvals.Offer{}
	for _, name := range names {
		offer.Tools = append(offer.Tools, Tool(name, "does "+name))
	}
	return offer
}

// Clock is a time that a test moves.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock, also backwards.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
