package host_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/internal/filestamp"
	"sallyport/runtime/approvals"
	"sallyport/runtime/clients"
	"sallyport/runtime/health"
	"sallyport/runtime/host"
)

// token is shaped like a credential and is none.
var token = "gh" + "p_9fK2mQ7xR4tV8wZ1bN5cJ3hL6pD0sYaGeUiO"

// withSecrets opens the host with an encrypted file for secrets: nobody's keyring is
// touched.
func (r *rig) withSecrets() *host.Host {
	r.t.Helper()
	h, err := host.Open(r.t.Context(), host.Config{Places: r.places, Version: "1.2.3", Home: r.home, SecretsPassphrase: []byte("correct horse battery staple"),
		Environ: []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh"}})
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

// give writes a file of the user's.
func (r *rig) give(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.write(path, text)
}

// stamps are the bytes of every file of the user's, and all that a stat tells.
func (r *rig) stamps() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(r.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%q %v", raw, filestamp.Of(info))
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

func (r *rig) hand() string {
	r.t.Helper()
	raw, err := os.ReadFile(r.places.ConnectorsFile())
	if err != nil {
		r.t.Fatal(err)
	}
	return string(raw)
}

// imported returns what became of the entries, by CLIENT:NAME.
func imported(t *testing.T, results []host.Imported, err error) map[string]host.Imported {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]host.Imported{}
	for _, r := range results {
		all[r.Client+":"+r.Name] = r
	}
	return all
}

func (r *rig) programs() {
	r.give(".cursor/mcp.json", `{
  // mine
  "mcpServers": {
    "github": {"command": "github-server", "env": {"GITHUB_TOKEN": "`+token+`"}},
    "my server": {"command": "x", "args": ["1"]},
    "my-server": {"command": "x", "args": ["2"]},
    "bad": {"command": 5},
    "leaks": {"command": "x", "args": ["--token=`+token+`"]},
  }
}
`)
	r.give(".claude.json", `{"mcpServers": {
  "github": {"type": "stdio", "command": "github-server", "env": {"GITHUB_TOKEN": "`+token+`"}},
  "sallyport": {"command": "/usr/bin/sallyport", "args": ["mcp", "--client", "claude-code"]},
  "team": {"type": "http", "url": "https://team.example/mcp", "headers": {"Authorization": "Bearer `+token+`"}}}}`)
	r.give(".codex/config.toml", "[mcp_servers.linear]\nurl = \"https://linear.example/mcp\"\nbearer_token_env_var = \"LINEAR_TOKEN\"\n\n[mcp_servers.github]\ncommand = \"another\"\nenv = { GITHUB_TOKEN = \"<your token>\" }\n")
	r.give(".gemini/settings.json", `{"mcpServers": `)
}

// TestImport: credentials go to the keyring, names stay apart, what says the same is
// one connector, and no file of another program's is touched.
func TestImport(t *testing.T) {
	r := newRig(t)
	r.programs()
	before := r.stamps()
	h := r.withSecrets()
	defer r.close(h)
	results, err := h.Import(t.Context(), host.Importing{}, operator)
	got := imported(t, results, err)
	for name, want := range map[string]host.Imported{
		"claude-code:github": {Connector: "connectors/github", Kept: []string{"GITHUB_TOKEN"}},
		"claude-code:team":   {Connector: "connectors/team"},
		"codex:linear":       {Connector: "connectors/linear"},
		"codex:github":       {Connector: "connectors/github-2", Renamed: true, Needs: []string{"GITHUB_TOKEN_2"}},
		"cursor:github":      {Connector: "connectors/github", SameAs: "claude-code:github"},
		"cursor:my server":   {Connector: "connectors/my-server", Renamed: true},
		"cursor:my-server":   {Connector: "connectors/my-server-2", Renamed: true},
	} {
		one := got[name]
		if one.Refused != nil || one.Connector != want.Connector || one.Renamed != want.Renamed || one.SameAs != want.SameAs ||
			!slices.Equal(one.Kept, want.Kept) || !slices.Equal(one.Needs, want.Needs) {
			t.Errorf("%s is %+v", name, one)
		}
	}
	for name, code := range map[string]string{"cursor:bad": "client-entry-invalid", "cursor:leaks": "literal-secret"} {
		if one := got[name]; one.Refused == nil || one.Refused.Code != code || one.Connector != "" {
			t.Errorf("%s is %+v", name, one)
		}
	}
	if _, own := got["claude-code:sallyport"]; own {
		t.Error("Sallyport imports itself")
	}
	hand := r.hand()
	if strings.Contains(hand, token) {
		t.Error("connectors.json holds a credential")
	}
	for _, part := range []string{`"GITHUB_TOKEN": "secret:GITHUB_TOKEN"`, `"Authorization": "Bearer ${secret:GITHUB_TOKEN}"`, `"Bearer ${env:LINEAR_TOKEN}"`, `"client": "codex"`, `"file": "~/.codex/config.toml"`} {
		if !strings.Contains(hand, part) {
			t.Errorf("connectors.json lacks %s:\n%s", part, hand)
		}
	}
	if value, err := h.Secrets.Secret(t.Context(), "GITHUB_TOKEN"); err != nil || value != token {
		t.Errorf("the secret is %q, %v", value, err)
	}
	if now := r.stamps(); !maps.Equal(now, before) {
		t.Errorf("files of other programs were touched:\n%v\n%v", before, now)
	}
	listing, err := h.Listing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range listing.Connectors() {
		if c.ID.Plugin == "connectors" {
			n++
			if c.Invalid != nil {
				t.Errorf("%s: %v", c.ID, c.Invalid)
			}
			if _, approved := h.Gate.Approved(c.ID); approved {
				t.Errorf("%s is approved", c.ID)
			}
		}
	}
	if n != 6 {
		t.Errorf("%d connectors are listed", n)
	}
}

// TestImportAgain finds what is there, and takes what is new.
func TestImportAgain(t *testing.T) {
	r := newRig(t)
	r.give(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "a"}}}`)
	h := r.withSecrets()
	defer r.close(h)
	if _, err := h.Import(t.Context(), host.Importing{}, operator); err != nil {
		t.Fatal(err)
	}
	first := r.hand()
	r.give(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`)
	results, err := h.Import(t.Context(), host.Importing{DryRun: true}, operator)
	if got := imported(t, results, err); !got["cursor:a"].Already || got["cursor:b"].Connector != "connectors/b" || r.hand() != first {
		t.Errorf("the dry run says %+v", got)
	}
	results, err = h.Import(t.Context(), host.Importing{Picks: []host.Pick{{Client: "cursor", Name: "b"}}}, operator)
	if got := imported(t, results, err); len(got) != 1 || got["cursor:b"].Connector != "connectors/b" {
		t.Errorf("%+v", got)
	}
	if !strings.HasPrefix(r.hand(), strings.TrimSuffix(first, "\n  }\n}\n")) {
		t.Errorf("what was there has changed:\n%s", r.hand())
	}
	// Removed by hand, it may be imported again.
	r.write(r.places.ConnectorsFile(), `{"connectors": {}}`)
	results, err = h.Import(t.Context(), host.Importing{}, operator)
	if got := imported(t, results, err); got["cursor:a"].Already || got["cursor:a"].Connector != "connectors/a" {
		t.Errorf("%+v", got)
	}
}

// TestImportWithoutSecrets keeps no value: the connector waits for it.
func TestImportWithoutSecrets(t *testing.T) {
	r := newRig(t)
	r.programs()
	h := r.withSecrets()
	defer r.close(h)
	results, err := h.Import(t.Context(), host.Importing{LeaveSecrets: true}, operator)
	got := imported(t, results, err)["claude-code:github"]
	if !slices.Equal(got.Needs, []string{"GITHUB_TOKEN"}) || len(got.Kept) > 0 || strings.Contains(r.hand(), token) {
		t.Errorf("%+v", got)
	}
	if kept, err := h.Secrets.List(t.Context()); err != nil || len(kept) > 0 {
		t.Errorf("kept %v, %v", kept, err)
	}
}

// TestImportFromText reads what somebody hands over, whatever client it is of.
func TestImportFromText(t *testing.T) {
	r := newRig(t)
	h := r.withSecrets()
	defer r.close(h)
	text := &host.ImportText{Name: "shared.json", Raw: []byte(`{"servers": {"a": {"command": "a", "env": {"KEY": "${input:key}"}}}}`)}
	results, err := h.Import(t.Context(), host.Importing{Text: text}, operator)
	if got := imported(t, results, err)["file:a"]; got.Connector != "connectors/a" || !slices.Equal(got.Needs, []string{"key"}) {
		t.Errorf("%+v", got)
	}
	files, err := h.Importable("", &host.ImportText{Name: "package.json", Raw: []byte(`{"name": "p", "command": "p"}`)})
	if err != nil || files[0].Problem == nil || files[0].Problem.Code != "not-an-mcp-configuration" {
		t.Errorf("%+v, %v", files, err)
	}
}

// TestConnectAndBack: import, connect without what was imported, undo; every byte of
// the other program's file is as it was.
func TestConnectAndBack(t *testing.T) {
	r := newRig(t)
	r.programs()
	file := filepath.Join(r.home, ".cursor/mcp.json")
	original, _ := os.ReadFile(file)
	h := r.withSecrets()
	defer r.close(h)
	if _, err := h.Import(t.Context(), host.Importing{}, operator); err != nil {
		t.Fatal(err)
	}
	what := host.Connecting{Program: "cursor", RemoveImported: true}
	if _, err := h.Connect(t.Context(), what, operator); coded.Of(err) != "changed-meanwhile" {
		t.Errorf("without a plan: %v", err)
	}
	plan, err := h.PlanConnect(what)
	if err != nil || !slices.Equal(plan.Removed, []string{"github", "my server", "my-server"}) {
		t.Fatalf("%+v, %v", plan, err)
	}
	what.Plan = plan.Plan()
	r.write(file, string(original)+"\n")
	if _, err := h.Connect(t.Context(), what, operator); coded.Of(err) != "changed-meanwhile" {
		t.Errorf("after an edit: %v", err)
	}
	r.write(file, string(original))
	if _, err := h.Connect(t.Context(), what, operator); err != nil {
		t.Fatal(err)
	}
	names := func() (all []string) {
		for _, f := range clients.Read(clients.System{OS: "linux", Home: r.home}) {
			for _, e := range f.Entries {
				if f.Client == "cursor" {
					all = append(all, e.Name)
				}
			}
		}
		return all
	}
	if got := names(); !slices.Equal(got, []string{"sallyport", "bad", "leaks"}) {
		t.Errorf("it holds %v", got)
	}
	if !slices.ContainsFunc(h.Gate.Clients(), func(c approvals.Client) bool { return c.Name == "cursor" }) {
		t.Error("there is no client cursor")
	}
	// A second time is nothing to do, and does not lose the way back.
	if again, err := h.PlanConnect(host.Connecting{Program: "cursor"}); err != nil || !again.Nothing() {
		t.Errorf("a second time: %v, %v", again, err)
	}
	undo, err := h.PlanDisconnect(host.Connecting{Program: "cursor"})
	if err != nil || !undo.Exact {
		t.Fatalf("%+v, %v", undo, err)
	}
	if _, err := h.Disconnect(t.Context(), host.Connecting{Program: "cursor", Plan: undo.Plan()}, operator); err != nil {
		t.Fatal(err)
	}
	if now, _ := os.ReadFile(file); string(now) != string(original) {
		t.Errorf("it is now\n%s", now)
	}
	if _, err := h.PlanDisconnect(host.Connecting{Program: "cursor"}); coded.Of(err) != "program-not-connected" {
		t.Errorf("once more: %v", err)
	}
}

// TestAChangedEntryIsAMatterOfHealth, until it is as it was written, or undone.
func TestAChangedEntryIsAMatterOfHealth(t *testing.T) {
	r := newRig(t)
	h := r.withSecrets()
	defer r.close(h)
	plan, err := h.PlanConnect(host.Connecting{Program: "cursor"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Connect(t.Context(), host.Connecting{Program: "cursor", Plan: plan.Plan()}, operator); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.home, ".cursor/mcp.json")
	written, _ := os.ReadFile(file)
	state := func() (shown bool) {
		if _, err := h.Programs(); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(h.Health.Problems(), func(p health.Problem) bool {
			return p.Code == health.ClientEntryChanged && p.Subject == "~/.cursor/mcp.json"
		})
	}
	if state() {
		t.Error("it is shown while nothing changed")
	}
	r.write(file, strings.Replace(string(written), `"mcp"`, `"other"`, 1))
	if !state() {
		t.Error("a changed entry is not shown")
	}
	r.write(file, string(written)+"\n")
	if state() {
		t.Error("it is still shown")
	}
	r.write(file, "{}")
	if !state() {
		t.Error("an entry that was taken out is not shown")
	}
	if _, err := h.Disconnect(t.Context(), host.Connecting{Program: "cursor", Plan: "other"}, operator); coded.Of(err) != "changed-meanwhile" {
		t.Errorf("undo of something else: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Disconnect(t.Context(), host.Connecting{Program: "cursor"}, operator); err != nil || state() {
		t.Errorf("a file that has gone is not forgotten: %v", err)
	}
}

// TestProjectsAreFoldersOfTheUsers: the API is no way to write anywhere else.
func TestProjectsAreFoldersOfTheUsers(t *testing.T) {
	r := newRig(t)
	r.give("shop/readme", "x")
	if err := os.Symlink(os.TempDir(), filepath.Join(r.home, "out")); err != nil {
		t.Fatal(err)
	}
	h := r.withSecrets()
	defer r.close(h)
	for _, project := range []string{"/etc", "relative", filepath.Join(r.home, "..", "x"), filepath.Join(r.home, "absent"), filepath.Join(r.home, "out"), r.home, filepath.Join(r.home, "shop", "readme"), "~/shop/../.."} {
		if _, err := h.PlanConnect(host.Connecting{Program: "cursor", Project: project}); coded.Of(err) != "project-invalid" {
			t.Errorf("%s: %v", project, err)
		}
		if _, err := h.Importable(project, nil); coded.Of(err) != "project-invalid" {
			t.Errorf("%s is looked at: %v", project, err)
		}
	}
	plan, err := h.PlanConnect(host.Connecting{Program: "cursor", Project: "~/shop"})
	if err != nil || plan.File != "~/shop/.cursor/mcp.json" {
		t.Errorf("%+v, %v", plan, err)
	}
	if _, err := h.PlanConnect(host.Connecting{Program: "nobody"}); coded.Of(err) != "program-unknown" {
		t.Errorf("an unknown program: %v", err)
	}
}

// TestTwoEditsAreUndoneTogether: to the bytes before the first, or, where somebody
// edited in between, with that edit kept. No backup is left that nobody needs.
func TestTwoEditsAreUndoneTogether(t *testing.T) {
	for _, row := range []struct {
		between, after string
		exact          bool
	}{
		{"", "", true},
		{"// theirs\n", "// theirs\n", false},
	} {
		r := newRig(t)
		r.programs()
		file := filepath.Join(r.home, ".cursor/mcp.json")
		original, _ := os.ReadFile(file)
		h := r.withSecrets()
		if _, err := h.Import(t.Context(), host.Importing{}, operator); err != nil {
			t.Fatal(err)
		}
		connect := func(remove bool) {
			t.Helper()
			what := host.Connecting{Program: "cursor", RemoveImported: remove}
			plan, err := h.PlanConnect(what)
			if err != nil {
				t.Fatal(err)
			}
			what.Plan = plan.Plan()
			if _, err := h.Connect(t.Context(), what, operator); err != nil {
				t.Fatal(err)
			}
		}
		connect(false)
		now, _ := os.ReadFile(file)
		r.write(file, string(now)+row.between)
		connect(true)
		undo, err := h.PlanDisconnect(host.Connecting{Program: "cursor"})
		if err != nil || undo.Exact != row.exact {
			t.Fatalf("%+v, %v", undo, err)
		}
		if _, err := h.Disconnect(t.Context(), host.Connecting{Program: "cursor", Plan: undo.Plan()}, operator); err != nil {
			t.Fatal(err)
		}
		if now, _ := os.ReadFile(file); string(now) != string(original)+row.after {
			t.Errorf("after the undo it is\n%s\nnot\n%s", now, string(original)+row.after)
		}
		if left, err := os.ReadDir(r.places.Backups()); err != nil || len(left) != 1 || left[0].Name() != "connections.json" {
			t.Errorf("left: %v, %v", left, err)
		}
		r.close(h)
	}
}
