package artifact

import (
	"os"

	"golang.org/x/sys/unix"
)

// cloneFile makes to share from's data, where the file system can.
func cloneFile(to, from *os.File) error {
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
}

// syncTree writes a new tree to disk. One syncfs does for all files what an
// fsync each would take seconds for.
func syncTree(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
