package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// tempName is what write calls its temporary files.
var tempName = regexp.MustCompile(`^\..+\.[A-Z2-7]{10}\.tmp$`)

// Sweep removes temporary files that a killed Write left in folder and that are
// older than age, so that none is taken from a Write that runs.
func Sweep(folder string, age time.Duration) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return pathless(err)
	}
	var failed []error
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !tempName.MatchString(entry.Name()) {
			continue
		}
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()) > age {
			failed = append(failed, pathless(os.Remove(filepath.Join(folder, entry.Name()))))
		}
	}
	return errors.Join(failed...)
}
