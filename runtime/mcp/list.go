package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
)

// What one kind of list may hold. No server offers as much to a model.
const (
	maxListPages = 200
	maxListItems = 10_000
	maxListBytes = 32 << 20
)

// listOffer asks a server for everything that it provides. Every definition is
// kept in the server's own bytes, whatever it looks like: which of them can be
// used is not decided here, and an odd one never hides the others.
func listOffer(ctx context.Context, c *Conn, server Server) (offer approvals.Offer, err error) {
	offer = approvals.Offer{
		ServerInfo: server.Info, Instructions: server.Instructions,
		ProtocolVersion: server.ProtocolVersion, Capabilities: server.Capabilities,
	}
	if offer.Tools, err = list(ctx, c, "tools/list", "tools"); err != nil {
		return offer, err
	}
	var has struct{ Prompts, Resources json.RawMessage }
	if err := json.Unmarshal(server.Capabilities, &has); err != nil {
		has.Prompts, has.Resources = nil, nil // absent or not an object: tools only
	}
	if has.Prompts != nil {
		if offer.Prompts, err = list(ctx, c, "prompts/list", "prompts"); err != nil {
			return offer, err
		}
	}
	if has.Resources != nil {
		offer.Templates, err = list(ctx, c, "resources/templates/list", "resourceTemplates")
	}
	return offer, err
}

// list collects all pages. A server that does not know the method has none.
func list(ctx context.Context, c *Conn, method, key string) ([]json.RawMessage, error) {
	items, size := []json.RawMessage{}, 0
	var params json.RawMessage
	for range maxListPages {
		result, err := c.Call(ctx, method, params, nil)
		var answered *RPCError
		if errors.As(err, &answered) && answered.Code == codeMethodNotFound {
			return items, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list with %s: %w", method, err)
		}
		page, cursor, ok := readPage(result, key)
		if !ok {
			return nil, listFailed(method, "the answer is not a list")
		}
		items = append(items, page...)
		if size += len(result); len(items) > maxListItems || size > maxListBytes {
			return nil, listFailed(method, "the list is too long")
		}
		if cursor == nil {
			return items, nil
		}
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	return nil, listFailed(method, "the list has too many pages")
}

func listFailed(method, why string) error {
	return &coded.Error{Code: "list-failed", Sentence: "the server's answer to " + method + " cannot be used: " + why,
		Next: "report it to the plugin's author"}
}

// readPage returns the elements under key, each a part of result, and the cursor
// of the next page as it was written.
func readPage(result []byte, key string) (items []json.RawMessage, cursor []byte, ok bool) {
	var scan, inner scanner
	scan.reset(result)
	found, twice := false, false
	sound := scan.members(func(name []byte, from, to int) bool {
		switch string(name) {
		case key:
			twice, found = found, true
			inner.reset(result[from:to])
			return inner.elements(func(raw []byte) bool {
				items = append(items, raw)
				return len(items) <= maxListItems+1
			})
		case "nextCursor":
			if result[from] == '"' && !bytes.Equal(result[from:to], []byte(`""`)) {
				cursor = result[from:to]
			}
		}
		return true
	})
	return items, cursor, sound && found && !twice
}
