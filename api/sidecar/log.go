package sidecar

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
)

// Log returns a logger that writes to sallyport.log in the state folder, and to also
// where that is given. A file that cannot be opened is done without.
func Log(state string, also io.Writer) (*slog.Logger, func()) {
	var to []io.Writer
	done := func() {}
	if os.MkdirAll(state, 0o700) == nil {
		name := filepath.Join(state, "sallyport.log")
		keepLogSmall(name)
		if file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
			to, done = append(to, file), func() { file.Close() }
		}
	}
	if also != nil {
		to = append(to, also)
	}
	return slog.New(slog.NewTextHandler(io.MultiWriter(to...), nil)), done
}

// keepLogSmall puts a log over 8 MiB aside, over the one put aside before.
func keepLogSmall(name string) {
	if info, err := os.Stat(name); err == nil && info.Size() > 8<<20 {
		_ = os.Rename(name, name+".1") // a log that cannot be moved just grows on
	}
}
