package host

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/env"
	"sallyport/runtime/health"
	"sallyport/runtime/mcp"
	"sallyport/runtime/mcp/gateway"
	"sallyport/runtime/plugins"
)

// errReplaced is why a running server stops when it is approved anew.
var errReplaced = coded.New("superseded", "the connector is being approved anew")

func (h *Host) poolConfig() mcp.Config {
	return mcp.Config{
		Processes: recordedStarter{h.Audit, mcp.Processes(h.Processes), h.forStart, h.startFailed}, Gate: h.Gate, Version: h.Version, Events: h.fromPool, Headers: h.headers, Bearer: h.bearer, Network: h.config.Network,
		IdleAfter: func() time.Duration { return h.Times().Idle }, Now: h.config.Now, Logger: h.log,
	}
}

// headers resolves what a connector that is dialled sends, at that moment: the
// package's values are literal, the operator's may be references.
func (h *Host) headers(ctx context.Context, l approvals.Launch) (map[string]string, error) {
	resolved := map[string]string{}
	ctx, given := h.forStart(ctx, l.ID, false), recordedSecrets{h.Audit, h.Secrets, &h.changes}
	for _, header := range l.Headers {
		value, err := l.Env.Header(ctx, given, env.Declared{Name: header.Name, Value: header.Value, References: header.FromOperator})
		if err != nil {
			h.startFailed(l.ID, err)
			return nil, err
		}
		resolved[header.Name] = value
	}
	return resolved, nil
}

// fromPool records what happens to servers and passes it on. It must not wait
// for the pool.
func (h *Host) fromPool(e mcp.Event) {
	switch e.Kind {
	case mcp.Started:
		if e.PID == 0 { // dialled: a process is on record before it starts
			h.record(audit.Start, audit.OK, e)
		}
		h.Health.Clear(health.ServerParked, e.ID.String())
		h.tellStarted(e.ID)
		h.work.Go(func() { h.stopIfStale(e.ID) })
		h.work.Go(func() { h.startLevel(e.ID) })
	case mcp.Stopped:
		h.record(audit.Stop, audit.OK, e)
	case mcp.Crashed:
		h.record(audit.Crash, audit.Failed, e)
		h.noteBudget(e)
	case mcp.Exceeded: // the call is on record
		h.noteBudget(e)
	case mcp.Denied:
		h.Audit.Refused(audit.Record{Actor: e.ID.String(), Via: "mcp", Plugin: e.ID.Plugin, Binding: e.ID.Server, Target: e.Method, Reason: coded.Of(e.Err)})
	case mcp.ParkedEvent: // the gate records it
		h.noteBudget(e)
		h.work.Go(func() { h.park(e) })
	case mcp.ListChanged:
		h.notify.tell(gateway.Event{Kind: gateway.ToolsChanged, Connector: e.ID})
	case mcp.Notified:
		h.passOn(e)
		return
	}
	h.Events.add("session", e.ID.String(), string(e.Kind))
}

// tellStarted hands a start to whoever follows the disk. Where the queue is full
// the follower is behind by 64 starts; its next look at the folders covers them.
func (h *Host) tellStarted(id plugins.ID) {
	if ch := h.starts.Load(); ch != nil {
		select {
		case *ch <- id:
		default:
			h.log.Warn("a start was not followed at once", "connector", id.String())
		}
	}
}

// noteBudget tells of a connector that was over its budget, until the operator has
// looked at it (it is approved or enabled anew) or an hour has passed without another.
func (h *Host) noteBudget(e mcp.Event) {
	over, ok := mcp.OverBudget(e.Err)
	if !ok {
		return
	}
	id := e.ID.String()
	h.Health.Set(health.OverBudget, id, health.Args{"what": over.Sentence, "code": over.Code})
	h.budgets.after(id, func() { h.Health.Clear(health.OverBudget, id) })
}

// budgetShown is how long a connector that was over its budget is spoken of.
const budgetShown = time.Hour

// lateTimers run something when nothing has asked for it again for a while.
type lateTimers struct {
	mu    sync.Mutex
	ended bool
	all   map[string]*time.Timer
}

func (l *lateTimers) after(key string, do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if old := l.all[key]; old != nil {
		old.Stop()
	}
	if l.all == nil {
		l.all = map[string]*time.Timer{}
	}
	l.all[key] = time.AfterFunc(budgetShown, do)
}

func (l *lateTimers) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, timer := range l.all {
		timer.Stop()
	}
}

func (h *Host) record(action, result string, e mcp.Event) {
	record := audit.Record{Action: action, Result: result, Actor: "sallyport", Via: approvals.ViaSallyport,
		Plugin: e.ID.Plugin, Binding: e.ID.Server}
	if e.Err != nil {
		record.Reason = coded.Of(e.Err)
	}
	if approved, ok := h.Gate.Approved(e.ID); ok {
		record.Identity = string(approved.Identity)
	}
	h.Audit.Call(record)
}

// park keeps a server that failed too often from starting until the operator
// enables it again.
func (h *Host) park(e mcp.Event) {
	why := coded.New("parked", "the server failed too often and is not started any more")
	errors.As(e.Err, &why)
	why.Next = "look at its last output: sallyport plugins show " + e.ID.String() + "; then let it run again: sallyport enable " + e.ID.String()
	if err := h.Gate.Park(h.ctx, e.ID, why); err != nil {
		h.log.Error("a server could not be parked", "connector", e.ID.String(), "error", err)
	}
	h.Health.Set(health.ServerParked, e.ID.String(), health.Args{"plugin": e.ID.String()})
}

// startLevel tells a server that has just started the log level agents asked for.
func (h *Host) startLevel(id plugins.ID) {
	params, asked := h.levels.get(id)
	if !asked {
		return
	}
	ctx, cancel := context.WithTimeout(h.ctx, 10*time.Second)
	defer cancel()
	if _, err := h.passLevel(ctx, id, params); err != nil {
		h.log.Debug("a server did not take its log level", "connector", id.String(), "error", err)
	}
}

// passOn gives agents what a server said outside of any call.
func (h *Host) passOn(e mcp.Event) {
	kinds := map[string]gateway.EventKind{
		"notifications/resources/updated":      gateway.ResourceUpdated,
		"notifications/resources/list_changed": gateway.ResourcesChanged,
		"notifications/prompts/list_changed":   gateway.PromptsChanged,
	}
	if kind, ok := kinds[e.Method]; ok {
		h.notify.tell(gateway.Event{Kind: kind, Connector: e.ID, Params: append(json.RawMessage(nil), e.Params...)})
	}
}

// followGate passes on what the gate decides: agents' lists may differ now.
func (h *Host) followGate() {
	events, cancel := h.Gate.Subscribe()
	defer cancel()
	for {
		select {
		case <-h.ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			h.fromGate(e)
		}
	}
}

func (h *Host) fromGate(e approvals.Event) {
	if e.Kind != "tools" {
		h.catalogs.revision.Add(1)
		h.notify.tell(gateway.Event{Kind: gateway.AccessChanged, Connector: e.ID})
	}
	if e.Kind == "clients" && !h.isClient(e.Code) {
		h.Gateway.Forget(e.Code, clientRemoved)
	}
	if e.Kind == "connector" && e.Code == "" {
		h.Pool.Unpark(e.ID)
		h.Health.Clear(health.ServerParked, e.ID.String())
		h.Health.Clear(health.OverBudget, e.ID.String())
	}
	if e.Kind == "connector" && (e.Code == "revoked" || e.Code == "uninstalled") {
		h.work.Go(func() { h.forgetLogins(e.ID) })
	}
	if e.Kind == "settings" {
		h.work.Go(func() { h.closeConsolesRefused(context.WithoutCancel(h.ctx)) })
	}
	h.Events.add(e.Kind, e.ID.String(), e.Code)
}

func (h *Host) isClient(name string) bool {
	return slices.ContainsFunc(h.Gate.Clients(), func(c approvals.Client) bool { return c.Name == name })
}
