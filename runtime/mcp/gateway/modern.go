package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	"sallyport/runtime/mcp"
)

// postModern serves a message of the generation without sessions: everything it
// needs is in it, and that the agent hangs up cancels it.
func (g *Gateway) postModern(w http.ResponseWriter, r *http.Request, client ClientInfo, e mcp.Envelope, version string) {
	switch e.Kind {
	case mcp.Notification: // none is defined over HTTP; none is refused
		w.WriteHeader(http.StatusAccepted)
		return
	case mcp.Response, mcp.Orphan:
		plain(w, http.StatusBadRequest, "An answer is not expected here")
		return
	}
	c := &call{
		g: g, client: g.state(client.Name), modern: true,
		id: e.ID, method: string(e.Method), params: e.Params, gone: r.Context().Done(),
	}
	if err := g.admit(r.Header, c, version); err != nil {
		object := g.errorObject(c.method, err)
		refuseHTTP(w, modernStatus(object), e.ID, object)
		return
	}
	if c.client.inFlight.Add(1) > int64(g.limits.InFlight) {
		c.client.inFlight.Add(-1)
		refuseHTTP(w, http.StatusTooManyRequests, e.ID,
			refuseCoded(codeRefused, errInFlight).Raw)
		return
	}
	defer c.client.inFlight.Add(-1)
	c.ctx, c.cancel = context.WithCancelCause(r.Context())
	defer c.cancel(nil)
	defer context.AfterFunc(g.ctx, func() { c.cancel(errClosing) })()
	c.readMeta()
	out := g.newReply(w, func() { c.cancel(errGone) })
	c.out = out
	result, err := g.dispatch(c)
	g.answerModern(c, out, result, err)
}

// admit checks what every request of the generation must carry.
func (g *Gateway) admit(header http.Header, c *call, version string) error {
	if version == "" {
		return refuse(codeHeaderMismatch, "Header mismatch: the header MCP-Protocol-Version is missing", nil)
	}
	if _, stated := modernMeta(c.params); !stated && version != modernVersion {
		return unsupportedVersion(version)
	}
	if err := c.readModern(version); err != nil {
		return err
	}
	if wrong := g.checkHeaders(header, c); wrong != "" {
		return refuse(codeHeaderMismatch, "Header mismatch: "+wrong, nil)
	}
	return nil
}

func (g *Gateway) answerModern(c *call, out *reply, result json.RawMessage, err error) {
	if err != nil {
		object := g.errorObject(c.method, err)
		out.answer(modernStatus(object), failure(c.id, object))
		return
	}
	out.answer(http.StatusOK, resultOf(c.id, result))
}
