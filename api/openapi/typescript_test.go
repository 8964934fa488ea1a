package openapi_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/api/sidecar"
	"sallyport/internal/fakeserver/fakeservertest"
	"sallyport/runtime/host"
	"sallyport/runtime/process"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.ShimArg {
		process.ShimMain(os.Args[2:])
	}
	os.Exit(m.Run())
}

// project is api/ts as a program's author has it: with node_modules beside it.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "tsconfig.json", "schema.d.ts", "example.mjs"} {
		raw, err := os.ReadFile(filepath.Join(packages, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(installed(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTypeScriptExampleIsTypedAndWorks runs the example by the generated types
// against a sidecar of its own: list, ask, answer, call, audit.
func TestTypeScriptExampleIsTypedAndWorks(t *testing.T) {
	dir := project(t)
	node(t, nil, "node_modules/typescript/bin/tsc", "--project", dir)

	places := host.PlacesIn(t.TempDir())
	addFake(t, filepath.Join(places.Data, "plugins", "fake"))
	t.Setenv("HOME", t.TempDir()) // no plugins of the person who runs the tests
	s, err := sidecar.Start(t.Context(), sidecar.Config{Places: places, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	out := run(t, []string{"SALLYPORT_TOKEN=" + s.Host.Tokens.Operator}, "node",
		filepath.Join(dir, "example.mjs"), s.Discovery.URL, "fake/main", "echo")
	var said struct {
		OK      bool            `json:"ok"`
		Result  json.RawMessage `json:"result"`
		Refused string          `json:"refused"`
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || !said.OK || said.Refused == "" || !strings.Contains(string(said.Result), "grüß") {
		t.Errorf("the example said %s", out)
	}
}

// TestTypesRefuseWhatTheContractRefuses: tsc finds a wrong field and a wrong path.
func TestTypesRefuseWhatTheContractRefuses(t *testing.T) {
	dir := project(t)
	const wrong = `import createClient from "openapi-fetch";
/** @typedef {import("./schema.d.ts").paths} paths */
/** @type {ReturnType<typeof createClient<paths>>} */
const api = createClient({ baseUrl: "" });
await api.GET("/v1/nothing");
await api.POST("/v1/decisions/{id}/answer", { params: { path: { id: "x" } }, body: { answr: "allow" } });
(await api.GET("/v1/plugins")).data?.plugins;
`
	if err := os.WriteFile(filepath.Join(dir, "example.mjs"), []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := command(t, nil, "node", filepath.Join(installed(t), "node_modules/typescript/bin/tsc"), "--project", dir).CombinedOutput()
	if err == nil {
		t.Fatal("tsc accepts calls that the contract does not have")
	}
	for _, at := range []string{"example.mjs(5,", "example.mjs(6,", "example.mjs(7,"} {
		if !strings.Contains(string(out), at) {
			t.Errorf("tsc says nothing at %s…\n%s", at, out)
		}
	}
}

func addFake(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Base(fakeservertest.Build(t, filepath.Join(dir, "bin")))
	for name, text := range map[string]string{
		"plugin.json": `{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"fake","version":"1.0.0"}`,
		"mcp.json": `{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
			"mcpServers":{"main":{"type":"stdio","command":"./bin/` + program + `","args":["polite"]}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
