package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
)

func file(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content)), Linkname: content}
}

// tarball packs headers; a file's content stands in its Linkname.
func tarball(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, h := range headers {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Linkname = h.Linkname, ""
		}
		if h.Typeflag != tar.TypeXGlobalHeader {
			h.ModTime = time.Unix(1, 0)
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func untar(t *testing.T, parent string, data []byte, opts Options) (Result, error) {
	t.Helper()
	return TarGz(t.Context(), bytes.NewReader(data), filepath.Join(parent, "new"), opts)
}

func TestHostileTarsAreRefusedAndLeaveNothing(t *testing.T) { // C52, C54
	ok := file("plugin.json", "{}")
	zeros := strings.Repeat("\x00", 8<<20)
	special := func(kind byte) []tar.Header {
		return []tar.Header{ok, {Name: "p", Typeflag: kind, Mode: 0o644, Linkname: "plugin.json"}}
	}
	tests := []struct {
		name    string
		code    string
		headers []tar.Header
		limits  Limits
	}{
		{"a step out", "entry-traversal", []tar.Header{ok, file("../evil", "x")}, Limits{}},
		{"a folder outside", "entry-traversal", []tar.Header{ok, {Name: "../evil/", Typeflag: tar.TypeDir, Mode: 0o755}}, Limits{}},
		{"an absolute path", "entry-absolute", []tar.Header{file("/etc/x", "x")}, Limits{}},
		{"backslashes", "entry-backslash", []tar.Header{file(`a\..\b`, "x")}, Limits{}},
		{"a line feed", "entry-name-invalid", []tar.Header{file("a\nb", "x")}, Limits{}},
		{"one name twice", "entry-duplicate", []tar.Header{ok, file("./plugin.json", "x")}, Limits{}},
		{"names equal but for case", "entry-collision", []tar.Header{file("a/README", "x"), file("a/readme", "x")}, Limits{}},
		{"a symbolic link", "entry-link", special(tar.TypeSymlink), Limits{}},
		{"a hard link", "entry-link", special(tar.TypeLink), Limits{}},
		{"a pipe", "entry-special", special(tar.TypeFifo), Limits{}},
		{"a device", "entry-special", special(tar.TypeChar), Limits{}},
		{"a block device", "entry-special", special(tar.TypeBlock), Limits{}},
		{"a file that is too large", "file-too-large", []tar.Header{file("x", zeros)}, Limits{FileBytes: 1 << 20, Ratio: 1 << 20}},
		{"files that are too large together", "tree-too-large", []tar.Header{file("x", zeros), file("y", zeros)}, Limits{TotalBytes: 12 << 20, Ratio: 1 << 20}},
		{"a bomb", "archive-ratio", []tar.Header{file("x", zeros)}, Limits{}},
		{"too many entries", "too-many-entries", []tar.Header{ok, file("a/b/c", "x")}, Limits{Entries: 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parent := parentOf(t)
			_, err := untar(t, parent, tarball(t, tt.headers...), Options{Limits: tt.limits})
			if coded.Of(err) != tt.code {
				t.Errorf("got %q (%v), want %q", coded.Of(err), err, tt.code)
			}
			wantNothing(t, parent)
		})
	}
}

// A sparse file is some bytes that are gigabytes on reading.
func TestSparseFilesAreRefused(t *testing.T) {
	source := t.TempDir()
	f, err := os.Create(filepath.Join(source, "holes"))
	must(t, err)
	must(t, errors.Join(f.Truncate(64<<20), f.Close()))
	for _, format := range []string{"gnu", "pax"} {
		archive := filepath.Join(t.TempDir(), "x.tgz")
		must(t, run(source, "tar", "--sparse", "--format="+format, "-czf", archive, "holes"))
		data, err := os.ReadFile(archive)
		must(t, err)
		parent := parentOf(t)
		if _, err := untar(t, parent, data, Options{}); coded.Of(err) != "entry-special" {
			t.Errorf("%s: got %v", format, err)
		}
		wantNothing(t, parent)
	}
}

func TestDamagedTars(t *testing.T) {
	good := tarball(t, file("plugin.json", "{}"), file("b", strings.Repeat("text ", 999)))
	for n := range good {
		parent := parentOf(t)
		if _, err := untar(t, parent, good[:n], Options{}); coded.Of(err) != "archive-damaged" {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(good), err)
		}
		wantNothing(t, parent)
	}
	wrongSum := bytes.Clone(good)
	wrongSum[len(wrongSum)-8] ^= 1
	unpacked, err := gzip.NewReader(bytes.NewReader(good))
	must(t, err)
	plain, err := io.ReadAll(unpacked)
	must(t, err)
	var hidden bytes.Buffer
	w := gzip.NewWriter(&hidden)
	_, err = w.Write(append(bytes.Clone(plain), plain...))
	must(t, errors.Join(err, w.Close()))
	for name, data := range map[string][]byte{
		"another checksum":            wrongSum,
		"bytes behind the end":        append(bytes.Clone(good), "junk"...),
		"a second tar behind its end": hidden.Bytes(),
		"no gzip at all":              []byte("plugin"),
	} {
		parent := parentOf(t)
		if _, err := untar(t, parent, data, Options{}); coded.Of(err) != "archive-damaged" {
			t.Errorf("%s: %v", name, err)
		}
		wantNothing(t, parent)
	}
}

func TestOrdinaryTars(t *testing.T) { // C47
	data := tarball(t,
		tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "a commit"}},
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./bin/", Typeflag: tar.TypeDir, Mode: 0o777},
		tar.Header{Name: "./bin/run", Typeflag: tar.TypeReg, Mode: 0o6775, Size: 2, Linkname: "#!"},
		file(strings.Repeat("long/", 30)+"name", "x"),
	)
	parent := parentOf(t)
	result, err := untar(t, parent, data, Options{})
	must(t, err)
	got := listing(t, filepath.Join(parent, "new"))
	if !strings.HasPrefix(got, "-rw-r--r-- long/") || !strings.Contains(got, "-rwxr-xr-x bin/run #!") && runtime.GOOS != "windows" {
		t.Errorf("got\n%s", got)
	}
	if result.Files != 2 || len(result.Modeless) != 0 {
		t.Errorf("got %+v", result)
	}
}

func TestTarsOfOtherPrograms(t *testing.T) {
	source := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(source, "server"), 0o755))
	must(t, os.WriteFile(filepath.Join(source, "server", "run"), []byte("#!"), 0o755))
	must(t, os.WriteFile(filepath.Join(source, "d\u00e9cembre"), []byte("x"), 0o644))
	want := listing(t, source)
	for _, format := range []string{"gnu", "pax", "ustar"} {
		archive := filepath.Join(t.TempDir(), "x.tgz")
		must(t, run(source, "tar", "--format="+format, "-czf", archive, "."))
		data, err := os.ReadFile(archive)
		must(t, err)
		parent := parentOf(t)
		_, err = untar(t, parent, data, Options{})
		must(t, err)
		if got := listing(t, filepath.Join(parent, "new")); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", format, got, want)
		}
	}
}

func TestACancelledTarLeavesNothing(t *testing.T) {
	data := tarball(t, file("a", strings.Repeat("text that packs ", 99999)), file("b", "x"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	parent := parentOf(t)
	_, err := TarGz(ctx, bytes.NewReader(data), filepath.Join(parent, "new"), Options{Progress: func(p Progress) {
		if p.Bytes > 0 || p.Entries > 0 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantNothing(t, parent)
}

func FuzzTarGz(f *testing.F) {
	f.Add(tarball(f, file("plugin.json", "{}"), tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}, file("d/x", "x")))
	f.Fuzz(func(t *testing.T, data []byte) {
		// What is fuzzed is the tar; a gzip's checksum would stop nearly everything.
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if reader, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, _ = io.ReadAll(io.LimitReader(reader, 1<<20))
		}
		_, err := w.Write(data)
		must(t, errors.Join(err, w.Close()))
		parent := parentOf(t)
		result, err := untar(t, parent, b.Bytes(), Options{Limits: Limits{Entries: 100, FileBytes: 1 << 20, TotalBytes: 4 << 20}})
		if err != nil {
			wantNothing(t, parent)
			return
		}
		entries := 0
		walk(t, filepath.Join(parent, "new"), func(string) { entries++ })
		if entries != result.Entries {
			t.Fatalf("there are %d entries, not %d", entries, result.Entries)
		}
	})
}

func FuzzName(f *testing.F) {
	for _, name := range []string{"a/b", "./a", "../a", `a\b`, "C:/x", "d\u00e9cembre", "aux.js", "a/", "."} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, err := clean(name, Limits{}.orDefault())
		if err != nil || p == "" {
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(p)) || strings.ContainsAny(p, "\\\n\x00") || strings.HasSuffix(p, "/") {
			t.Fatalf("%q is taken as %q", name, p)
		}
		if again, err := clean(p, Limits{}.orDefault()); err != nil || again != p {
			t.Fatalf("%q is taken as %q, and that as %q: %v", name, p, again, err)
		}
	})
}
