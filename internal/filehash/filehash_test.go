package filehash

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestItIsTheHashOfEveryByte(t *testing.T) {
	for _, size := range []int{0, 1, piece - 1, piece, piece + 1, 3 * piece} {
		data := bytes.Repeat([]byte("x"), size)
		want := fmt.Sprintf("%x", sha256.Sum256(data))
		for name, r := range map[string]io.Reader{
			"whole":                  bytes.NewReader(data),
			"data with the end":      iotest.DataErrReader(bytes.NewReader(data)),
			"a part of it at a time": iotest.HalfReader(bytes.NewReader(data)),
		} {
			if got, err := SHA256(t.Context(), r); got != want || err != nil {
				t.Errorf("%d bytes, %s: %s, %v", size, name, got, err)
			}
		}
	}
}

func TestAReaderThatFailsHasNoHash(t *testing.T) {
	failure := errors.New("the disk is gone")
	r := io.MultiReader(strings.NewReader("some"), iotest.ErrReader(failure))
	if got, err := SHA256(t.Context(), r); got != "" || !errors.Is(err, failure) {
		t.Errorf("%q, %v", got, err)
	}
}

// endless ends the context once a few pieces were read.
type endless struct {
	pieces int
	end    func()
}

func (e *endless) Read(p []byte) (int, error) {
	if e.pieces++; e.pieces == 3 {
		e.end()
	}
	return len(p), nil
}

func TestWhoeverGivesUpIsAnsweredInTheMiddle(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &endless{end: cancel}
	if got, err := SHA256(ctx, r); got != "" || !errors.Is(err, context.Canceled) || r.pieces != 3 {
		t.Errorf("%q, %v, after %d pieces", got, err, r.pieces)
	}
}
