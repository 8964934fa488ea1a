// Package filehash hashes what may be large without outliving whoever asked.
//
// The one idea: a file of a gigabyte takes seconds, and a caller that gives up in
// the middle of it wants its answer now, so the context is asked between pieces.
//
// It opens nothing and knows no domain words. Every package may import it.
package filehash

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

// piece is how much is read between two looks at the context.
const piece = 256 << 10

// SHA256 reads r to its end and returns the hash of it in lower-case hex. The
// error is ctx's once that has ended, or r's.
func SHA256(ctx context.Context, r io.Reader) (string, error) {
	sum := sha256.New()
	buffer := make([]byte, piece)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(buffer)
		_, _ = sum.Write(buffer[:n]) // a hash takes everything
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
