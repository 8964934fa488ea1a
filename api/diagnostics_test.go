package api_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/api"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/host"
)

// TestDiagnosticsTellNoSecretAndNoPath: with a mark in everything that may not get out, and
// a server that ran with it, the mark is nowhere; what helps is there.
func TestDiagnosticsTellNoSecretAndNoPath(t *testing.T) {
	r := newRig(t)
	log := `time=2026-11-30T21:00:00.000Z level=ERROR msg="scan failed" error="open ` + r.dir + `/home/` + sentinel + `: permission denied" args="` + sentinel + `"
time=2026-11-30T21:00:01.000Z level=INFO msg="server started" connector=fake/main
panic: ` + sentinel + `
`
	state := host.PlacesIn(r.dir).LogFile()
	if err := os.WriteFile(state, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), sentinel)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	r.into(&api.Settings{}, "POST", "/v1/sources", `{"folder":"`+filepath.ToSlash(folder)+`"}`)
	r.approve("echo")
	if got := r.send(request{method: "POST", path: "/v1/plugins/fake/main/call", as: "operator", body: `{"tool":"echo","args":{"text":"` + sentinel + `"}}`}); got.status != 200 {
		t.Fatalf("the call: %d %s", got.status, got.body)
	}

	got := r.send(request{method: "GET", path: "/v1/diagnostics", as: "operator"})
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	r.mute(t, "the answer", got.body)
	var d host.Diagnostics
	if err := json.Unmarshal([]byte(got.body), &d); err != nil {
		t.Fatal(err)
	}
	if d.Program.Version != "1.2.3" || d.Program.Schema == 0 || !d.Audit.Verified || len(d.Plugins) < 3 || d.Setup.OwnFolders != 1 || len(d.Log) != 2 || d.Dropped != 1 {
		t.Errorf("what helps is missing in %+v", d)
	}
	for _, p := range d.Plugins {
		if p.ID == "fake/main" && (p.State != string(approvals.Enabled) || !p.Running || !strings.HasPrefix(p.Digest, "a1:")) {
			t.Errorf("the connector is %+v", p)
		}
	}

	downloads := filepath.Join(r.dir, "home", "Downloads")
	if err := os.MkdirAll(downloads, 0o700); err != nil {
		t.Fatal(err)
	}
	var first, second api.DiagnosticsSaved
	r.into(&first, "POST", "/v1/diagnostics/save", "")
	r.into(&second, "POST", "/v1/diagnostics/save", "")
	if !strings.HasPrefix(first.Where, "~/Downloads/sallyport-diagnostics-") || first == second {
		t.Errorf("saved as %q and %q", first.Where, second.Where)
	}
	path := filepath.Join(downloads, filepath.Base(first.Where))
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r.mute(t, "the file", string(raw))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
	page, err := r.host.Audit.Query(t.Context(), audit.Filter{Action: audit.Export})
	if err != nil || len(page.Records) != 3 || page.Records[0].Target != "diagnostics" {
		t.Errorf("on record: %+v %v", page.Records, err)
	}
}

// mute fails where a text has what it may not.
func (r *rig) mute(t *testing.T, what, text string) {
	t.Helper()
	for name, bad := range map[string]string{"the mark": sentinel, "a path": r.dir, "a token": r.tokens["operator"], "an agent's token": r.tokens["agent"], "a home": "/home/"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s has %s:\n%s", what, name, text)
		}
	}
}
