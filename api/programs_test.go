package api_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sallyport/api"
)

// TestProgramsByTheAPI: look, import, connect and undo, by names alone. What is
// written is what was shown.
func TestProgramsByTheAPI(t *testing.T) {
	r := newRig(t)
	const credential = "s3cr3t-9fK2mQ7xR4tV8w"
	file := filepath.Join(r.dir, "home", ".cursor", "mcp.json")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	original := `{"mcpServers": {"a": {"command": ` + strconv.Quote(self) + `, "env": {"API_TOKEN": "` + credential + `"}}, "b": 1}}`
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(original), 0o600); err != nil {
		t.Fatal(err)
	}
	r.play([]scenario{
		{name: "what there is, without values", request: get("/v1/import"), status: 200, has: []string{`"name":"a"`, `"env":["API_TOKEN"]`, `"name":"API_TOKEN"`, `"client-entry-invalid"`}, not: []string{credential}},
		{name: "a project that is elsewhere", request: get("/v1/import?project=/etc"), status: 400, code: "project-invalid"},
		{name: "text that is no configuration", request: post("/v1/import/look", `{"name":"a.json","text":"W10="}`), status: 200, has: []string{"not-an-mcp-configuration"}},
		{name: "a path in the place of text", request: post("/v1/import/look", `{"path":"/etc/passwd"}`), status: 400, code: "bad-request"},
		{name: "importing tried out", request: post("/v1/import", `{"dryRun":true,"leaveSecrets":true}`), status: 200, has: []string{`"connector":"connectors/a"`, `"needs":["API_TOKEN"]`, `"client-entry-invalid"`}, not: []string{credential}},
		{name: "importing", request: post("/v1/import", `{"picks":[{"client":"cursor","name":"a"}],"leaveSecrets":true}`), status: 200, has: []string{`"connector":"connectors/a"`}, not: []string{credential}},
		{name: "what was imported needs an answer", request: get("/v1/plugins/connectors/a"), status: 200, has: []string{`"state":"approval_required"`}, not: []string{credential}},
		{name: "programs", request: get("/v1/connect"), status: 200, has: []string{`"name":"cursor"`, `"file":"~/.cursor/mcp.json"`}},
		{name: "a plan", request: post("/v1/connect/cursor/plan", `{"removeImported":true}`), status: 200, has: []string{`"removes":["a"]`, `"diff":"---`}},
		{name: "for a program that is none", request: post("/v1/connect/absent/plan", `{}`), status: 404, code: "program-unknown"},
		{name: "with a command", request: post("/v1/connect/cursor/plan", `{"command":"evil"}`), status: 400, code: "bad-request"},
		{name: "for a project that is elsewhere", request: post("/v1/connect/cursor/plan", `{"project":"/etc"}`), status: 400, code: "project-invalid"},
		{name: "without a plan", request: post("/v1/connect/cursor", `{}`), status: 409, code: "changed-meanwhile"},
		{name: "an undo of nothing", request: post("/v1/connect/cursor/undo/plan", `{}`), status: 409, code: "program-not-connected"},
	})
	var plan api.ConnectPlan
	r.into(&plan, "POST", "/v1/connect/cursor/plan", `{"removeImported":true}`)
	r.into(nil, "POST", "/v1/connect/cursor", `{"removeImported":true,"plan":"`+plan.Plan+`"}`)
	if now, _ := os.ReadFile(file); !strings.Contains(string(now), `"sallyport"`) || strings.Contains(string(now), credential) {
		t.Errorf("it is now %s", now)
	}
	r.into(&plan, "POST", "/v1/connect/cursor/undo/plan", `{}`)
	if !plan.Exact {
		t.Errorf("the undo is %+v", plan)
	}
	r.into(nil, "POST", "/v1/connect/cursor/undo", `{"plan":"`+plan.Plan+`"}`)
	if now, _ := os.ReadFile(file); string(now) != original {
		t.Errorf("in the end it is %s", now)
	}
}
