package frontend

import (
	"compress/gzip"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// most is what the pages may weigh, gzipped, without the console's terminal.
const most = 300_000

// console is the part that only somebody who opens a console loads.
var console = regexp.MustCompile(`^assets/(Console|xterm|terminal)[^/]*$`)

func TestThePagesAreSmall(t *testing.T) {
	if !Built() {
		t.Fatal("the pages are not built: scripts/pages builds them")
	}
	total, biggest, name := 0, 0, ""
	err := fs.WalkDir(Files(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path, ".") || console.MatchString(path) {
			return err
		}
		n := gzipped(t, path)
		total += n
		if n > biggest {
			biggest, name = n, path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes gzipped; the biggest is %s with %d", total, name, biggest)
	if total > most {
		t.Errorf("the pages are %d bytes gzipped, over %d; the biggest is %s with %d", total, most, name, biggest)
	}
	if total < 10_000 {
		t.Errorf("the pages are %d bytes, which cannot be all of them", total)
	}
}

func gzipped(t *testing.T, path string) int {
	t.Helper()
	file, err := Files().Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var size counter
	packed := gzip.NewWriter(&size)
	if _, err := io.Copy(packed, file); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return int(size)
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
