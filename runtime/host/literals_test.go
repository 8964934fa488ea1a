package host_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/internal/fakeserver/fakeservertest"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/host"
	"sallyport/runtime/plugins"
)

// aToken has the shape of a credential and is none.
const aToken = "gh" + "p_0123456789abcdefghijklmnopqrstuvwxyz"

// withFile opens the host with an encrypted file in place of a keyring.
func (r *rig) withFile() *host.Host {
	r.t.Helper()
	h, err := host.Open(r.t.Context(), host.Config{Places: r.places, Version: "1.2.3", Home: r.home, SecretsPassphrase: []byte("correct horse"),
		Environ: []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh"}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.close(h) })
	return h
}

// declare gives the server of an installed package variables of its own.
func (r *rig) declare(id plugins.ID, env map[string]string) {
	r.t.Helper()
	path := filepath.Join(r.places.Plugins(), id.Plugin, "mcp.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(raw, &whole); err != nil {
		r.t.Fatal(err)
	}
	whole["mcpServers"].(map[string]any)[id.Server].(map[string]any)["env"] = env
	if raw, err = json.Marshal(whole); err != nil {
		r.t.Fatal(err)
	}
	r.write(path, string(raw))
}

func (r *rig) configure(text string) string {
	r.t.Helper()
	if err := os.MkdirAll(r.places.Config, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.write(r.places.ConfigFile(), text)
	return r.places.ConfigFile()
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// nowhere fails for each file of the installation that holds text, but those that are
// given.
func (r *rig) nowhere(text string, but ...string) {
	r.t.Helper()
	files := 0
	err := filepath.WalkDir(filepath.Dir(r.places.Data), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		for _, one := range but {
			if path == one {
				return nil
			}
		}
		files++
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), text) {
			r.t.Errorf("%s holds it", path)
		}
		return err
	})
	if err != nil || files < 5 {
		r.t.Errorf("%d files were read: %v", files, err)
	}
}

// spec/child-environment.md 5.1: a package's literal is moved to the keyring, and an
// entry of the operator's takes its place; the package stays as it is.
func TestALiteralOfAPackageIsMovedToTheKeyring(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	r.declare(id, map[string]string{"API_TOKEN": aToken, "MODE": "fast"})
	manifest := filepath.Join(r.places.Plugins(), "fake", "mcp.json")
	before := read(t, manifest)
	h := r.withFile()
	_, err := h.Ask(t.Context(), id, operator)
	if coded.Of(err) != "literal-secret" || !strings.Contains(nextOf(err), "sallyport secrets move fake/main API_TOKEN") {
		t.Fatalf("%v, next: %s", err, nextOf(err))
	}
	moved, err := h.MoveLiterals(t.Context(), id, nil, "", operator)
	if err != nil || len(moved) != 1 || moved[0] != (host.Moved{Name: "API_TOKEN", Secret: "API_TOKEN", File: "config.json", LeftIn: true}) {
		t.Fatalf("%+v, %v", moved, err)
	}
	if known, same, err := h.Secrets.Holds(t.Context(), "API_TOKEN", []byte(aToken)); !known || !same || err != nil {
		t.Errorf("the keyring has it: %v, unchanged: %v, %v", known, same, err)
	}
	if now := read(t, manifest); now != before {
		t.Errorf("the package was changed:\n%s", now)
	}
	if info, err := os.Stat(r.places.ConfigFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("config.json: %v, %v", info.Mode(), err)
	}
	r.approve(h, id, "env")
	review, err := h.Gate.Review(t.Context(), id)
	said, _ := json.Marshal(review)
	if err != nil || !strings.Contains(string(said), `"literal-left-in"`) || strings.Contains(string(said), aToken) {
		t.Errorf("the review: %v\n%s", err, said)
	}
	answer, err := h.Call(t.Context(), approvals.ViaCLI, id, "env", []byte(`{"name":"env","arguments":{}}`))
	if err != nil || !strings.Contains(string(answer), "API_TOKEN="+aToken) || !strings.Contains(string(answer), "MODE=fast") {
		t.Errorf("the server was given: %v\n%s", err, answer)
	}
	snapshots, _ := filepath.Glob(filepath.Join(r.places.Snapshots(), "*", "*", "mcp.json"))
	more, _ := filepath.Glob(filepath.Join(r.places.Snapshots(), "*", "mcp.json"))
	r.nowhere(aToken, append(append(snapshots, more...), manifest)...)
}

// The operator's own literal is replaced in place; everything else in the file stays.
func TestALiteralOfTheOperatorsIsReplacedInPlace(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	r.install("plain", "polite")
	path := r.configure("{\n   \"connectors\": {\n      \"plain/main\": { \"env\": {\"A\": \"1\"} },\n" +
		"      \"fake/main\": {\"env\": {\"API_TOKEN\": \"" + aToken + "\", \"LEVEL\": \"<info>\"}}\n   },\n   \"pluginFolders\": [\"~/elsewhere\"]\n}\n")
	want := strings.ReplaceAll(read(t, path), aToken, "secret:API_TOKEN")
	h := r.withFile()
	moved, err := h.MoveLiterals(t.Context(), id, []string{"API_TOKEN"}, "", operator)
	if err != nil || len(moved) != 1 || moved[0].LeftIn {
		t.Fatalf("%+v, %v", moved, err)
	}
	if now := read(t, path); now != want {
		t.Errorf("config.json is\n%s\nand not\n%s", now, want)
	}
	r.approve(h, id, "env")
	r.nowhere(aToken)
	page, err := h.Audit.Query(t.Context(), audit.Filter{Plugin: "fake"})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, record := range page.Records {
		found = found || record.Action == audit.Setting && record.Target == "config.json API_TOKEN secret:API_TOKEN" && record.Actor == "tester"
	}
	if !found {
		t.Errorf("the edit is not on record: %+v", page.Records)
	}
}

// What is on its way is refused before anything is kept or edited.
func TestAMoveThatIsRefusedChangesNothing(t *testing.T) {
	for _, row := range []struct {
		what    string
		config  string
		names   []string
		as      string
		code    string
		prepare func(h *host.Host)
	}{
		{what: "nothing looks like one", config: `{}`, code: "literal-none"},
		{what: "a placeholder that is not named", config: `{"connectors":{"fake/main":{"env":{"API_TOKEN":"your-token-here"}}}}`, code: "literal-placeholder"},
		{what: "no such variable", config: `{}`, names: []string{"NOBODY"}, code: "literal-unknown"},
		{what: "an argument", config: `{}`, names: []string{"args[0]"}, code: "literal-unknown"},
		{what: "another value of that name", config: `{"connectors":{"fake/main":{"env":{"API_TOKEN":"hunter2"}}}}`, code: "secret-name-taken",
			prepare: func(h *host.Host) { h.SetSecret(t.Context(), "API_TOKEN", []byte("another"), operator) }},
		{what: "a placeholder whose secret is not kept", config: `{"connectors":{"fake/main":{"env":{"API_TOKEN":"your-token-here"}}}}`,
			names: []string{"API_TOKEN"}, code: "secret-unknown"},
		{what: "a value that refers to something", config: `{"connectors":{"fake/main":{"env":{"API_TOKEN":"${LANG:-hunter2}"},"inherit":["LANG"]}}}`, code: "literal-mixed"},
		{what: "one name for two", config: `{"connectors":{"fake/main":{"env":{"A_TOKEN":"hunter2","B_TOKEN":"hunter2"}}}}`, as: "X", code: "literal-ambiguous"},
		{what: "a value where the name belongs", config: `{"connectors":{"fake/main":{"env":{"A_TOKEN":"hunter2"}}}}`, as: aToken, code: "secret-name-invalid"},
		{what: "a file that is damaged", config: `{"connectors":`, code: "literal-none"},
	} {
		t.Run(row.what, func(t *testing.T) {
			r := newRig(t)
			id := r.install("fake", "polite")
			path := r.configure(row.config)
			h := r.withFile()
			if row.prepare != nil {
				row.prepare(h)
			}
			before, err := h.Secrets.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = h.MoveLiterals(t.Context(), id, row.names, row.as, operator)
			if coded.Of(err) != row.code || nextOf(err) == "" {
				t.Errorf("%v, next: %q; want %s", err, nextOf(err), row.code)
			}
			if strings.Contains(err.Error()+nextOf(err), "hunter2") || row.as == aToken && strings.Contains(err.Error(), aToken) {
				t.Errorf("the refusal holds the value: %v", err)
			}
			after, err := h.Secrets.List(t.Context())
			if now := read(t, path); now != row.config || len(after) != len(before) || err != nil {
				t.Errorf("config.json is %s, %d secrets are kept: %v", now, len(after), err)
			}
		})
	}
}

// A second connector with the same value refers to the same secret.
func TestTheSameValueIsKeptOnce(t *testing.T) {
	r := newRig(t)
	one, two := r.install("one", "polite"), r.install("two", "polite")
	r.declare(one, map[string]string{"API_TOKEN": "hunter2"})
	r.declare(two, map[string]string{"API_TOKEN": "hunter2", "OTHER_TOKEN": "hunter3"})
	h := r.withFile()
	for _, id := range []plugins.ID{one, two} {
		if _, err := h.MoveLiterals(t.Context(), id, []string{"API_TOKEN"}, "", operator); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.MoveLiterals(t.Context(), two, []string{"OTHER_TOKEN"}, "TWO_TOKEN", operator); err != nil {
		t.Fatal(err)
	}
	kept, err := h.Secrets.List(t.Context())
	if err != nil || len(kept) != 2 || kept[0].Name != "API_TOKEN" || kept[1].Name != "TWO_TOKEN" {
		t.Errorf("%+v, %v", kept, err)
	}
	r.approve(h, two, "env")
}

// A placeholder gives way to a secret that is kept; a list of permissions that would
// take the reference away again gets the name.
func TestAPlaceholderIsReplacedByWhatIsKept(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	r.declare(id, map[string]string{"API_TOKEN": "<your token>"})
	r.configure(`{"connectors":{"fake/main":{"permissions":{"secrets":[]}}}}`)
	h := r.withFile()
	if _, err := h.Ask(t.Context(), id, operator); coded.Of(err) != "literal-placeholder" {
		t.Fatalf("%v", err)
	}
	if err := h.SetSecret(t.Context(), "API_TOKEN", []byte("the real one"), operator); err != nil {
		t.Fatal(err)
	}
	if _, err := h.MoveLiterals(t.Context(), id, []string{"API_TOKEN"}, "", operator); err != nil {
		t.Fatal(err)
	}
	r.approve(h, id, "env")
	answer, err := h.Call(t.Context(), approvals.ViaCLI, id, "env", []byte(`{"name":"env","arguments":{}}`))
	if err != nil || !strings.Contains(string(answer), "API_TOKEN=the real one") {
		t.Errorf("%v\n%s", err, answer)
	}
}

// The operator's word is written to config.json, ends the approval and can be taken
// back.
func TestAFalseAlarmIsSaidInTheConfiguration(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	r.declare(id, map[string]string{"STORE_TOKEN": "hunter2"})
	path := r.configure("{\n  \"pluginFolders\": []\n}\n")
	h := r.withFile()
	if err := h.NotSecret(t.Context(), id, "STORE", false, operator); coded.Of(err) != "literal-unknown" {
		t.Errorf("another name: %v", err)
	}
	if err := h.NotSecret(t.Context(), id, "STORE_TOKEN", true, operator); coded.Of(err) != "literal-unknown" {
		t.Errorf("taking back what was not said: %v", err)
	}
	for range 2 { // saying it again changes nothing
		if err := h.NotSecret(t.Context(), id, "STORE_TOKEN", false, operator); err != nil {
			t.Fatal(err)
		}
	}
	want := "{\n  \"pluginFolders\": [],\n  \"connectors\": {\n    \"fake/main\": {\n      \"notSecret\": [\"STORE_TOKEN\"]\n    }\n  }\n}\n"
	if now := read(t, path); now != want {
		t.Errorf("config.json is\n%s", now)
	}
	r.approve(h, id, "echo")
	if err := h.NotSecret(t.Context(), id, "STORE_TOKEN", true, operator); err != nil {
		t.Fatal(err)
	}
	if status := h.Gate.Status(t.Context(), id); status.Reason != "literal-secret" {
		t.Errorf("taken back: %+v", status)
	}
	if err := call(t, h, id, "echo"); err == nil {
		t.Error("it runs all the same")
	}
}

// A link to config.json stays one, and a file that changes meanwhile is not lost.
func TestTheOperatorsFileIsKept(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	r.declare(id, map[string]string{"STORE_TOKEN": "hunter2"})
	target := filepath.Join(t.TempDir(), "dotfiles.json")
	r.write(target, "{}")
	r.configure("{}")
	if err := os.Remove(r.places.ConfigFile()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, r.places.ConfigFile()); err != nil {
		t.Fatal(err)
	}
	h := r.withFile()
	if err := h.NotSecret(t.Context(), id, "STORE_TOKEN", false, operator); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(r.places.ConfigFile()); err != nil || to != target || !strings.Contains(read(t, target), "STORE_TOKEN") {
		t.Errorf("the link: %s, %v", to, err)
	}
	r.write(target, `{"connectors": {"a/b": {}, "a/b": {}}}`)
	if err := h.NotSecret(t.Context(), id, "STORE_TOKEN", false, operator); coded.Of(err) != "config-unusable" {
		t.Errorf("a file that cannot be understood: %v", err)
	}
}

func nextOf(err error) string {
	if refusal, ok := err.(*coded.Error); ok {
		return refusal.Next
	}
	return ""
}

// connectors.json is the operator's own file, comments and all.
func TestALiteralInConnectorsJSONIsReplacedInPlace(t *testing.T) {
	r := newRig(t)
	program := filepath.Join(r.places.Plugins(), "fake", "server")
	r.install("fake", "polite")
	found, err := filepath.Glob(filepath.Join(r.places.Plugins(), "fake", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if !strings.HasSuffix(path, ".json") {
			program = path
		}
	}
	text := "{\n  // mine\n  \"connectors\": {\n    \"by hand\": {\n      \"command\": \"" + program + "\", \"args\": [\"polite\"],\n" +
		"      \"env\": {\"API_TOKEN\": \"" + aToken + "\", /* fast */ \"MODE\": \"x\",},\n    },\n" +
		"    \"remote\": {\"url\": \"https://127.0.0.1:1/mcp\", \"headers\": {\"Authorization\": \"Bearer " + aToken + "\"}},\n" +
		"    \"stuck\": {\"command\": \"" + program + "\", \"args\": [\"polite\", \"--token=hunter2\"]},\n  },\n}\n"
	r.configure("{}")
	path := filepath.Join(r.places.Config, plugins.HandFile)
	r.write(path, text)
	h := r.withFile()
	id := plugins.ID{Plugin: plugins.ByHand, Server: "by hand"}
	moved, err := h.MoveLiterals(t.Context(), id, nil, "", operator)
	if err != nil || len(moved) != 1 || moved[0] != (host.Moved{Name: "API_TOKEN", Secret: "API_TOKEN", File: plugins.HandFile}) {
		t.Fatalf("%+v, %v", moved, err)
	}
	remote := plugins.ID{Plugin: plugins.ByHand, Server: "remote"}
	if moved, err = h.MoveLiterals(t.Context(), remote, nil, "", operator); err != nil || len(moved) != 1 || moved[0].Secret != "GITHUB_TOKEN" {
		t.Fatalf("%+v, %v", moved, err)
	}
	want := strings.Replace(text, `"API_TOKEN": "`+aToken, `"API_TOKEN": "secret:API_TOKEN`, 1)
	want = strings.Replace(want, "Bearer "+aToken, "Bearer ${secret:GITHUB_TOKEN}", 1)
	if now := read(t, path); now != want {
		t.Errorf("connectors.json is\n%s\nand not\n%s", now, want)
	}
	r.approve(h, id, "env")
	r.nowhere(aToken)

	stuck := plugins.ID{Plugin: plugins.ByHand, Server: "stuck"}
	for _, names := range [][]string{nil, {"args[1]"}} {
		if _, err := h.MoveLiterals(t.Context(), stuck, names, "", operator); coded.Of(err) != "literal-fixed" || !strings.Contains(nextOf(err), "environment variable") {
			t.Errorf("an argument: %v, next: %s", err, nextOf(err))
		}
	}
	if err := h.NotSecret(t.Context(), stuck, "args[1]", false, operator); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Ask(t.Context(), stuck, operator); err != nil {
		t.Errorf("asking after the word: %v", err)
	}
}

// A sensitive setting that was written out, and a credential in one that is not
// called sensitive, are moved from where the operator wrote them.
func TestALiteralInASettingIsMoved(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(r.places.Plugins(), "bundle")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.Base(fakeservertest.Build(t, dir))
	r.write(filepath.Join(dir, "manifest.json"), `{"manifest_version":"0.3","name":"bundle","version":"1.0.0","description":"d","author":{"name":"a"},
		"server":{"type":"binary","entry_point":"`+program+`","mcp_config":{"command":"${__dirname}/`+program+`","args":["polite"],
			"env":{"ONE":"${user_config.key}","TWO_TOKEN":"${user_config.open}"}}},
		"user_config":{"key":{"type":"string","title":"k","description":"d","sensitive":true,"required":true},
			"open":{"type":"string","title":"o","description":"d"}}}`)
	path := r.configure(`{"connectors": {"bundle/main": {"userConfig": {"key": "hunter2", "open": "hunter3"}}}}`)
	h := r.withFile()
	id := plugins.ID{Plugin: "bundle", Server: "main"}
	_, err := h.Ask(t.Context(), id, operator)
	if coded.Of(err) != "literal-secret" || !strings.Contains(nextOf(err), "sallyport secrets move "+id.String()+" userConfig.key") {
		t.Fatalf("%v, next: %s", err, nextOf(err))
	}
	for range 2 { // the first keeps the rest from being read
		if _, err := h.MoveLiterals(t.Context(), id, nil, "", operator); err != nil {
			t.Fatal(err)
		}
	}
	if now := read(t, path); strings.Contains(now, "hunter") || !strings.Contains(now, `"open": "secret:TWO_TOKEN"`) {
		t.Errorf("config.json is\n%s", now)
	}
	r.approve(h, id, "env")
	answer, err := h.Call(t.Context(), approvals.ViaCLI, id, "env", []byte(`{"name":"env","arguments":{}}`))
	if err != nil || !strings.Contains(string(answer), "ONE=hunter2") || !strings.Contains(string(answer), "TWO_TOKEN=hunter3") {
		t.Errorf("the server was given: %v\n%s", err, answer)
	}
}
