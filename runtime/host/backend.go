package host

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/mcp"
	"sallyport/runtime/mcp/gateway"
	"sallyport/runtime/plugins"
)

// backend is the host as the gateway sees it.
type backend Host

// catalogs are what each client may see, kept until something changes: the
// gateway asks before every request.
type catalogs struct {
	revision atomic.Uint64
	mu       sync.Mutex
	at       uint64
	kept     map[string]gateway.Catalog
}

// Catalog lists from the approval records. Nothing is started, and what changed
// on disk since is listed still: a call of it is refused and says why.
func (b *backend) Catalog(_ context.Context, client string) (gateway.Catalog, error) {
	h := (*Host)(b)
	// A change of scope counts from the moment that the gate has it, not from that at
	// which it is told here.
	now := h.catalogs.revision.Load() + h.Gate.ScopesRevision()
	h.catalogs.mu.Lock()
	defer h.catalogs.mu.Unlock()
	if h.catalogs.at != now || h.catalogs.kept == nil {
		h.catalogs.at, h.catalogs.kept = now, map[string]gateway.Catalog{}
	}
	if catalog, ok := h.catalogs.kept[client]; ok {
		return catalog, nil
	}
	catalog := h.catalogOf(client)
	catalog.Revision = now + 1 // 0 would be no revision
	h.catalogs.kept[client] = catalog
	return catalog, nil
}

func (h *Host) catalogOf(client string) gateway.Catalog {
	catalog := gateway.Catalog{OriginalNames: h.Gate.OriginalNames(client)}
	var whole []approvals.Approved
	for _, id := range h.Gate.ApprovedIDs() {
		approved, ok := h.Gate.Approved(id)
		if !ok || !h.Gate.Visible(client, id) {
			continue
		}
		catalog.Connectors = append(catalog.Connectors, h.exposed(client, approved))
		if h.Gate.Whole(client, id) {
			whole = append(whole, approved)
		}
	}
	catalog.Connectors = append(catalog.Connectors, h.exposedSkills(whole)...)
	return catalog
}

func (h *Host) exposed(client string, a approvals.Approved) gateway.Exposed {
	e := gateway.Exposed{ID: a.ID, Instructions: a.Instructions, Capabilities: a.Capabilities, Partial: !h.Gate.Whole(client, a.ID)}
	if !e.Partial {
		e.Prompts, e.Templates, e.Resources = definitions(a.Prompts), definitions(a.Templates), offersResources(a.Capabilities)
	}
	for _, tool := range a.Tools {
		if h.Gate.MayCall(client, a.ID, tool.Name) {
			e.Tools = append(e.Tools, gateway.Tool{Name: tool.Name, Definition: tool.Definition})
		}
	}
	return e
}

func definitions(pinned []approvals.ApprovedTool) []json.RawMessage {
	out := make([]json.RawMessage, len(pinned))
	for i, p := range pinned {
		out[i] = p.Definition
	}
	return out
}

func offersResources(capabilities json.RawMessage) bool {
	var c struct {
		Resources *json.RawMessage `json:"resources"`
	}
	return json.Unmarshal(capabilities, &c) == nil && c.Resources != nil
}

// Call runs one tool for one client and records it.
func (b *backend) Call(ctx context.Context, client string, id plugins.ID, tool string, params json.RawMessage, up gateway.Upstream) (json.RawMessage, error) {
	return (*Host)(b).call(ctx, caller{client: client, actor: client, via: "mcp"}, id, tool, params, up)
}

// Call runs one tool for the operator, through the same gate as agents.
func (h *Host) Call(ctx context.Context, via string, id plugins.ID, tool string, params json.RawMessage) (json.RawMessage, error) {
	return h.call(ctx, caller{client: approvals.Operator, actor: h.User, via: via}, id, tool, params, nobody{})
}

type caller struct{ client, actor, via string }

func (h *Host) call(ctx context.Context, who caller, id plugins.ID, tool string, params json.RawMessage, up mcp.Upstream) (json.RawMessage, error) {
	// A call that cannot be recorded is not made: the queue of records would wait
	// for the disk, and the caller with it.
	if err := h.Audit.Problem(); coded.Of(err) == audit.CodeUnwritable {
		return nil, err
	}
	begun := time.Now()
	call, err := h.permit(ctx, who.client, id, tool, params, up)
	var result json.RawMessage
	if err == nil {
		result, err = h.Pool.Call(ctx, call.grant, call.session, params, up)
	}
	var identity approvals.Grant
	if call.session != nil {
		identity = call.session.Grant()
	}
	h.recordCall(who, id, tool, identity, begun, err)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// recordCall writes the call's line of the audit. A refusal may come as a storm
// and is folded; a failure of the server's own is a call that failed.
func (h *Host) recordCall(who caller, id plugins.ID, tool string, grant approvals.Grant, begun time.Time, err error) {
	record := audit.Record{Actor: who.actor, Via: who.via, Client: who.client, Action: audit.Call, Result: audit.OK,
		Plugin: id.Plugin, Binding: id.Server, Target: tool, Identity: string(grant.Identity()),
		DurationMs: time.Since(begun).Milliseconds()}
	if launch, ok := grant.Launch(); ok == nil {
		record.Version = launch.Version
	}
	var protocol *mcp.ProtocolError
	var server *mcp.RPCError
	switch {
	case err == nil:
	case errors.As(err, &server):
		record.Result, record.Reason = audit.Failed, "server-error"
	case errors.As(err, &protocol):
		record.Result, record.Reason = audit.Failed, coded.Of(err)
	case errors.Is(err, context.Canceled):
		record.Result, record.Reason = audit.Failed, "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		record.Result, record.Reason = audit.Failed, "timed-out"
	case coded.Of(err) != "":
		record.Action, record.Result, record.Reason = audit.Refuse, audit.Refused, coded.Of(err)
		h.Audit.Refused(record)
		return
	default:
		record.Result, record.Reason = audit.Failed, "internal"
	}
	h.Audit.Call(record)
}

// Request sends what is no tool call: prompts, resources, completion. It needs
// the connector's grant and a scope of the whole connector, and what is pinned must
// be as it was pinned. A refusal is recorded.
func (b *backend) Request(ctx context.Context, client string, id plugins.ID, method string, params json.RawMessage, up gateway.Upstream) (json.RawMessage, error) {
	h := (*Host)(b)
	if method == "logging/setLevel" && h.Gate.Visible(client, id) {
		h.levels.set(id, params)
		return h.passLevel(ctx, id, params)
	}
	result, err := h.request(ctx, client, id, method, params, up)
	var protocol *mcp.ProtocolError
	if code := coded.Of(err); code != "" && !errors.As(err, &protocol) && ctx.Err() == nil {
		h.Audit.Refused(audit.Record{Actor: client, Via: "mcp", Client: client, Plugin: id.Plugin, Binding: id.Server, Target: method, Reason: code})
	}
	return result, err
}

func (h *Host) request(ctx context.Context, client string, id plugins.ID, method string, params json.RawMessage, up gateway.Upstream) (json.RawMessage, error) {
	if h.isSkills(id) {
		grant, err := h.skillGrant(ctx, client, id)
		if err != nil {
			return nil, err
		}
		return h.skillRequest(ctx, grant, method, params)
	}
	if !h.Gate.Whole(client, id) {
		return nil, coded.New("permission-denied", "the client has no such connector")
	}
	if _, live := h.Pool.Live(id); !live && method == "resources/unsubscribe" {
		return json.RawMessage("{}"), nil // its subscriptions ended with it
	}
	session, err := h.Pool.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	return session.Request(ctx, method, params, up)
}

// passLevel tells a running server the level; one that is not running learns it
// when it starts.
func (h *Host) passLevel(ctx context.Context, id plugins.ID, params json.RawMessage) (json.RawMessage, error) {
	session, ok := h.Pool.Live(id)
	if !ok {
		return json.RawMessage("{}"), nil
	}
	// Nobody's: it must not stand beside an agent's call as one that a server's
	// question may belong to.
	return session.Request(ctx, "logging/setLevel", params, nil)
}

// levels remembers the log level that agents asked of each connector.
type levels struct {
	mu   sync.Mutex
	kept map[plugins.ID]json.RawMessage
}

func (l *levels) set(id plugins.ID, params json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept = map[plugins.ID]json.RawMessage{}
	}
	l.kept[id] = append(json.RawMessage(nil), params...)
}

func (l *levels) get(id plugins.ID) (json.RawMessage, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	params, ok := l.kept[id]
	return params, ok
}

// nobody is the way back to a caller that cannot be asked anything.
type nobody struct{}

func (nobody) Notify(string, json.RawMessage) {}

func (nobody) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, coded.New("not-supported", "nobody can be asked here")
}

func (nobody) Supports(string) bool { return false }

// Unknown records a call of a tool that the client cannot see: refused like any
// other (spec/permissions.md), whether or not there is one of the name. The name is
// the agent's own words, of which there is no end, and not recorded.
func (b *backend) Unknown(client string) {
	(*Host)(b).Audit.Refused(audit.Record{Actor: client, Via: "mcp", Client: client, Reason: "permission-denied"})
}

// subscribers are who wants to hear what happens outside of requests.
type subscribers struct {
	mu   sync.Mutex
	next int
	all  map[int]func(gateway.Event)
}

// Subscribe delivers events to the gateway.
func (b *backend) Subscribe(tell func(gateway.Event)) (cancel func()) {
	s := &(*Host)(b).notify
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[int]func(gateway.Event){}
	}
	n := s.next
	s.next++
	s.all[n] = tell
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, n)
	}
}

func (s *subscribers) tell(e gateway.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tell := range s.all {
		tell(e)
	}
}
