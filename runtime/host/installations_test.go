package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/host"
	"sallyport/runtime/install"
)

// source makes a plugin's folder that nobody looks for plugins in.
func (r *rig) source(name, version string) string {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.write(filepath.Join(dir, "plugin.json"),
		`{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"`+name+`","version":"`+version+`"}`)
	r.write(filepath.Join(dir, "mcp.json"),
		`{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{"main":{"type":"stdio","command":"node","args":["server.js"]}}}`)
	return dir
}

// asked stages a folder and returns the question.
func (r *rig) asked(h *host.Host, dir string) approvals.Decision {
	r.t.Helper()
	return r.askedWith(h, dir, nil, nil)
}

// askedWith is asked with the operator's words about the connector that it is made of.
func (r *rig) askedWith(h *host.Host, dir string, env map[string]string, inherit []string) approvals.Decision {
	r.t.Helper()
	begun := host.InstallWith(h, install.Source{Kind: install.Folder, Path: dir}, env, inherit, operator)
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	now, err := h.Installation(ctx, begun.ID, 1<<30)
	if err != nil || now.State != host.Asked {
		r.t.Fatalf("the installation is %+v (%v)", now, err)
	}
	d, err := h.Gate.Decision(ctx, now.Decision)
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

func (r *rig) staged() []string {
	r.t.Helper()
	entries, err := os.ReadDir(r.places.Staging())
	if err != nil {
		r.t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func yes(t *testing.T, h *host.Host, d approvals.Decision) approvals.Decision {
	t.Helper()
	done, err := h.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func has(t *testing.T, h *host.Host, plugin, version string) bool {
	t.Helper()
	found, err := h.Listing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, ok := found.Plugin(plugin)
	return ok && p.Version == version
}

func TestABundleIsInstalledUpdatedPutBackAndRemoved(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	first := r.asked(h, r.source("demo", "1.0.0"))
	if has(t, h, "demo", "1.0.0") {
		t.Fatal("it is installed before anybody answered")
	}
	if done := yes(t, h, first); done.State != approvals.DecisionAllowed || !has(t, h, "demo", "1.0.0") {
		t.Fatalf("after the yes it is %s", done.State)
	}
	second := r.asked(h, r.source("demo", "2.0.0"))
	if second.Action != approvals.ActUpdate || second.Bundle.Replaces.Version != "1.0.0" || second.Bundle.Changes.Modified != 1 {
		t.Fatalf("the question of the update is %+v", second.Bundle)
	}
	yes(t, h, second)
	if !has(t, h, "demo", "2.0.0") || len(r.staged()) != 0 {
		t.Fatalf("the update is not there, or %q stays staged", r.staged())
	}
	back, err := h.AskUndo(t.Context(), "demo", operator)
	if err != nil {
		t.Fatal(err)
	}
	yes(t, h, back)
	if !has(t, h, "demo", "1.0.0") {
		t.Fatal("the version before is not there again")
	}
	data := filepath.Join(r.places.PluginData("demo"), "kept")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	gone, err := h.AskUninstall(t.Context(), "demo", false, operator)
	if err != nil {
		t.Fatal(err)
	}
	yes(t, h, gone)
	if has(t, h, "demo", "1.0.0") {
		t.Error("it is still there")
	}
	if _, err := os.Stat(data); err != nil {
		t.Error("what it had stored is gone, though nobody said so")
	}
}

func TestRemovingWithEverythingItStored(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	yes(t, h, r.asked(h, r.source("demo", "1.0.0")))
	if err := os.MkdirAll(r.places.PluginData("demo"), 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := h.AskUninstall(t.Context(), "demo", true, operator)
	if err != nil {
		t.Fatal(err)
	}
	yes(t, h, d)
	if _, err := os.Stat(r.places.PluginData("demo")); !os.IsNotExist(err) {
		t.Errorf("what it had stored is still there: %v", err)
	}
}

// What was reviewed is what is activated: the copy is digested again after the
// answer, and so is what it would replace.
func TestWhatChangedSinceTheQuestionIsNotInstalled(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, r *rig, h *host.Host, d approvals.Decision){
		"a byte of the staged copy": func(t *testing.T, r *rig, _ *host.Host, d approvals.Decision) {
			path := filepath.Join(r.places.Staging(), d.Bundle.Staged, "tree", "mcp.json")
			if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a file more in the staged copy": func(_ *testing.T, r *rig, _ *host.Host, d approvals.Decision) {
			r.write(filepath.Join(r.places.Staging(), d.Bundle.Staged, "tree", "more.js"), "x")
		},
		"another version is installed meanwhile": func(t *testing.T, r *rig, h *host.Host, d approvals.Decision) {
			// By the installer itself: a question would supersede the first one.
			staged, err := h.Installer.Stage(t.Context(), install.Source{Kind: install.Folder, Path: r.source("demo", "9.0.0")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Installer.Activate(t.Context(), staged); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			h := r.open()
			defer r.close(h)
			d := r.asked(h, r.source("demo", "1.0.0"))
			change(t, r, h, d)
			done, err := h.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator)
			if coded.Of(err) != "changed-since-asked" || done.State != approvals.DecisionChanged {
				t.Fatalf("it is %s (%v)", done.State, err)
			}
			if has(t, h, "demo", "1.0.0") {
				t.Error("it is installed all the same")
			}
		})
	}
}

func TestANoLeavesNothing(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	d := r.asked(h, r.source("demo", "1.0.0"))
	if len(r.staged()) != 1 {
		t.Fatalf("staged is %q", r.staged())
	}
	if _, err := h.Answer(t.Context(), d.ID, approvals.Answer{}, operator); err != nil {
		t.Fatal(err)
	}
	if len(r.staged()) != 0 || has(t, h, "demo", "1.0.0") {
		t.Errorf("after the no %q is staged", r.staged())
	}
}

// A question survives a restart with the copy that it is about; what no question needs
// does not.
func TestAQuestionAboutABundleSurvivesARestart(t *testing.T) {
	r := newRig(t)
	h := r.open()
	d := r.asked(h, r.source("demo", "1.0.0"))
	if _, err := h.Installer.Stage(t.Context(), install.Source{Kind: install.Folder, Path: r.source("other", "1.0.0")}, nil); err != nil {
		t.Fatal(err)
	}
	r.close(h)
	h = r.open()
	defer r.close(h)
	if got := r.staged(); len(got) != 1 || got[0] != d.Bundle.Staged {
		t.Fatalf("after the restart %q is staged", got)
	}
	yes(t, h, d)
	if !has(t, h, "demo", "1.0.0") {
		t.Error("it is not installed")
	}
}

// Killed between the yes and the move, or after it: the decision says what is true.
func TestWhatAKilledRunHadBegunIsToldAsItIs(t *testing.T) {
	for name, activated := range map[string]bool{"before it moved": false, "after it moved": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			h := r.open()
			d := r.asked(h, r.source("demo", "1.0.0"))
			if _, err := h.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator); err != nil {
				t.Fatal(err)
			}
			if activated {
				staged, err := h.Installer.Staged(t.Context(), d.Bundle.Staged)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := h.Installer.Activate(t.Context(), staged); err != nil {
					t.Fatal(err)
				}
			}
			r.close(h)
			h = r.open()
			defer r.close(h)
			got, err := h.Gate.Decision(t.Context(), d.ID)
			if err != nil {
				t.Fatal(err)
			}
			want := approvals.DecisionFailed
			if activated {
				want = approvals.DecisionAllowed
			}
			if got.State != want || has(t, h, "demo", "1.0.0") != activated {
				t.Errorf("the decision is %s (%s)", got.State, got.Code)
			}
		})
	}
}

func TestAnInstallationThatIsCancelled(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	dir := r.source("demo", "1.0.0")
	for i := range 3000 {
		r.write(filepath.Join(dir, "f"+string(rune('a'+i%26))+time.Duration(i).String()), "x")
	}
	begun := h.Install(install.Source{Kind: install.Folder, Path: dir}, operator)
	if _, err := h.CancelInstallation(begun.ID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	now, err := h.Installation(ctx, begun.ID, 1<<30)
	if err != nil || now.State != host.Cancelled {
		t.Fatalf("it is %+v (%v)", now, err)
	}
	if len(r.staged()) != 0 {
		t.Errorf("%q is left", r.staged())
	}
	if _, err := h.Installation(ctx, "i-none", 0); coded.Of(err) != "installation-unknown" {
		t.Errorf("one that never was says %v", err)
	}
}

// What waits for an answer is still there after a start at which the keyring had not
// yet given the seal key: no decision counts then, so every question looks forgotten.
func TestAStagedBundleOutlivesAStartWithoutTheSealKey(t *testing.T) {
	r, ring := newRig(t), newKeyring()
	r.keyring = ring
	h := r.open()
	d := r.asked(h, r.source("demo", "1.0.0"))
	if h.Gate.KeyPlace() != approvals.KeyInKeyring {
		t.Fatalf("the key is in %q", h.Gate.KeyPlace())
	}
	r.close(h)

	release := ring.hold("get")
	defer release()
	h = r.open()
	defer r.close(h)
	if h.Gate.Waiting() == nil {
		t.Fatal("the key is there already")
	}
	if got := r.staged(); len(got) != 1 {
		t.Errorf("staged: %v", got)
	}
	release()
	becomes(t, "the key is there", func() bool { return h.Gate.Waiting() == nil })
	if done := yes(t, h, d); done.State != approvals.DecisionAllowed || !has(t, h, "demo", "1.0.0") {
		t.Errorf("after the yes it is %s", done.State)
	}
}

// What an earlier run was killed in the middle of is told as soon as decisions count,
// also where the keyring gives the seal key late; then it can be asked about again.
func TestWhatWasInterruptedIsToldOnceTheSealKeyIsThere(t *testing.T) {
	r, ring := newRig(t), newKeyring()
	r.keyring = ring
	h := r.open()
	d := r.asked(h, r.source("demo", "1.0.0"))
	if _, err := h.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator); err != nil {
		t.Fatal(err) // which nobody carries out
	}
	r.close(h)

	release := ring.hold("get")
	defer release()
	h = r.open()
	defer r.close(h)
	h.Start()
	release()
	becomes(t, "the decision is over", func() bool {
		got, err := h.Gate.Decision(t.Context(), d.ID)
		return err == nil && !got.Open()
	})
	if got, err := h.Gate.Decision(t.Context(), d.ID); err != nil || got.State != approvals.DecisionFailed || got.Code != "interrupted" {
		t.Errorf("it is %s %s (%v)", got.State, got.Code, err)
	}
	if done := yes(t, h, r.asked(h, r.source("demo", "1.0.0"))); done.State != approvals.DecisionAllowed {
		t.Errorf("asked anew it is %s", done.State)
	}
}

// What the operator had written about a connector goes with the bundle that is made of
// it, by the yes and not before.
func TestReferencesAreCarriedOverByTheYes(t *testing.T) {
	for answer, carried := range map[bool]bool{true: true, false: false} {
		r := newRig(t)
		h := r.open()
		d := r.askedWith(h, r.source("demo", "1.0.0"), map[string]string{"TOKEN": "secret:TOKEN"}, []string{"HOME2"})
		if _, err := os.Stat(r.places.ConfigFile()); !os.IsNotExist(err) {
			t.Errorf("config.json is there before anybody answered: %v", err)
		}
		if _, err := h.Answer(t.Context(), d.ID, approvals.Answer{Allow: answer}, operator); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(r.places.ConfigFile())
		if got := err == nil && strings.Contains(string(raw), `"TOKEN": "secret:TOKEN"`) && strings.Contains(string(raw), "HOME2"); got != carried {
			t.Errorf("after %v config.json is %s (%v)", answer, raw, err)
		}
		r.close(h)
	}
}
