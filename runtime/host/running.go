package host

import (
	"context"
	"errors"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/plugins"
)

// stopPatience is how long somebody who stops a server waits for its end.
const stopPatience = 30 * time.Second

// StartServer starts a connector's server, if it does not run: through the gate, as a
// call of an agent's would. Who asked is on record before.
func (h *Host) StartServer(ctx context.Context, id plugins.ID, by approvals.By) error {
	if err := h.askedTo(ctx, "start", id, by); err != nil {
		return err
	}
	_, err := h.Pool.Session(ctx, id)
	return err
}

// StopServer ends a connector's server. Its approval stays: the next call starts it
// again.
func (h *Host) StopServer(ctx context.Context, id plugins.ID, by approvals.By) error {
	if err := h.askedTo(ctx, "stop", id, by); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	err := h.Pool.Stop(ctx, id, coded.New("stopped-by-operator", "the operator stopped it"))
	if errors.Is(err, context.DeadlineExceeded) {
		return &coded.Error{Code: "not-stopped", Sentence: "the server has not ended yet", Next: "look again in a moment", Err: err}
	}
	return err
}

// RestartServer stops a connector's server and starts it.
func (h *Host) RestartServer(ctx context.Context, id plugins.ID, by approvals.By) error {
	if err := h.StopServer(ctx, id, by); err != nil {
		return err
	}
	return h.StartServer(ctx, id, by)
}

// askedTo puts on record that a person asked for it; what came of it is a record of
// its own. A connector that has no process has nothing to start.
func (h *Host) askedTo(ctx context.Context, what string, id plugins.ID, by approvals.By) error {
	if h.isSkills(id) {
		return coded.New("nothing-runs", "this plugin has skills alone, and no server that could run")
	}
	_, err := h.Audit.Append(ctx, audit.Record{Action: audit.Ask, Result: audit.OK, Actor: by.User, Via: by.Via, Plugin: id.Plugin, Binding: id.Server, Target: what})
	return err
}
