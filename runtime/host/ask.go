package host

import (
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/mcp"
	"sallyport/runtime/plugins"
)

// permitted is a running server and the proof that one call of it may be made.
type permitted struct {
	session *mcp.Session
	grant   approvals.CallGrant
}

// permit proves that a call may be made, and asks the operator where the policy
// says so (spec/permissions.md 4). After waiting everything is proved again: only
// what was asked about is called.
func (h *Host) permit(ctx context.Context, client string, id plugins.ID, tool string, params json.RawMessage, up mcp.Upstream) (permitted, error) {
	asked, err := h.prove(ctx, client, id, tool)
	if err != nil || h.Gate.Verdict(asked.grant) == approvals.MayCall {
		return asked, err
	}
	sent, err := mcp.SentSum(params)
	if err != nil {
		return asked, err
	}
	if err := h.Gate.Consent(ctx, asked.grant, sent, params, tellWaiting(up, id, tool)); err != nil {
		return asked, err
	}
	now, err := h.prove(ctx, client, id, tool)
	if err == nil && !asked.grant.SameApproval(now.grant) {
		err = &coded.Error{Code: "changed-since-asked", Sentence: "it is no longer what the question showed", Next: "try again"}
	}
	return now, err
}

func (h *Host) prove(ctx context.Context, client string, id plugins.ID, tool string) (p permitted, err error) {
	if p.session, err = h.Pool.Session(ctx, id); err == nil {
		p.grant, err = h.Gate.CallGrant(ctx, p.session.Grant(), tool, client)
	}
	return p, err
}

// tellWaiting sends the agent progress while it waits. The steps are tiny, so that
// the server's own numbers, which come after, are above them.
func tellWaiting(up mcp.Upstream, id plugins.ID, tool string) func() {
	var steps atomic.Int64
	message, _ := json.Marshal("waiting for the operator to answer whether " + approvals.Visible(id.String()) + " may run " + approvals.Visible(tool))
	return func() {
		step := strconv.FormatFloat(float64(steps.Add(1))/1e6, 'f', -1, 64)
		up.Notify("notifications/progress", json.RawMessage(`{"progress":`+step+`,"message":`+string(message)+`}`))
	}
}
