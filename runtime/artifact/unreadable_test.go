//go:build unix

package artifact

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const asNobody = "SALLYPORT_TEST_AS_NOBODY"

// C56: never a digest over the readable rest. The mode bits do not stop root, so
// as root this test runs again in a process that has become nobody.
func TestUnreadableIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		runAsNobody(t, "TestUnreadableIsRefused")
		return
	}
	tests := []struct {
		name, chmod string
		mode        uint32
		path        string
	}{
		{"a file", "d/f", 0, "d/f"},
		{"a directory", "d", 0, "d"},
		{"a directory that may be entered but not listed", "d", 0o311, "d"},
		// os.Root cannot even look at such a directory, and names it instead of the file.
		{"a directory that may be listed but not entered", "d", 0o444, "d*"},
		{"an empty directory", "e", 0, "e"},
		{"the root", ".", 0, ""},
	}
	for _, test := range tests {
		for impl, opts := range implementations() {
			t.Run(test.name+"/"+impl, func(t *testing.T) {
				root := filepath.Join(t.TempDir(), "root")
				write(t, root, "d/f", "x", 0o644)
				write(t, root, "readable", "x", 0o644)
				if err := os.Mkdir(filepath.Join(root, "e"), 0o755); err != nil {
					t.Fatal(err)
				}
				target := filepath.Join(root, test.chmod)
				if err := chmodExact(target, test.mode); err != nil {
					t.Fatal(err)
				}
				defer chmodExact(target, 0o755)
				prefix, anyBelow := strings.CutSuffix(test.path, "*")
				code, path := refusalOf(t, root, opts)
				if code != CodeUnreadable || (path != test.path && !(anyBelow && strings.HasPrefix(path, prefix))) {
					t.Errorf("got %s at %q, want it at %q", code, path, test.path)
				}
			})
		}
	}
}

// What root may do unasked must work for an ordinary user: read-only folders are
// renamed, verified, discarded and collected.
func TestSnapshotsAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() == 0 {
		runAsNobody(t, "TestSnapshotsAsOrdinaryUser")
		return
	}
	t.Run("stage", TestSnapshotHasTheDigestThatWasAskedAbout)
	t.Run("damage", TestDamagedSnapshotIsReportedAndDiscarded)
	t.Run("collect", TestCollectRemovesWhatNothingNeeds)
	t.Run("changed", TestSourceThatChangedSinceItWasAskedAboutIsNotStaged)
	t.Run("modes", TestSnapshotKeepsCountedModeBits)
}

// runAsNobody runs one test in a child that starts as root, so that it can start
// at all, and drops to nobody before the test.
func runAsNobody(t *testing.T, test string) {
	t.Helper()
	temp, err := os.MkdirTemp("", "nobody-") //nolint:usetesting // nobody may not enter the folders above t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	command.Env = append(os.Environ(), asNobody+"=1", "TMPDIR="+temp)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(asNobody) != "" && os.Geteuid() == 0 {
		const nobody = 65534
		for _, err := range []error{syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)} {
			if err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}
