//go:build linux

package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/internal/keyringtest"
	"sallyport/internal/npmtest"
	"sallyport/runtime/plugins"
	"sallyport/runtime/signature"
)

// bundles makes MCP bundles with the format's own tool.
type bundles struct {
	*home
	tool string // the folder that it is installed in
}

func newBundles(t testing.TB, h *home) bundles {
	return bundles{h, npmtest.Install(t, filepath.Join("testdata", "mcpb"))}
}

// mcpb runs the tool to its end.
func (b bundles) mcpb(args ...string) outcome {
	b.t.Helper()
	cmd := exec.Command(filepath.Join(b.tool, "node_modules", ".bin", "mcpb"), args...)
	cmd.Env, cmd.Dir = b.env, b.dir
	return b.finish(cmd, commandLimit)
}

// source copies a folder of testdata/mcpb into the home.
func (b bundles) source(name string) string {
	b.t.Helper()
	dir := filepath.Join(b.t.TempDir(), name)
	b.copyTree(filepath.Join("testdata", "mcpb", name), dir)
	return dir
}

// pack makes NAME.mcpb of a folder.
func (b bundles) pack(source, name string) string {
	b.t.Helper()
	file := filepath.Join(b.dir, name+".mcpb")
	if got := b.mcpb("pack", source, file); got.code != 0 {
		b.t.Fatalf("mcpb pack: %+v", got)
	}
	return file
}

// keyPair writes a new key and a certificate that it signed itself.
func (b bundles) keyPair(holder string) (cert, key string, fingerprint string) {
	b.t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: holder},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		b.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		b.t.Fatal(err)
	}
	folder := b.t.TempDir()
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	sum := sha256.Sum256(der)
	return cert, key, hex.EncodeToString(sum[:])
}

// sign signs a copy of a bundle.
func (b bundles) sign(file, cert, key string) string {
	b.t.Helper()
	signed := strings.TrimSuffix(file, ".mcpb") + "-signed.mcpb"
	b.copyTree(file, signed)
	if got := b.mcpb("sign", signed, "--cert", cert, "--key", key); got.code != 0 || !strings.Contains(got.stdout, "Successfully signed") {
		b.t.Fatalf("mcpb sign: %+v", got)
	}
	return signed
}

func (b bundles) verify(file string) (signature.Report, error) {
	b.t.Helper()
	f, err := os.Open(file)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		b.t.Fatal(err)
	}
	return signature.Verify(b.t.Context(), f, info.Size())
}

// edit changes a manifest.json.
func (b bundles) edit(source string, change func(object)) {
	b.t.Helper()
	path := filepath.Join(source, "manifest.json")
	raw, err := os.ReadFile(path)
	manifest := object{}
	if err == nil {
		err = json.Unmarshal(raw, &manifest)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	change(manifest)
	if err := os.WriteFile(path, encode(b.t, manifest), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// greeter is a bundle of type node, begun by the tool, with values for its user to
// give.
func (b bundles) greeter(version string) string {
	b.t.Helper()
	source := b.source("node")
	if got := b.mcpb("init", "--yes", source); got.code != 0 {
		b.t.Fatalf("mcpb init: %+v", got)
	}
	b.edit(source, func(m object) {
		m["version"] = version
		config := m["server"].(object)["mcp_config"].(object)
		config["args"] = []any{"${__dirname}/server/index.js", "${user_config.names}", "${user_config.nobody}"}
		config["env"] = object{"API_KEY": "${user_config.api_key}", "GREETING": "${user_config.greeting}"}
		m["user_config"] = object{
			"names":    object{"type": "file", "title": "Names", "description": "Whom to greet", "multiple": true, "required": true},
			"nobody":   object{"type": "string", "title": "Nobody", "description": "Left blank"},
			"greeting": object{"type": "string", "title": "Greeting", "description": "How to greet", "default": "hello"},
			"api_key":  object{"type": "string", "title": "Key", "description": "The key", "sensitive": true, "required": true},
		}
	})
	return b.pack(source, "greeter-"+version)
}

// A bundle made and signed by the format's own tool is installed, asks for its
// values, runs as approved, and is somebody else's when another key signs it.
func TestASignedMCPBundleOfItsOwnTool(t *testing.T) {
	t.Parallel()
	b := newBundles(t, newHome(t))
	b.in(keyringtest.Unlocked(t))
	cert, key, fingerprint := b.keyPair("Jane Doe")
	signed := b.sign(b.greeter("1.2.3"), cert, key)

	report, err := b.verify(signed)
	if err != nil || report.State != signature.Valid || report.Certificate.SHA256 != fingerprint || report.Publisher.Vouched {
		t.Fatalf("%+v %v", report, err)
	}
	check := exec.Command("node", filepath.Join("testdata", "mcpb", "check.mjs"), b.tool, signed)
	if out, err := check.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != fingerprint {
		t.Errorf("the library that made the signature says of it: %v\n%s", err, out)
	}

	contains(t, "the installation", b.ok("install", signed, "--yes"), "greeter 1.2.3 is installed")
	contains(t, "what is there", b.ok("plugins", "show", "greeter"), `"Jane Doe"`)
	if got := b.connector("greeter/main"); got.State != "invalid" || got.Reason != "user-config-missing" {
		t.Fatalf("%+v", got)
	}
	give := b.command("config", "greeter", "--secret", "api_key", "names="+b.dir+"/Ann", "names="+b.dir+"/Bob")
	give.Stdin = strings.NewReader("hunter2")
	if got := b.finish(give, commandLimit); got.code != 0 || strings.Contains(got.stdout, "hunter2") {
		t.Fatalf("%+v", got)
	}
	b.ok("approve", "greeter", "--yes", "--tools", "greet")
	contains(t, "the greeting", b.ok("call", "greeter", "greet"), "hello to "+b.dir+"/Ann and "+b.dir+"/Bob; key there")

	// The same author, a new version; then the same again, signed by another.
	b.ok("install", b.sign(b.greeter("1.2.4"), cert, key), "--yes")
	if got := b.connector("greeter/main"); got.Reason != "version-changed" {
		t.Errorf("the same publisher: %+v", got)
	}
	b.ok("approve", "greeter", "--yes", "--tools", "greet")
	otherCert, otherKey, _ := b.keyPair("Jane Doe")
	b.ok("install", b.sign(b.greeter("1.2.5"), otherCert, otherKey), "--yes")
	if got := b.connector("greeter/main"); got.Reason != "publisher-changed" {
		t.Errorf("another key with the same name: %+v", got)
	}
	b.ok("approve", "greeter", "--yes", "--tools", "greet")
	b.ok("install", b.greeter("1.2.6"), "--yes")
	if got := b.connector("greeter/main"); got.Reason != "publisher-changed" {
		t.Errorf("no signature any more: %+v", got)
	}
}

// What the tool's own verify says, and what we say. It calls everything unsigned that
// no authority vouches for, and what is broken, too.
func TestMCPVerifyAndOurs(t *testing.T) {
	t.Parallel()
	b := newBundles(t, newHome(t))
	cert, key, _ := b.keyPair("Jane Doe")
	plain := b.pack(b.source("python"), "counter")
	signed := b.sign(plain, cert, key)
	raw, err := os.ReadFile(signed)
	if err != nil {
		t.Fatal(err)
	}
	raw[60] ^= 1
	broken := filepath.Join(b.dir, "broken.mcpb")
	if err := os.WriteFile(broken, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		file  string
		state signature.State
	}{{plain, signature.Unsigned}, {signed, signature.Valid}, {broken, signature.Broken}} {
		theirs := b.mcpb("verify", row.file)
		if theirs.code == 0 || !strings.Contains(theirs.stdout+theirs.stderr, "not signed") {
			t.Errorf("%s: mcpb verify says %+v", filepath.Base(row.file), theirs)
		}
		if report, err := b.verify(row.file); report.State != row.state || (err != nil) != (row.state == signature.Broken) {
			t.Errorf("%s: we say %s %v", filepath.Base(row.file), report.State, err)
		}
	}
	if got := b.run("install", broken, "--yes"); got.code != 1 || !strings.Contains(got.stderr, "signature-mismatch") {
		t.Errorf("a broken bundle: %+v", got)
	}
	// Its unsign gives back the bundle that we say was signed.
	if got := b.mcpb("unsign", signed); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	want, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(signed); err != nil || string(got) != string(want) {
		t.Errorf("unsigned again it is another file: %v", err)
	}
}

// Types python and binary. A program that lost its executable bit on the way has it
// again after the installation (C47).
func TestMCPBundlesOfEveryTypeRun(t *testing.T) {
	t.Parallel()
	b := newBundles(t, newHome(t))
	b.ok("install", b.pack(b.source("python"), "counter"), "--yes")
	b.ok("approve", "counter", "--yes", "--tools", "count")
	contains(t, "the python server", b.ok("call", "counter", "count"), "1 2 3 from lib")
	var shown struct {
		Declares struct {
			Tools []struct{ Name, Description string }
		}
		Format string
	}
	b.read(&shown, "plugins", "show", "counter")
	if shown.Format != "mcpb-0.1" || len(shown.Declares.Tools) != 1 || shown.Declares.Tools[0].Description != "Counts to three" {
		t.Errorf("%+v", shown)
	}

	source := filepath.Join(b.dir, "source", "binary")
	b.copyTree(need(t, built.fakeserver), filepath.Join(source, "server", "my-server"))
	if err := os.Chmod(filepath.Join(source, "server", "my-server"), 0o644); err != nil {
		t.Fatal(err)
	}
	manifest := object{"manifest_version": "0.3", "name": "Fake Server", "version": "1.0.0", "description": "d", "author": object{"name": "a"},
		"server":        object{"type": "binary", "entry_point": "server/my-server", "mcp_config": object{"command": "server/my-server", "args": []any{"polite"}}},
		"compatibility": object{"platforms": []any{"linux"}}}
	if err := os.WriteFile(filepath.Join(source, "manifest.json"), encode(t, manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	b.ok("install", b.pack(source, "fake"), "--yes")
	b.ok("approve", "fake-server", "--yes", "--tools", "echo")
	b.ok("call", "fake-server", "echo")
}

// What the published schema of a version takes, we take, too; and of what it refuses,
// whatever decides about a launch.
func TestWeReadWhatThePublishedSchemasTake(t *testing.T) {
	t.Parallel()
	b := newBundles(t, newHome(t))
	const base = `{"manifest_version": "VERSION", "name": "demo", "version": "1.0.0", "description": "d", "author": {"name": "A"},
		"server": {"type": "node", "entry_point": "i.js", "mcp_config": {"command": "node"}}}`
	bothWays := 0
	for _, version := range []string{"0.1", "0.2", "0.3", "0.4"} {
		schema, err := jsonschema.NewCompiler().Compile(filepath.Join(b.tool, "node_modules", "@anthropic-ai", "mcpb", "schemas", "mcpb-manifest-v"+version+".schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			what   string
			launch bool // it is about the launch, where we are as strict
			change func(object)
		}{
			{"as it is", false, func(object) {}},
			{"the older name of the version", false, func(m object) { m["dxt_version"] = m["manifest_version"]; delete(m, "manifest_version") }},
			{"everything for display", false, func(m object) {
				m["display_name"], m["long_description"], m["license"], m["icon"] = "Demo", "long", "MIT", "icon.png"
				m["homepage"], m["support"], m["documentation"] = "https://e.com", "https://e.com", "https://e.com"
				m["repository"], m["keywords"], m["screenshots"] = object{"type": "git", "url": "https://e.com"}, []any{"a"}, []any{"s.png"}
				m["tools"], m["prompts"] = []any{object{"name": "a", "description": "b"}}, []any{object{"name": "p", "text": "t", "arguments": []any{"x"}}}
				m["tools_generated"], m["prompts_generated"] = true, false
				m["author"] = object{"name": "A", "email": "a@e.com", "url": "https://e.com"}
			}},
			{"every field of a launch", true, func(m object) {
				m["server"] = object{"type": "binary", "entry_point": "bin/x", "mcp_config": object{"command": "bin/x", "args": []any{"a"}, "env": object{"A": "1"},
					"platform_overrides": object{"win32": object{"command": "bin/x.exe"}, "darwin": object{"args": []any{}}, "linux": object{"env": object{}}}}}
			}},
			{"every type of a setting", true, func(m object) {
				settings := object{}
				for _, kind := range []string{"string", "number", "boolean", "directory", "file"} {
					settings[kind] = object{"type": kind, "title": "t", "description": "d", "required": true, "sensitive": false}
				}
				settings["bounded"] = object{"type": "number", "title": "t", "description": "d", "min": 1, "max": 10, "default": 3}
				settings["several"] = object{"type": "directory", "title": "t", "description": "d", "multiple": true, "default": []any{"${HOME}/a", "${HOME}/b"}}
				m["user_config"] = settings
			}},
			{"compatibility", true, func(m object) {
				m["compatibility"] = object{"claude_desktop": ">=1", "platforms": []any{"darwin", "win32", "linux"}, "runtimes": object{"node": ">=16"}}
			}},
			// The tool's page has it as optional in 0.4 and the schema does not; we take it.
			{"uv without a configuration", false, func(m object) { m["server"] = object{"type": "uv", "entry_point": "x.py"} }},
			{"an unknown type of server", true, func(m object) { m["server"].(object)["type"] = "docker" }},
			{"no command", true, func(m object) { m["server"].(object)["mcp_config"] = object{"args": []any{}} }},
			{"arguments that are numbers", true, func(m object) { m["server"].(object)["mcp_config"].(object)["args"] = []any{1} }},
			{"variables that are numbers", true, func(m object) { m["server"].(object)["mcp_config"].(object)["env"] = object{"PORT": 3000} }},
			{"an unknown type of setting", true, func(m object) { m["user_config"] = object{"a": object{"type": "x", "title": "t", "description": "d"}} }},
			{"a bound that is a text", true, func(m object) {
				m["user_config"] = object{"a": object{"type": "number", "title": "t", "description": "d", "max": "9"}}
			}},
			{"another version", true, func(m object) { m["manifest_version"] = "9.9" }},
		} {
			manifest := object{}
			if err := json.Unmarshal([]byte(strings.Replace(base, "VERSION", version, 1)), &manifest); err != nil {
				t.Fatal(err)
			}
			row.change(manifest)
			text := encode(t, manifest)
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			theirs := schema.Validate(value)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o644); err != nil {
				t.Fatal(err)
			}
			p, err := plugins.Load(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			ours := p.Invalid
			switch {
			case theirs == nil && ours != nil:
				t.Errorf("%s, %s: the schema takes it, we say %v", version, row.what, ours)
			case theirs != nil && ours == nil && row.launch:
				t.Errorf("%s, %s: we take it, the schema says %v", version, row.what, theirs)
			case theirs != nil && ours != nil:
				bothWays++
			}
		}
	}
	if bothWays < 20 {
		t.Errorf("both refused only %d manifests", bothWays)
	}
}
