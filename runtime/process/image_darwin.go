package process

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// imageOf opens the path that pid was started from. macOS does not tell more
// without C: a file put at that path in between is taken for the image, which
// its hash then judges.
func imageOf(pid int) (*image, string, error) {
	path := imagePath(pid)
	if path == "" {
		return nil, "", errors.New("the system does not tell what runs")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	return &image{file: f}, path, nil
}

// imagePath reads the executable path that the kernel keeps before argv.
func imagePath(pid int) string {
	text, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(text) < 5 {
		return ""
	}
	path, _, _ := bytes.Cut(text[4:], []byte{0})
	return string(path)
}
