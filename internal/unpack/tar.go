package unpack

import (
	"archive/tar"
	"bufio"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
)

// TarGz makes the folder dir, at which nothing may be, from the gzipped tar in r,
// which it reads to its end. After an error there is nothing at dir.
func TarGz(ctx context.Context, r io.Reader, dir string, opts Options) (Result, error) {
	target, err := Create(ctx, dir, opts)
	if err != nil {
		return Result{}, err
	}
	return target.finish(explainTar(target.tarGz(r)))
}

func (t *Target) tarGz(r io.Reader) error {
	in := &counter{r: r}
	unzipped, err := gzip.NewReader(bufio.NewReaderSize(in, 64<<10))
	if err != nil {
		return err
	}
	out := &counter{r: unzipped, check: func(n int64) error {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		switch {
		case n > ratioSlack && n/t.limits.Ratio > in.n:
			return bomb("", t.limits.Ratio)
		case n-tarOverhead(t.limits) > t.limits.TotalBytes:
			return tooLarge(t.limits.TotalBytes)
		}
		return nil
	}}
	reader := tar.NewReader(out)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return onlyZeros(out)
		}
		if err != nil {
			return err
		}
		if err := t.tarEntry(header, reader); err != nil {
			return err
		}
	}
}

// tarOverhead is how much a tar's headers and padding may take.
func tarOverhead(l Limits) int64 { return int64(l.Entries) * 4096 }

func (t *Target) tarEntry(header *tar.Header, content io.Reader) error {
	for name := range header.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return special(header.Name)
		}
	}
	switch header.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeDir:
		return t.Dir(header.Name)
	case tar.TypeReg:
		_, err := t.File(header.Name, header.Mode&0o111 != 0, content)
		return err
	case tar.TypeSymlink, tar.TypeLink:
		return link(header.Name)
	}
	return special(header.Name)
}

// onlyZeros reads on to the end, which checks the checksum, and finds the entries
// that some readers would see behind a tar's end.
func onlyZeros(r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for _, b := range buf[:n] {
			if b != 0 {
				return damaged("", "something follows its end")
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// explainTar turns what the readers say about bytes into a refusal.
func explainTar(err error) error {
	var corrupt flate.CorruptInputError
	for _, broken := range []error{gzip.ErrHeader, gzip.ErrChecksum, tar.ErrHeader, tar.ErrInsecurePath, tar.ErrFieldTooLong, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, broken) {
			return damaged("", "it cannot be read to its end")
		}
	}
	if errors.As(err, &corrupt) {
		return damaged("", "it cannot be inflated")
	}
	return err
}

// counter counts what is read through it; check may refuse the count.
type counter struct {
	r     io.Reader
	n     int64
	check func(int64) error
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	if c.check != nil {
		if refusal := c.check(c.n); refusal != nil {
			return n, refusal
		}
	}
	return n, err
}
