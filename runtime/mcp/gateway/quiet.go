package gateway

import (
	"context"
	"encoding/json"
)

// quiet is the Upstream of what the gateway asks for itself: there is no agent to
// tell or to ask.
type quiet struct{}

func (quiet) Notify(string, json.RawMessage) {}

func (quiet) Request(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	return nil, unsupported(method)
}

func (quiet) Supports(string) bool { return false }
