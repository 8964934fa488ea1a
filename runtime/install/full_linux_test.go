package install

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Mounting a small disk takes root; everybody else has the broken moves of the
// other tests.
func TestAFullDiskIsSaidAndNothingIsStaged(t *testing.T) { // C77
	data := filepath.Join(t.TempDir(), "data")
	must(t, os.Mkdir(data, 0o700))
	if err := unix.Mount("tmpfs", data, "tmpfs", 0, "size=2m"); err != nil {
		t.Logf("no tmpfs here (%v)", err)
		return
	}
	defer unix.Unmount(data, unix.MNT_DETACH)
	i := installerIn(t, data)
	activateText(t, i, "one")
	large := files(t, map[string]string{"plugin.json": manifestJSON, "a": noise(1 << 20), "b": noise(1 << 20)})
	refused(t, i, source(t, large), "disk-full")
	refused(t, i, archiveFile(t, "a.zip", zipped(t, large, "", false)), "disk-full")
	half := files(t, map[string]string{"plugin.json": manifestJSON, "a": noise(1200 << 10)})
	// The archive fits, and what is in it no longer does.
	refused(t, i, archiveFile(t, "a.zip", zipped(t, half, "", false)), "disk-full")
	if got := state(t, i); got != "one" {
		t.Errorf("there is %q", got)
	}
}
