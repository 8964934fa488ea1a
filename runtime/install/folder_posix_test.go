//go:build !windows

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/runtime/artifact"
)

const asNobody = "SALLYPORT_TEST_AS_NOBODY"

// C56: nothing is staged of the readable rest. The mode bits do not stop root, so
// as root this test runs again in a process that has become nobody.
func TestWhatCannotBeReadIsNamedAndNothingIsStaged(t *testing.T) {
	if os.Geteuid() == 0 {
		runAsNobody(t, t.Name())
		return
	}
	for name, sentence := range map[string]string{
		"d/f": `cannot read "d/f": permission`, "d": `cannot read "d": permission`, ".": `cannot read ".": permission`,
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstaller(t)
			dir := files(t, map[string]string{"plugin.json": manifestJSON, "d/f": "x"})
			must(t, os.Chmod(filepath.Join(dir, name), 0))
			defer os.Chmod(filepath.Join(dir, name), 0o755)
			refusal := refused(t, i, Source{Kind: Folder, Path: dir}, artifact.CodeUnreadable)
			if refusal.Error() != sentence {
				t.Errorf("it says %q", refusal)
			}
		})
	}
	i := newInstaller(t)
	archive := filepath.Join(t.TempDir(), "a.zip")
	must(t, os.WriteFile(archive, nil, 0))
	if refusal := refused(t, i, Source{Kind: Archive, Path: archive}, artifact.CodeUnreadable); refusal.Error() != `cannot read "a.zip": permission` {
		t.Errorf("it says %q", refusal)
	}
}

func runAsNobody(t *testing.T, test string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "install-test") //nolint:usetesting // t.TempDir is owner-only above
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o777))
	binary := filepath.Join(dir, "install.test")
	data, err := os.ReadFile(os.Args[0])
	must(t, err)
	must(t, os.WriteFile(binary, data, 0o755))
	cmd := exec.Command(binary, "-test.run=^"+test+"$", "-test.v")
	cmd.Env = []string{asNobody + "=1", "TMPDIR=" + dir, "HOME=" + dir}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func TestPipesAndSocketsOfAFolderAreRefused(t *testing.T) {
	i := newInstaller(t)
	dir := files(t, map[string]string{"plugin.json": manifestJSON})
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	if refusal := refused(t, i, source(t, dir), artifact.CodeSpecialFile); refusal.Path != "pipe" {
		t.Errorf("it names %q", refusal.Path)
	}
	refused(t, i, Source{Kind: Archive, Path: filepath.Join(dir, "pipe")}, "source-unknown")
}

func TestSetuidAndWorldWritableAreDropped(t *testing.T) { // C47
	i := newInstaller(t)
	dir := files(t, map[string]string{"plugin.json": manifestJSON, "run*": "#!"})
	must(t, os.Chmod(filepath.Join(dir, "run"), 0o777|os.ModeSetuid|os.ModeSticky))
	staged, err := i.Stage(t.Context(), source(t, dir), nil)
	must(t, err)
	info, err := os.Stat(filepath.Join(staged.Dir, "run"))
	must(t, err)
	if info.Mode() != 0o755 {
		t.Errorf("it has %v", info.Mode())
	}
}
