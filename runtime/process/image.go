package process

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"sallyport/internal/coded"
	"sallyport/internal/filehash"
	"sallyport/runtime/approvals"
	"sallyport/runtime/env"
)

// expected lists the images that a launch may become, in the order in which
// they follow each other: the program itself, or for a script what its #! line
// leads to.
func expected(l approvals.Launch) []env.Executable {
	if len(l.Executable.Interpreters) > 0 {
		return l.Executable.Interpreters
	}
	program := l.Executable
	if program.InBundle {
		program.Real = l.Path // in the snapshot, whatever folder it was found in
	}
	return []env.Executable{program}
}

// image is an open file that a process executes.
type image struct {
	file *os.File
	sum  string // SHA-256, once it was needed
}

// is reports whether the image is what was approved: the same bytes where they
// were hashed, the same file where the bundle's digest covers it or this user
// cannot write it. An executing file cannot be written, so that its hash holds.
func (i *image) is(ctx context.Context, x env.Executable) (bool, error) {
	have, err := i.file.Stat()
	if err != nil {
		return false, err
	}
	if x.SHA256 == "" {
		if !x.InBundle && !x.Protected {
			return false, nil
		}
		want, err := os.Stat(x.Real)
		return err == nil && os.SameFile(have, want), nil
	}
	if i.sum == "" {
		if i.sum, err = filehash.SHA256(ctx, io.NewSectionReader(i.file, 0, math.MaxInt64)); err != nil {
			return false, err
		}
	}
	return i.sum == x.SHA256, nil
}

// which returns the index of the expected image that this one is, or -1.
func (i *image) which(ctx context.Context, images []env.Executable) (int, error) {
	for n, x := range images {
		same, err := i.is(ctx, x)
		if same || err != nil {
			return n, err
		}
	}
	return -1, nil
}

// passing reports whether the n-th image is only on the way to the next one.
func passing(images []env.Executable, n int) bool {
	return n+1 < len(images) && filepath.Base(images[n].Found) == "env"
}

func executableChanged(l approvals.Launch) error {
	return &coded.Error{
		Code:     "executable-changed",
		Sentence: fmt.Sprintf("the program that started for %s is not the one that was approved", l.ID),
		Next:     "look at what changed and approve the connector again",
	}
}
