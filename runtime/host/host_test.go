package host_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sallyport/internal/coded"
	"sallyport/internal/fakeserver/fakeservertest"
	"sallyport/internal/loopback"
	"sallyport/runtime/approvals"
	"sallyport/runtime/health"
	"sallyport/runtime/host"
	"sallyport/runtime/plugins"
	"sallyport/runtime/process"
	"sallyport/runtime/secrets"
)

// TestMain is also the shim that sets a child's limits and becomes it: the host
// starts children through the program that it is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.ShimArg {
		process.ShimMain(os.Args[2:])
	}
	if len(os.Args) > 2 && os.Args[1] == browserArg {
		beABrowser(os.Args[2])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var operator = approvals.By{User: "tester", Via: approvals.ViaCLI}

// rig is the places of one installation.
type rig struct {
	t      *testing.T
	places host.Places
	home   string
	// keyring takes the place of the system's; nil is one that is not there.
	keyring secrets.Backend
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, places: host.PlacesIn(filepath.Join(dir, "base")), home: filepath.Join(dir, "home")}
	t.Cleanup(func() { // snapshots are read-only
		filepath.WalkDir(r.places.Data, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				return os.Chmod(path, 0o700)
			}
			return err
		})
	})
	return r
}

// open opens the host; whoever opened it closes it.
func (r *rig) open() *host.Host {
	r.t.Helper()
	h, err := r.try()
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *rig) try() (*host.Host, error) {
	return host.Open(r.t.Context(), host.Config{Places: r.places, Version: "1.2.3", Home: r.home, Keyring: r.keyring,
		Environ: []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh"}})
}

func (r *rig) close(h *host.Host) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := h.Close(ctx); err != nil {
		r.t.Error(err)
	}
}

// install puts a package with the fake server into the data folder.
func (r *rig) install(name, behaviour string) plugins.ID {
	r.t.Helper()
	dir := filepath.Join(r.places.Plugins(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	program := filepath.Base(fakeservertest.Build(r.t, dir))
	r.write(filepath.Join(dir, "plugin.json"),
		`{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"`+name+`","version":"1.0.0"}`)
	r.write(filepath.Join(dir, "mcp.json"),
		`{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{"main":{"type":"stdio","command":"./`+program+`","args":["`+behaviour+`"]}}}`)
	return plugins.ID{Plugin: name, Server: "main"}
}

func (r *rig) write(path, text string) {
	r.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// approve answers both questions with yes.
func (r *rig) approve(h *host.Host, id plugins.ID, tools ...string) {
	r.t.Helper()
	asked, err := h.Ask(r.t.Context(), id, operator)
	if err != nil {
		r.t.Fatal(err)
	}
	offered, err := h.Answer(r.t.Context(), asked.ID, approvals.Answer{Allow: true}, operator)
	if err != nil {
		r.t.Fatal(err)
	}
	if offered.Stage != approvals.StageTools {
		r.t.Fatalf("after the first answer the stage is %s", offered.Stage)
	}
	if _, err := h.Answer(r.t.Context(), offered.ID, approvals.Answer{Allow: true, Tools: tools, Always: true}, operator); err != nil {
		r.t.Fatal(err)
	}
}

func call(t *testing.T, h *host.Host, id plugins.ID, tool string) error {
	t.Helper()
	_, err := h.Call(t.Context(), approvals.ViaCLI, id, tool, []byte(`{"name":"`+tool+`","arguments":{}}`))
	return err
}

func TestOpenAndCloseLeaveNothing(t *testing.T) {
	r := newRig(t)
	for range 5 {
		h := r.open()
		r.close(h)
		r.close(h) // again is the same
	}
}

func TestAServedHostLeavesNothing(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	h := r.open()
	r.approve(h, id, "go", "pid")
	r.close(h)
	for range 5 {
		h := r.open()
		h.Start()
		if err := call(t, h, id, "go"); err != nil {
			t.Error(err)
		}
		r.close(h)
	}
	if err := call(t, h, id, "go"); err == nil {
		t.Error("a closed host called")
	}
}

// A host that is closed while it still starts, scans and asks ends all of it.
func TestCloseAtOnce(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	for range 5 {
		h := r.open()
		h.Start()
		asked := make(chan error, 1)
		go func() {
			_, err := h.Ask(context.Background(), id, operator)
			asked <- err
		}()
		r.close(h)
		<-asked // with whatever it says: it comes back
	}
}

func TestOneOwnerOfAFolder(t *testing.T) {
	r := newRig(t)
	h := r.open()
	if second, err := r.try(); !errors.Is(err, loopback.ErrHeld) || second != nil {
		t.Errorf("a second owner: %v", err)
	}
	r.close(h)
	r.close(r.open())
}

// Whatever cannot be made of the folders leaves no lock and no goroutine behind.
func TestAnOpenThatFailsGivesTheFolderBack(t *testing.T) {
	r := newRig(t)
	r.close(r.open())
	token := r.places.TokenFile("operator")
	kept, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	r.write(token, "no token")
	if _, err := r.try(); coded.Of(err) != "token-damaged" {
		t.Errorf("got %v", err)
	}
	if now, err := os.ReadFile(token); err != nil || string(now) != "no token" {
		t.Errorf("the file was overwritten: %q, %v", now, err)
	}
	r.write(token, string(kept))
	r.close(r.open())
}

// A store that cannot be used is no error: the host says so and starts nothing.
func TestAFaultOfTheStoreIsTold(t *testing.T) {
	r := newRig(t)
	r.close(r.open())
	r.write(r.places.Database(), strings.Repeat("garbage", 1000))
	h := r.open()
	h.Start()
	defer r.close(h)
	if coded.Of(h.Fault()) != "store-damaged" || h.Gate != nil || h.Pool != nil {
		t.Errorf("fault %v, gate %v, pool %v", h.Fault(), h.Gate, h.Pool)
	}
	if !slices.Contains(h.Health.Failing(), health.StoreDamaged) {
		t.Errorf("health fails with %v", h.Health.Failing())
	}
}

// What a refusal says is for people and scripts: it has a code, and no path of the
// user's.
func TestRefusalsSpeakOfNoPath(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	h := r.open()
	defer r.close(h)
	if err := call(t, h, id, "go"); coded.Of(err) != "never-approved" || strings.Contains(err.Error(), r.places.Data) {
		t.Errorf("got %v", err)
	}
	r.approve(h, id, "go")
	if err := call(t, h, id, "env"); coded.Of(err) != "permission-denied" {
		t.Errorf("a tool that was not chosen: %v", err)
	}
	if err := call(t, h, plugins.ID{Plugin: "nobody", Server: "main"}, "go"); coded.Of(err) == "" || strings.Contains(err.Error(), r.places.Data) {
		t.Errorf("got %v", err)
	}
}

// A first try that fails records no approval and leaves nothing (spec/approval.md 4.6).
func TestATryThatFailsApprovesNothing(t *testing.T) {
	r := newRig(t)
	for _, behaviour := range []string{"fails", "bad-version"} {
		id := r.install(behaviour, behaviour)
		h := r.open()
		asked, err := h.Ask(t.Context(), id, operator)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Answer(t.Context(), asked.ID, approvals.Answer{Allow: true}, operator); err == nil {
			t.Errorf("%s: the try did not fail", behaviour)
		}
		if status := h.Gate.Status(t.Context(), id); status.State == approvals.Enabled || status.State == approvals.ToolsRequired {
			t.Errorf("%s is %s", behaviour, status.State)
		}
		if _, ok := h.Gate.Approved(id); ok {
			t.Errorf("%s is approved", behaviour)
		}
		if n := len(h.Pool.Running()); n != 0 {
			t.Errorf("%s: %d run", behaviour, n)
		}
		r.close(h)
	}
}
