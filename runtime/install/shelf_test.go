package install

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
)

// stageText stages a demo whose one file holds text.
func stageText(t *testing.T, i *Installer, text string) *Staged {
	t.Helper()
	staged, err := i.Stage(t.Context(), source(t, files(t, map[string]string{"plugin.json": manifestJSON, "text": text})), nil)
	must(t, err)
	return staged
}

func activateText(t *testing.T, i *Installer, text string) Installed {
	t.Helper()
	installed, err := i.Activate(t.Context(), stageText(t, i, text))
	must(t, err)
	return installed
}

func TestInstallUpdateUndoRemove(t *testing.T) { // C51
	i := newInstaller(t)
	one := activateText(t, i, "one")
	if one.Previous != nil || read(t, one.Dir, "text") != "one" || one.Name != "demo" || one.Version != "1.0.0" {
		t.Errorf("installed %+v", one)
	}
	two := activateText(t, i, "two")
	if two.Previous == nil || two.Previous.Digest != one.Digest || read(t, i.config.Previous, "demo", "text") != "one" {
		t.Errorf("updated %+v", two)
	}
	three := activateText(t, i, "three")
	if three.Previous.Digest != two.Digest || read(t, i.config.Previous, "demo", "text") != "two" {
		t.Errorf("updated again %+v", three)
	}
	list, err := i.List()
	must(t, err)
	if len(list) != 1 || list[0].Digest != three.Digest {
		t.Errorf("installed are %+v", list)
	}
	undone, err := i.Undo(t.Context(), "demo")
	must(t, err)
	if undone.Digest != two.Digest || undone.Previous != nil || read(t, undone.Dir, "text") != "two" {
		t.Errorf("undone %+v", undone)
	}
	if _, err := i.Undo(t.Context(), "demo"); coded.Of(err) != "no-previous" {
		t.Errorf("undone twice: %v", err)
	}
	must(t, i.Remove(t.Context(), "demo"))
	wantEmpty(t, i.config.Staging, i.config.Plugins, i.config.Previous, i.config.Info)
	for _, name := range []string{"demo", "../demo", "", "."} {
		if err := i.Remove(t.Context(), name); coded.Of(err) != "not-installed" {
			t.Errorf("removing %q: %v", name, err)
		}
	}
}

func TestTheSameBundleOnceMoreKeepsTheOneBefore(t *testing.T) {
	i := newInstaller(t)
	one, two := activateText(t, i, "one"), activateText(t, i, "two")
	again := activateText(t, i, "two")
	if again.Digest != two.Digest || again.Previous == nil || again.Previous.Digest != one.Digest {
		t.Errorf("installed %+v", again)
	}
	if state(t, i) != "two one" {
		t.Errorf("there is %q", state(t, i))
	}
	wantEmpty(t, i.config.Staging)
}

func TestWhatWasReviewedIsWhatIsActivated(t *testing.T) {
	i := newInstaller(t)
	one := activateText(t, i, "one")
	for name, change := range map[string]func(dir string) error{
		"another byte":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "text"), []byte("evil"), 0o644) },
		"a new file":     func(dir string) error { return os.WriteFile(filepath.Join(dir, ".more"), nil, 0o644) },
		"a file less":    func(dir string) error { return os.Remove(filepath.Join(dir, "text")) },
		"a link outside": func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "etc")) },
	} {
		staged := stageText(t, i, "two")
		must(t, change(staged.Dir))
		if _, err := i.Activate(t.Context(), staged); coded.Of(err) != artifact.CodeChangedSinceAsked {
			t.Errorf("%s: %v", name, err)
		}
		now, err := i.Info("demo")
		must(t, err)
		if now.Digest != one.Digest || read(t, now.Dir, "text") != "one" {
			t.Errorf("%s: active is %+v", name, now)
		}
		must(t, staged.Discard())
	}
	staged := stageText(t, i, "two")
	must(t, staged.Discard())
	if _, err := i.Activate(t.Context(), staged); coded.Of(err) != "not-staged" {
		t.Errorf("after it was discarded: %v", err)
	}
}

func TestAPreviousVersionThatWasChangedIsNotPutBack(t *testing.T) {
	i := newInstaller(t)
	activateText(t, i, "one")
	two := activateText(t, i, "two")
	must(t, os.WriteFile(filepath.Join(i.config.Previous, "demo", "text"), []byte("evil"), 0o644))
	if _, err := i.Undo(t.Context(), "demo"); coded.Of(err) != "previous-changed" {
		t.Errorf("got %v", err)
	}
	if info, err := i.Info("demo"); err != nil || info.Digest != two.Digest || read(t, info.Dir, "text") != "two" {
		t.Errorf("active is %+v, %v", info, err)
	}
}

func TestAPluginPutThereByHandIsNotReplaced(t *testing.T) {
	i := newInstaller(t)
	must(t, os.MkdirAll(filepath.Join(i.config.Plugins, "demo"), 0o755))
	if _, err := i.Activate(t.Context(), stageText(t, i, "one")); coded.Of(err) != "name-occupied" {
		t.Errorf("got %v", err)
	}
}

func TestAPluginsFolderThatVanishedIsInstalledAnew(t *testing.T) { // C51
	i := newInstaller(t)
	one := activateText(t, i, "one")
	must(t, os.RemoveAll(one.Dir))
	if info, err := i.Info("demo"); err != nil || info.Digest != one.Digest {
		t.Errorf("it is forgotten: %+v, %v", info, err)
	}
	two := activateText(t, i, "two")
	if two.Previous != nil || read(t, two.Dir, "text") != "two" {
		t.Errorf("installed %+v", two)
	}
	three := activateText(t, i, "three")
	must(t, os.RemoveAll(three.Dir))
	if three = activateText(t, i, "three"); three.Previous == nil || state(t, i) != "three two" {
		t.Errorf("the version before it is forgotten: %+v", three)
	}
	two = three
	must(t, os.RemoveAll(two.Dir))
	must(t, i.Remove(t.Context(), "demo"))
	wantEmpty(t, i.config.Info)
}

func TestARecordThatCannotBeReadStopsOnlyItsOwn(t *testing.T) {
	i := newInstaller(t)
	activateText(t, i, "one")
	must(t, os.WriteFile(filepath.Join(i.config.Info, "other.json"), []byte("{"), 0o600))
	list, err := i.List()
	if len(list) != 1 || coded.Of(err) != "install-record-unreadable" {
		t.Errorf("got %v, %v", list, err)
	}
	must(t, os.WriteFile(filepath.Join(i.config.Info, "demo.json"), []byte(`{"current": 3}`), 0o600))
	if _, err := i.Activate(t.Context(), stageText(t, i, "two")); coded.Of(err) != "install-record-unreadable" {
		t.Errorf("got %v", err)
	}
	if read(t, i.config.Plugins, "demo", "text") != "one" {
		t.Error("what it could not understand was replaced")
	}
}

// A record is Sallyport's own, but a folder that it names outside is still not
// moved.
func TestARecordLeadsNowhereElse(t *testing.T) {
	i := newInstaller(t)
	outside := filepath.Join(i.config.Home, "outside")
	must(t, os.MkdirAll(outside, 0o755))
	for _, p := range []place{{inPlugins, "../outside"}, {"elsewhere", "outside"}, {inStaging, ""}, {discarded, "a/b"}} {
		data, err := json.Marshal(shelf{Pending: &change{Moves: []move{{p, place{inPlugins, "demo"}}}}})
		must(t, err)
		must(t, os.WriteFile(filepath.Join(i.config.Info, "demo.json"), data, 0o600))
		if _, err := i.Sweep(t.Context(), nil); err == nil && i.there(place{inPlugins, "demo"}) {
			t.Errorf("%v was moved", p)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestSweepKeepsWhatWaitsAndRemovesTheRest(t *testing.T) {
	i := newInstaller(t)
	waits, expired := stageText(t, i, "one"), stageText(t, i, "two")
	half := filepath.Join(i.config.Staging, "s-aaaaaaaaaaaaaaaa", "tree")
	must(t, os.MkdirAll(half, 0o755))
	must(t, os.MkdirAll(filepath.Join(i.config.Staging, "discard-x"), 0o755))
	must(t, os.WriteFile(filepath.Join(i.config.Staging, "not-ours"), nil, 0o600))
	swept, err := i.Sweep(t.Context(), map[string]bool{waits.ID: true, "s-aaaaaaaaaaaaaaaa": true})
	must(t, err)
	if swept.Removed != 3 {
		t.Errorf("removed %d", swept.Removed)
	}
	if _, err := i.Staged(t.Context(), waits.ID); err != nil {
		t.Error(err)
	}
	for _, id := range []string{expired.ID, "s-aaaaaaaaaaaaaaaa", "../staging", ""} {
		if _, err := i.Staged(t.Context(), id); coded.Of(err) != "not-staged" {
			t.Errorf("%q: %v", id, err)
		}
	}
	must(t, os.Remove(filepath.Join(i.config.Staging, "not-ours")))
}

func TestSweepLeavesABundleThatIsBeingMade(t *testing.T) {
	i := newInstaller(t)
	dir := files(t, map[string]string{"plugin.json": manifestJSON})
	staged, err := i.Stage(t.Context(), source(t, dir), func(Step) {
		if swept, err := i.Sweep(t.Context(), nil); err != nil || swept.Removed != 0 {
			t.Errorf("swept %+v, %v", swept, err)
		}
	})
	must(t, err)
	if _, err := i.Activate(t.Context(), staged); err != nil {
		t.Error(err)
	}
}

const dieAt = "SALLYPORT_TEST_DIE_AT"

// die is the child of the test below: it does one thing and is killed at a step of
// it, or says that there is no such step.
func die(spec string) {
	fields := strings.Split(spec, "|") // action, number of the step, data folder, staged ID
	i, err := New(configIn(fields[2]))
	if err != nil {
		panic(err)
	}
	steps := 0
	i.hook = func(string) {
		if fmt.Sprint(steps) == fields[1] {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
		steps++
	}
	ctx := context.Background()
	switch fields[0] {
	case "activate":
		staged, err := i.Staged(ctx, fields[3])
		if err == nil {
			_, err = i.Activate(ctx, staged)
		}
		if err != nil {
			panic(err)
		}
	case "undo":
		_, err = i.Undo(ctx, "demo")
	case "remove":
		err = i.Remove(ctx, "demo")
	}
	if err != nil {
		panic(err)
	}
	fmt.Print("whole")
	os.Exit(0)
}

// A change that is killed at any step is, after the next start, as if it had not
// begun or as if it had ended (C51).
func TestAKilledChangeIsFinishedOrNeverWas(t *testing.T) {
	tests := []struct {
		action    string
		installed []string // before: the versions, the last is active
		before    string   // active and previous
		after     string
	}{
		{"activate", nil, "", "new"},
		{"activate", []string{"one"}, "one", "new one"},
		{"activate", []string{"one", "two"}, "two one", "new two"},
		{"activate", []string{"one", "new"}, "new one", "new one"},
		{"undo", []string{"one", "two"}, "two one", "one"},
		{"remove", []string{"one", "two"}, "two one", ""},
	}
	for _, tt := range tests {
		t.Run(tt.action+" "+tt.before, func(t *testing.T) {
			for step, whole := 0, false; !whole; step++ {
				i := newInstaller(t)
				for _, text := range tt.installed {
					activateText(t, i, text)
				}
				staged := stageText(t, i, "new")
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%s|%s", dieAt, tt.action, step, i.config.Home, staged.ID))
				out, _ := cmd.Output()
				whole = string(out) == "whole"
				again := installerIn(t, i.config.Home)
				_, err := again.Sweep(t.Context(), map[string]bool{staged.ID: true})
				must(t, err)
				got := state(t, again)
				if got != tt.after && (whole || got != tt.before) {
					t.Errorf("killed at step %d: %q is there", step, got)
				}
				if step > 20 {
					t.Fatal("it never ends")
				}
				if got == tt.before && got != tt.after && tt.action == "activate" {
					if _, err := again.Staged(t.Context(), staged.ID); err != nil {
						t.Errorf("killed at step %d: it is not installed, and what was staged is gone", step)
					}
				}
				_, err = again.Sweep(t.Context(), nil)
				must(t, err)
				wantEmpty(t, again.config.Staging)
				if again.config.Info == "" || tt.after == "" && got == "" {
					wantEmpty(t, again.config.Info, again.config.Plugins, again.config.Previous)
				}
			}
		})
	}
}

// state is what is active and what is before it, as the records and the folders
// agree.
func state(t *testing.T, i *Installer) string {
	t.Helper()
	var texts []string
	info, err := i.Info("demo")
	switch coded.Of(err) {
	case "not-installed":
	case "":
		must(t, err)
		for folder, about := range map[string]*Info{i.config.Plugins: &info.Info, i.config.Previous: info.Previous} {
			if about == nil {
				continue
			}
			tree, err := artifact.Of(t.Context(), filepath.Join(folder, "demo"), artifact.Options{})
			must(t, err)
			if tree.Digest != about.Digest {
				t.Errorf("in %s lies another bundle than the record says", filepath.Base(folder))
			}
		}
		texts = append(texts, read(t, i.config.Plugins, "demo", "text"))
		if info.Previous != nil {
			texts = append(texts, read(t, i.config.Previous, "demo", "text"))
		}
	default:
		t.Fatal(err)
	}
	there := 0
	for _, folder := range []string{i.config.Plugins, i.config.Previous} {
		entries, err := os.ReadDir(folder)
		must(t, err)
		there += len(entries)
	}
	if there != len(texts) {
		t.Errorf("there are %d folders for %v", there, texts)
	}
	return strings.Join(slices.Compact(texts), " ")
}

// A bundle that was altered between a kill and the next start is not activated.
func TestAKilledChangeWithAnAlteredBundleIsUndone(t *testing.T) {
	i := newInstaller(t)
	one := activateText(t, i, "one")
	staged := stageText(t, i, "two")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=activate|2|%s|%s", dieAt, i.config.Home, staged.ID))
	_ = cmd.Run()
	if i.there(place{inPlugins, "demo"}) || !i.there(place{inStaging, staged.ID}) {
		t.Fatal("the child was not killed between the two moves")
	}
	must(t, os.WriteFile(filepath.Join(staged.Dir, "text"), []byte("evil"), 0o644))
	swept, err := i.Sweep(t.Context(), nil)
	must(t, err)
	if !slices.Equal(swept.Undone, []string{"demo"}) {
		t.Errorf("swept %+v", swept)
	}
	if info, err := i.Info("demo"); err != nil || info.Digest != one.Digest || read(t, info.Dir, "text") != "one" {
		t.Errorf("active is %+v, %v", info, err)
	}
}

func TestAMoveThatFailsIsTakenBack(t *testing.T) {
	i := newInstaller(t)
	one := activateText(t, i, "one")
	staged := stageText(t, i, "two")
	i.hook = func(step string) {
		if step == "moved plugins" {
			must(t, os.RemoveAll(staged.Dir)) // so that the next move finds nothing
		}
	}
	if _, err := i.Activate(t.Context(), staged); err == nil || strings.Contains(err.Error(), i.config.Home) {
		t.Errorf("got %v", err)
	}
	i.hook = nil
	if info, err := i.Info("demo"); err != nil || info.Digest != one.Digest || info.Previous != nil || read(t, info.Dir, "text") != "one" {
		t.Errorf("active is %+v, %v", info, err)
	}
}
