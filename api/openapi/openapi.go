// Package openapi writes the route table as an OpenAPI 3.1 document.
//
// The one idea: the Go table and types are the contract, and the document is a
// print of them. Nothing is said in it that the table does not say, so it cannot
// be wrong where they are right; tests compare the committed file byte for byte
// and real answers with its schemas.
//
// It serves nothing. Only its tests, which are also the generator, import it
// (go generate ./api/...).
package openapi

//go:generate go test . -count=1 -run Current -update

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"sallyport/api"
)

// Document returns the document for routes, indented and with a line feed at the
// end. The same routes give the same bytes.
func Document(routes []api.Route) ([]byte, error) {
	r := newReflector()
	paths := map[string]map[string]any{}
	for _, route := range routes {
		operation, err := r.operation(route)
		if err != nil {
			return nil, fmt.Errorf("cannot describe %s %s: %w", route.Method, route.Path, err)
		}
		if paths[route.Path] == nil {
			paths[route.Path] = map[string]any{}
		}
		paths[route.Path][strings.ToLower(route.Method)] = operation
	}
	document := struct {
		OpenAPI    string           `json:"openapi"`
		Info       map[string]any   `json:"info"`
		Servers    []map[string]any `json:"servers"`
		Paths      any              `json:"paths"`
		Components map[string]any   `json:"components"`
	}{
		OpenAPI: "3.1.0",
		Info: map[string]any{"title": "Sallyport", "version": "1",
			"description": "The local API of one installation (spec/local-api.md). Generated from the Go route table; do not edit."},
		Servers: []map[string]any{{"url": "http://127.0.0.1:{port}", "description": "The kept loopback port; the discovery file and sallyport health have it.",
			"variables": map[string]any{"port": map[string]any{"default": "0"}}}},
		Paths:      paths,
		Components: map[string]any{"schemas": r.named, "securitySchemes": tokens()},
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("cannot encode the document: %w", err)
	}
	return out.Bytes(), nil
}

func tokens() map[string]any {
	token := func(says string) any {
		return map[string]any{"type": "http", "scheme": "bearer", "description": says}
	}
	return map[string]any{
		"operator":  token("The person's own program: operator.token in the state folder."),
		"companion": token("Sees and never answers: companion.token in the state folder."),
		"agent":     token("One agent client, for /mcp only: sallyport clients add NAME."),
	}
}

// security says which of the tokens a rule takes; any one of them will do.
func security(rule api.Access) ([]map[string][]string, error) {
	need := func(names ...string) (all []map[string][]string, err error) {
		all = []map[string][]string{}
		for _, name := range names {
			all = append(all, map[string][]string{name: {}})
		}
		return all, nil
	}
	switch rule {
	case api.Anyone:
		return need()
	case api.Operator:
		return need("operator")
	case api.Watcher:
		return need("operator", "companion")
	case api.Agent:
		return need("agent")
	}
	return nil, fmt.Errorf("access rule %d is not known", rule)
}

func (r *reflector) operation(route api.Route) (map[string]any, error) {
	tokens, err := security(route.Access)
	if err != nil {
		return nil, err
	}
	operation := map[string]any{"summary": route.Summary, "security": tokens}
	if parameters := parametersOf(route); len(parameters) > 0 {
		operation["parameters"] = parameters
	}
	if route.Body != nil {
		body, err := r.content("application/json", route.Body)
		if err != nil {
			return nil, err
		}
		operation["requestBody"] = map[string]any{"required": true, "content": body}
	}
	operation["responses"], err = r.responses(route)
	return operation, err
}

var pathParameter = regexp.MustCompile(`\{([a-z]+)\}`)

func parametersOf(route api.Route) []any {
	var all []any
	for _, found := range pathParameter.FindAllStringSubmatch(route.Path, -1) {
		all = append(all, parameter(found[1], "path"))
	}
	for _, name := range route.Query {
		all = append(all, parameter(name, "query"))
	}
	return all
}

func parameter(name, in string) map[string]any {
	p := map[string]any{"name": name, "in": in, "schema": map[string]any{"type": "string"}}
	if in == "path" {
		p["required"] = true
	}
	return p
}

// responses has what the route answers with, and the one shape of errors.
func (r *reflector) responses(route api.Route) (map[string]any, error) {
	failed, err := r.content("application/json", api.Error{})
	if err != nil {
		return nil, err
	}
	all := map[string]any{
		"4XX": map[string]any{"description": "Refused, with a code.", "content": failed},
		"5XX": map[string]any{"description": "The store cannot be used, or a fault of Sallyport's own.", "content": failed},
	}
	content := map[string]any{}
	if route.Answer != nil {
		if content, err = r.content("application/json", route.Answer); err != nil {
			return nil, err
		}
	}
	for _, kind := range route.Media {
		if content[kind] == nil {
			content[kind] = map[string]any{"schema": map[string]any{"type": "string"}}
		}
	}
	switch {
	case len(content) > 0:
		all["200"] = map[string]any{"description": "Done.", "content": content}
	case route.Upgrade != "":
		all["101"] = map[string]any{"description": "The connection becomes " + route.Upgrade + "."}
	default:
		all["204"] = map[string]any{"description": "Done."}
	}
	if slices.Contains(route.Also, http.StatusServiceUnavailable) {
		all["503"] = map[string]any{"description": "The same answer, and it is not well.", "content": content}
	}
	if slices.Contains(route.Also, http.StatusAccepted) {
		all["202"] = map[string]any{"description": "Taken; there is nothing to answer."}
	}
	return all, nil
}

func (r *reflector) content(kind string, zero any) (map[string]any, error) {
	schema, err := r.of(zero)
	return map[string]any{kind: map[string]any{"schema": schema}}, err
}
