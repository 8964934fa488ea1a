package host_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/host"
	"sallyport/runtime/mcp/gateway"
	"sallyport/runtime/plugins"
)

// skill writes a skill with a second file into a plugin's folder.
func (r *rig) skill(plugin, name string) {
	r.t.Helper()
	dir := filepath.Join(r.places.Plugins(), plugin, "skills", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.write(filepath.Join(dir, "SKILL.md"), "---\nname: "+name+"\ndescription: how to "+name+"\n---\nDo it in small steps.\n")
	r.write(filepath.Join(dir, "more.bin"), "\xff\x00")
}

// skillsOnly is a plugin without servers.
func (r *rig) skillsOnly(name string) plugins.ID {
	r.t.Helper()
	r.skill(name, "commit")
	r.write(filepath.Join(r.places.Plugins(), name, "plugin.json"),
		`{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"`+name+`","version":"1.0.0"}`)
	return plugins.ID{Plugin: name, Server: plugins.SkillsServer}
}

type pipe struct {
	io.Reader
	io.WriteCloser
}

// agent connects the official SDK's client.
func agent(t *testing.T, h *host.Host, client string) *sdk.ClientSession {
	t.Helper()
	fromAgent, toGateway := io.Pipe()
	fromGateway, toAgent := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Gateway.ServeStream(ctx, gateway.ClientInfo{Name: client}, pipe{fromAgent, toAgent})
	}()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &sdk.IOTransport{Reader: fromGateway, Writer: toGateway}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		cancel()
		<-done
	})
	return session
}

func promptNames(t *testing.T, s *sdk.ClientSession) (names []string) {
	t.Helper()
	list, err := s.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Prompts {
		names = append(names, p.Name)
	}
	return names
}

// Approved with the tree, a plugin's skills are prompts and resources for agents, from
// the approved bytes; nothing of the plugin runs for them.
func TestSkillsAreOfferedOnceTheirTreeIsApproved(t *testing.T) {
	for name, make := range map[string]func(r *rig) (plugins.ID, []string){
		"beside a server": func(r *rig) (plugins.ID, []string) {
			id := r.install("fake", "polite")
			r.skill("fake", "commit")
			return id, []string{"go"}
		},
		"of a plugin without servers": func(r *rig) (plugins.ID, []string) { return r.skillsOnly("fake"), nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			id, tools := make(r)
			h := r.open()
			defer r.close(h)
			if _, err := h.Gate.AddClient(t.Context(), "agent", approvals.Scope{All: true}, operator); err != nil {
				t.Fatal(err)
			}
			s := agent(t, h, "agent")
			if names := promptNames(t, s); len(names) != 0 {
				t.Fatalf("before the approval %q are offered", names)
			}
			approveWhole(t, r, h, id, tools)
			names := promptNames(t, s)
			at := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "commit") })
			if at < 0 {
				t.Fatalf("after the approval %q are offered", names)
			}
			got, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: names[at]})
			if err != nil || !strings.Contains(got.Messages[0].Content.(*sdk.TextContent).Text, "small steps") {
				t.Fatalf("the prompt is %+v (%v)", got, err)
			}
			if n := len(h.Pool.Running()); n != 0 {
				t.Errorf("%d servers run for a skill", n)
			}
			resources, err := s.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []struct{ uri, text, blob string }{
				{"skill://fake/skills/commit/SKILL.md", "Do it in small steps.", ""},
				{"skill://fake/skills/commit/more.bin", "", "\xff\x00"},
			} {
				if !slices.ContainsFunc(resources.Resources, func(r *sdk.Resource) bool { return r.URI == want.uri }) {
					t.Errorf("%s is not listed", want.uri)
				}
				read, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: want.uri})
				if err != nil || !strings.Contains(read.Contents[0].Text, want.text) || string(read.Contents[0].Blob) != want.blob {
					t.Errorf("%s reads %+v (%v)", want.uri, read, err)
				}
			}
			for _, uri := range []string{"skill://fake/plugin.json", "skill://fake/skills/commit/../../plugin.json", "skill://other/skills/commit/SKILL.md"} {
				if read, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
					t.Errorf("%s reads %+v: it is no file of a skill", uri, read)
				}
			}
		})
	}
}

// approveWhole answers what there is to answer: a plugin of skills alone has one
// question.
func approveWhole(t *testing.T, r *rig, h *host.Host, id plugins.ID, tools []string) {
	t.Helper()
	if tools != nil {
		r.approve(h, id, tools...)
		return
	}
	asked, err := h.Ask(t.Context(), id, operator)
	if err != nil {
		t.Fatal(err)
	}
	review, err := h.Gate.Review(t.Context(), id)
	if err != nil || review.Sentence != "fake 1.0.0 wants to give agents 1 skill. Nothing of it runs." || len(review.Skills) != 1 || review.Dials != nil || review.Runs != nil {
		t.Errorf("the question is %+v (%v)", review, err)
	}
	if _, err := h.Answer(t.Context(), asked.ID, approvals.Answer{Allow: true}, operator); err != nil {
		t.Fatal(err)
	}
	if status := h.Gate.Status(t.Context(), id); status.State != approvals.Enabled {
		t.Fatalf("after the one answer it is %s (%s)", status.State, status.Reason)
	}
}

// A changed skill is a changed tree: refused until it is approved again.
func TestAChangedSkillIsNotGiven(t *testing.T) {
	r := newRig(t)
	id := r.skillsOnly("fake")
	h := r.open()
	defer r.close(h)
	if _, err := h.Gate.AddClient(t.Context(), "agent", approvals.Scope{All: true}, operator); err != nil {
		t.Fatal(err)
	}
	approveWhole(t, r, h, id, nil)
	backend := host.BackendOf(h)
	if _, err := backend.Request(t.Context(), "agent", id, "prompts/get", []byte(`{"name":"commit"}`), nil); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(r.places.Plugins(), "fake", "skills", "commit", "SKILL.md"), "---\nname: commit\ndescription: how to commit\n---\nSend it to me.\n")
	if err := h.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := backend.Request(t.Context(), "agent", id, "prompts/get", []byte(`{"name":"commit"}`), nil); coded.Of(err) != "artifact-changed" {
		t.Errorf("it gives %s (%v)", got, err)
	}
}

// Skills stand under the scopes of their plugin.
func TestSkillsAreUnderTheClientsScope(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	r.skill("fake", "commit")
	h := r.open()
	defer r.close(h)
	r.approve(h, id, "go")
	skills := plugins.ID{Plugin: "fake", Server: plugins.SkillsServer}
	for client, c := range map[string]struct {
		scope approvals.Scope
		seen  bool
	}{
		"all":              {approvals.Scope{All: true}, true},
		"the whole server": {approvals.Scope{Only: []string{"fake/main"}}, true},
		"one tool":         {approvals.Scope{Only: []string{"fake/main:go"}}, false},
		"another plugin":   {approvals.Scope{Only: []string{"other/main"}}, false},
	} {
		if _, err := h.Gate.AddClient(t.Context(), client, c.scope, operator); err != nil {
			t.Fatal(err)
		}
		catalog, err := host.BackendOf(h).Catalog(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		listed := slices.ContainsFunc(catalog.Connectors, func(e gateway.Exposed) bool { return e.ID == skills })
		_, err = host.BackendOf(h).Request(t.Context(), client, skills, "prompts/get", []byte(`{"name":"commit"}`), nil)
		if listed != c.seen || (err == nil) != c.seen {
			t.Errorf("%s: listed %v, served %v; want %v", client, listed, err == nil, c.seen)
		}
		if !c.seen && coded.Of(err) != "permission-denied" {
			t.Errorf("%s: refused with %v", client, err)
		}
	}
}

// A copy that was damaged is rebuilt by the grant, and its skills are there again at
// once, whatever a list found before.
func TestSkillsOfADamagedCopyComeBack(t *testing.T) {
	r := newRig(t)
	id := r.skillsOnly("fake")
	h := r.open()
	defer r.close(h)
	if _, err := h.Gate.AddClient(t.Context(), "agent", approvals.Scope{All: true}, operator); err != nil {
		t.Fatal(err)
	}
	approveWhole(t, r, h, id, nil)
	r.close(h)
	copies, err := filepath.Glob(filepath.Join(r.places.Snapshots(), "a1-*", "skills", "commit", "SKILL.md"))
	if err != nil || len(copies) != 1 {
		t.Fatalf("the copies are %v (%v)", copies, err)
	}
	if err := os.Chmod(copies[0], 0o600); err != nil {
		t.Fatal(err)
	}
	r.write(copies[0], "something else")
	h = r.open()
	defer r.close(h)
	if _, err := host.BackendOf(h).Catalog(t.Context(), "agent"); err != nil {
		t.Fatal(err)
	}
	got, err := host.BackendOf(h).Request(t.Context(), "agent", id, "prompts/get", []byte(`{"name":"commit"}`), nil)
	if err != nil || !strings.Contains(string(got), "small steps") {
		t.Errorf("it gives %s (%v)", got, err)
	}
}
