package artifact

import (
	"fmt"
	"os"
)

// removeTree removes a tree whose directories are read-only. It follows no link.
func removeTree(dir string) error {
	if root, err := os.OpenRoot(dir); err == nil {
		makeWritable(root)
		root.Close()
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot remove a discarded snapshot: %w", err)
	}
	return nil
}

// makeWritable does what it can; RemoveAll reports what is left.
func makeWritable(root *os.Root) {
	if root.Chmod(".", 0o700) != nil {
		return
	}
	entries, err := listRoot(root)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		// Without this a directory that lost its read bit could not be opened.
		_ = root.Chmod(e.Name(), 0o700) // opening it tells
		if sub, err := root.OpenRoot(e.Name()); err == nil {
			makeWritable(sub)
			sub.Close()
		}
	}
}
