package unpack

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/coded"
)

func TestHostileZipsAreRefusedAndLeaveNothing(t *testing.T) { // C52, C54
	ok := part{name: "plugin.json", content: "{}"}
	file := func(name string) archive { return archive{parts: []part{ok, {name: name, content: "x"}}} }
	tests := []struct {
		name string
		code string
		a    archive
	}{
		{"a step out", "entry-traversal", file("../evil")},
		{"a step out in the middle", "entry-traversal", file("a/../../evil")},
		{"a step that stays inside", "entry-traversal", file("a/../evil")},
		{"two dots alone", "entry-traversal", file("..")},
		{"a step out after a dot", "entry-traversal", file("./../evil")},
		{"an absolute path", "entry-absolute", file("/abs")},
		{"two slashes", "entry-absolute", file("//server/share")},
		{"a drive", "entry-absolute", file("C:/x")},
		{"a drive without a slash", "entry-absolute", file("c:x")},
		{"a drive after a dot", "entry-absolute", file("./c:x")},
		{"backslashes", "entry-backslash", file(`a\..\b`)},
		{"a drive with a backslash", "entry-backslash", file(`C:\x`)},
		{"no name", "entry-name-invalid", file("")},
		{"an empty name in the middle", "entry-name-invalid", file("a//b")},
		{"a dot in the middle", "entry-name-invalid", file("a/./b")},
		{"a line feed", "entry-name-invalid", file("a\nb")},
		{"an escape", "entry-name-invalid", file("\x1b[2J")},
		{"a C1 control character", "entry-name-invalid", file("a\u009bb")},
		{"a line separator", "entry-name-invalid", file("a\u2028b")},
		{"a NUL", "entry-name-invalid", file("a\x00b")},
		{"no UTF-8", "entry-name-invalid", file("a\xff")},
		{"the root as a file", "entry-name-invalid", archive{parts: []part{{name: ".", content: "x"}}}},
		{"a name that is too long", "entry-name-too-long", file(strings.Repeat("n", 256))},
		{"a path that is too long", "entry-name-too-long", file(strings.Repeat("n/", 2500) + "x")},
		{"a path that is too deep", "entry-name-too-long", file(strings.Repeat("d/", 128) + "x")},

		{"one name twice", "entry-duplicate", file("plugin.json")},
		{"one name twice, once with a dot", "entry-duplicate", file("./plugin.json")},
		{"a file where a folder is", "entry-duplicate", archive{parts: []part{{name: "a/b", content: "x"}, {name: "a", content: "x"}}}},
		{"a folder where a file is", "entry-duplicate", archive{parts: []part{{name: "a", content: "x"}, {name: "a/"}}}},
		{"something below a file", "entry-duplicate", archive{parts: []part{{name: "a", content: "x"}, {name: "a/b", content: "x"}}}},
		{"names equal but for case", "entry-collision", file("Plugin.JSON")},
		{"folders equal but for case", "entry-collision", archive{parts: []part{{name: "Server/a", content: "x"}, {name: "server/b", content: "x"}}}},
		{"names equal in NFC", "entry-collision", archive{parts: []part{{name: "d\u00e9cembre", content: "x"}, {name: "de\u0301cembre", content: "x"}}}},
		{"names equal in NFC but for case", "entry-collision", archive{parts: []part{{name: "\u00c9", content: "x"}, {name: "e\u0301", content: "x"}}}},

		{"a symbolic link", "entry-link", archive{parts: []part{{name: "l", content: "/etc/passwd", mode: 0o120777}}}},
		{"a link and a file through it", "entry-link", archive{parts: []part{{name: "l", content: "/tmp", mode: 0o120777}, {name: "l/x", content: "x"}}}},
		{"a pipe", "entry-special", archive{parts: []part{{name: "p", mode: 0o010644}}}},
		{"a character device", "entry-special", archive{parts: []part{{name: "p", mode: 0o020644}}}},
		{"a block device", "entry-special", archive{parts: []part{{name: "p", mode: 0o060644}}}},
		{"a socket", "entry-special", archive{parts: []part{{name: "p", mode: 0o140644}}}},
		{"a folder with content", "archive-damaged", archive{parts: []part{{name: "d/", content: "x"}}}},
		{"a file with a folder's name", "archive-damaged", archive{parts: []part{{name: "d/", mode: 0o100644}}}},

		{"an encrypted entry", "entry-encrypted", archive{parts: []part{{name: "x", content: "x", flags: 1}}}},
		{"a strongly encrypted entry", "entry-encrypted", archive{parts: []part{{name: "x", content: "x", flags: 0x41}}}},
		{"a masked directory", "entry-encrypted", archive{parts: []part{{name: "x", content: "x", flags: 0x2000}}}},
		{"another way of packing", "entry-method-unsupported", archive{parts: []part{{name: "x", content: "x", method: 12}}}},

		{"an entry larger than it says", "archive-damaged", archive{parts: []part{{name: "x", content: strings.Repeat("x", 100), size: 3}}}},
		{"an entry smaller than it says", "archive-damaged", archive{parts: []part{{name: "x", content: "xxx", size: 100}}}},
		{"a stored entry with two sizes", "archive-damaged", archive{parts: []part{{name: "x", content: "xxx", stored: true, size: 2}}}},
		{"another size in front of it", "archive-damaged", archive{parts: []part{{name: "x", content: "xxx", localSize: 2}}}},
		{"another checksum", "archive-damaged", archive{parts: []part{{name: "x", content: "xxx", crc: 1}}}},
		{"another name in front of it", "archive-damaged", archive{parts: []part{{name: "good", localName: "evil", content: "xxx"}}}},
		{"another name in an extra field", "archive-damaged", archive{parts: []part{{name: "good", content: "x", extra: append(le(nil, uint16(extraName), uint16(9)), "\x01\x00\x00\x00\x00evil"...)}}}},
		{"bytes after its end", "archive-damaged", archive{parts: []part{{name: "x", content: "xxx", junk: 7}}}},
		{"what follows an entry lies", "archive-damaged", archive{parts: []part{{name: "x", content: "xxx", after: "wrong"}}}},
		{"bytes that do not inflate", "archive-damaged", archive{parts: []part{{name: "x", content: "\xff\xff\xff", stored: true, method: methodDeflated}}}},
		{"an entry outside the file", "archive-damaged", archive{parts: []part{{name: "x", content: "x", header: 1 << 30}}}},
		{"an entry in the directory", "archive-damaged", archive{parts: []part{{name: "x", content: "x", header: 40}}}},
		{"two entries with the same bytes", "entries-overlap", archive{parts: []part{{name: "x", content: "xxx"}, {name: "x", content: "xxx", sameDataAs: "x"}}}},
		{"a size that only a missing field has", "archive-damaged", archive{parts: []part{{name: "x", content: "x", size: math.MaxUint32}}}},

		{"bytes before everything", "archive-damaged", archive{parts: []part{ok}, before: "MZ"}},
		{"an archive before everything", "archive-damaged", archive{parts: []part{ok}, before: string(archive{parts: []part{ok}}.bytes())}},
		{"bytes before the directory's end", "archive-damaged", archive{parts: []part{ok}, size: -1}},
		{"bytes behind the end", "archive-damaged", archive{parts: []part{ok}, after: "x"}},
		{"a directory that is shorter than it says", "archive-damaged", archive{parts: []part{ok}, count: 1}},
		{"a directory that is longer than it says", "archive-damaged", archive{parts: []part{ok, {name: "b"}}, count: -1}},
		{"a second end in the comment", "archive-damaged", archive{parts: []part{ok}, comment: string(archive{}.bytes())}},
		{"a large end that names another count", "archive-damaged", archive{parts: []part{ok}, zip64: func(r []byte) { r[32] = 9 }}},
		{"a large end that names a huge count", "too-many-entries", archive{parts: []part{ok}, zip64: func(r []byte) { r[24+7], r[32+7] = 0x70, 0x70 }}},
		{"a large end that names a huge place", "archive-damaged", archive{parts: []part{ok}, zip64: func(r []byte) { r[48+7] = 0x70 }}},
		{"a large end of another size", "archive-damaged", archive{parts: []part{ok}, zip64: func(r []byte) { r[4] = 9 }}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parent := parentOf(t)
			_, err := unzip(t, parent, tt.a.bytes(), Options{})
			if coded.Of(err) != tt.code {
				t.Errorf("got %q (%v), want %q", coded.Of(err), err, tt.code)
			}
			wantNothing(t, parent)
		})
	}
}

// An archive whose many entries share one block of zeros: some kilobytes that
// would be gigabytes.
func TestOverlappingEntriesAreRefusedBeforeAnythingIsInflated(t *testing.T) {
	a := archive{parts: []part{{name: "f0", content: strings.Repeat("\x00", 64<<10)}}}
	for range 300 {
		a.parts = append(a.parts, part{name: "f0", content: a.parts[0].content, sameDataAs: "f0"})
	}
	parent := parentOf(t)
	_, err := unzip(t, parent, a.bytes(), Options{Progress: func(p Progress) {
		if p.Bytes > 0 {
			t.Error("it was inflated")
		}
	}})
	if coded.Of(err) != "entries-overlap" {
		t.Errorf("got %v", err)
	}
	wantNothing(t, parent)
}

// The kind of bomb that quotes: each entry's data begins with a stored block that
// holds the record in front of the next, so that no two have the same offset.
func TestQuotingEntriesAreRefused(t *testing.T) {
	inner := archive{parts: []part{{name: "b", content: strings.Repeat("\x00", 1000)}}}.bytes()
	local := inner[:bytes.Index(inner, []byte("PK\x01\x02"))]
	a := archive{parts: []part{{name: "a", content: string(local), stored: true}, {name: "b", content: strings.Repeat("\x00", 1000), sameDataAs: "a"}}}
	data := a.bytes()
	// The second record leads into the first entry's data.
	second := bytes.LastIndex(data, []byte("PK\x01\x02"))
	copy(data[second+42:], le(nil, uint32(localSize+1)))
	parent := parentOf(t)
	if _, err := unzip(t, parent, data, Options{}); coded.Of(err) != "entries-overlap" {
		t.Errorf("got %v", err)
	}
	wantNothing(t, parent)
}

func TestEveryCutOfAZipIsRefused(t *testing.T) {
	data := archive{parts: []part{{name: "plugin.json", content: "{}"}, {name: "server/index.js", content: strings.Repeat("code ", 99), after: "signed"}}}.bytes()
	for n := range data {
		parent := parentOf(t)
		if _, err := unzip(t, parent, data[:n], Options{}); coded.Of(err) != "archive-damaged" {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(data), err)
		}
		wantNothing(t, parent)
	}
}

func TestLimitsAreCountedWhileInflating(t *testing.T) { // C52
	zeros := strings.Repeat("\x00", 6<<20)
	many := archive{}
	for i := range 50 {
		many.parts = append(many.parts, part{name: fmt.Sprintf("d%d/f", i), content: "x"})
	}
	tests := []struct {
		name   string
		code   string
		a      archive
		limits Limits
	}{
		{"a file that is too large", "file-too-large", archive{parts: []part{{name: "x", content: zeros}}}, Limits{FileBytes: 1 << 20, Ratio: 1 << 20}},
		{"a file that says it is small", "file-too-large", archive{parts: []part{{name: "x", content: zeros, size: 10}}}, Limits{FileBytes: 1 << 10, Ratio: 1 << 20}},
		{"many that are too large together", "tree-too-large", archive{parts: []part{{name: "x", content: zeros}, {name: "y", content: zeros}}}, Limits{TotalBytes: 8 << 20, Ratio: 1 << 20}},
		{"a bomb", "archive-ratio", archive{parts: []part{{name: "x", content: zeros}}}, Limits{}},
		{"too many entries", "too-many-entries", many, Limits{Entries: 49}},
		{"too many folders that no entry names", "too-many-entries", many, Limits{Entries: 99}},
		{"a name that is too long for the caller", "entry-name-too-long", archive{parts: []part{{name: "long"}}}, Limits{NameBytes: 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parent := parentOf(t)
			_, err := unzip(t, parent, tt.a.bytes(), Options{Limits: tt.limits})
			if coded.Of(err) != tt.code {
				t.Errorf("got %q (%v), want %q", coded.Of(err), err, tt.code)
			}
			wantNothing(t, parent)
		})
	}
	parent := parentOf(t)
	if _, err := unzip(t, parent, many.bytes(), Options{Limits: Limits{Entries: 100}}); err != nil {
		t.Errorf("exactly at the limit: %v", err)
	}
}

func TestOrdinaryZips(t *testing.T) { // C47, C52
	big := strings.Repeat("some text that packs well, as text does\n", 4000)
	a := archive{comment: "packed by hand", parts: []part{
		{name: "server/"},
		{name: "./docs/"},
		{name: "server/run", content: "#!", mode: 0o100755},
		{name: "server/setuid", content: "#!", mode: 0o104777},
		{name: "server/world.js", content: "js", mode: 0o100666},
		{name: "server/windows.exe", content: "MZ"},
		{name: "server/signed", content: big, after: "signed", mode: 0o100644},
		{name: "server/unsigned", content: big, after: "unsigned", mode: 0o100644},
		{name: "server/wide", content: big, after: "wide", mode: 0o100644},
		{name: "server/stored", content: "as it is", stored: true, mode: 0o100644},
		{name: "d\u00e9cembre", content: "x", mode: 0o100600},
		{name: "empty", mode: 0o100644},
	}}
	for _, zip64 := range []func([]byte){nil, func([]byte) {}} {
		a.zip64 = zip64
		parent := parentOf(t)
		result, err := unzip(t, parent, a.bytes(), Options{})
		must(t, err)
		want := strings.Join([]string{
			"-rw-r--r-- d\u00e9cembre x", "-rw-r--r-- empty ",
			"-rw-r--r-- server/signed " + big[:20], "-rw-r--r-- server/stored as it is", "-rw-r--r-- server/unsigned " + big[:20],
			"-rw-r--r-- server/wide " + big[:20], "-rw-r--r-- server/windows.exe MZ", "-rw-r--r-- server/world.js js",
			"-rwxr-xr-x server/run #!", "-rwxr-xr-x server/setuid #!", "docs/", "server/",
		}, "\n")
		if got := listing(t, filepath.Join(parent, "new")); got != want && runtime.GOOS != "windows" {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if result.Files != 10 || result.Entries != 12 || !slices.Equal(result.Modeless, []string{"server/windows.exe"}) {
			t.Errorf("got %+v", result)
		}
	}
}

func TestNamesThatWindowsCannotHaveAreAWarning(t *testing.T) { // C54
	if runtime.GOOS == "windows" {
		return // there they are refused
	}
	a := archive{parts: []part{{name: "ok/console.js", content: "x"}}}
	bad := []string{"CON", "aux.js", "lib/nul .txt", "com1", "LPT\u00b9.log", "dot.", "space ", "ab:c", "what?", "conin$", "folder./x"}
	for _, name := range bad {
		a.parts = append(a.parts, part{name: name, content: "x"})
	}
	result, err := unzip(t, parentOf(t), a.bytes(), Options{})
	must(t, err)
	var got []string
	for _, w := range result.Warnings {
		if w.Code != CodeNotOnWindows {
			t.Errorf("got %+v", w)
		}
		got = append(got, w.Path)
	}
	bad[len(bad)-1] = "folder."
	if !slices.Equal(got, bad) {
		t.Errorf("got  %q\nwant %q", got, bad)
	}
}

func TestKeptCase(t *testing.T) {
	a := archive{parts: []part{{name: "README.md", content: "1"}, {name: "readme.md", content: "2"}}}
	if runtime.GOOS != "linux" {
		return // the file system itself has one of the two
	}
	_, err := unzip(t, parentOf(t), a.bytes(), Options{KeepCase: true})
	must(t, err)
	a = archive{parts: []part{{name: "\u00e9", content: "1"}, {name: "e\u0301", content: "2"}}}
	if _, err = unzip(t, parentOf(t), a.bytes(), Options{KeepCase: true}); coded.Of(err) != "entry-collision" {
		t.Errorf("got %v", err)
	}
}

func TestCancelledUnpackingLeavesNothing(t *testing.T) {
	a := archive{}
	for i := range 400 {
		a.parts = append(a.parts, part{name: fmt.Sprintf("d%d/f", i%7), content: strings.Repeat("x", 1000)})
		a.parts[i].name += fmt.Sprint(i)
	}
	data := a.bytes()
	for _, at := range []int{1, 2, 100, 407} {
		ctx, cancel := context.WithCancel(t.Context())
		parent := parentOf(t)
		reads := 0
		_, err := Zip(ctx, readerAtFunc(func(b []byte, off int64) (int, error) {
			if reads++; reads == at {
				cancel()
			}
			return bytes.NewReader(data).ReadAt(b, off)
		}), int64(len(data)), filepath.Join(parent, "new"), Options{})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at read %d: %v", at, err)
		}
		wantNothing(t, parent)
		cancel()
	}
}

type readerAtFunc func([]byte, int64) (int, error)

func (f readerAtFunc) ReadAt(b []byte, off int64) (int, error) { return f(b, off) }

func TestAFolderThatIsThereIsNotUsed(t *testing.T) {
	parent := parentOf(t)
	kept := filepath.Join(parent, "new", "kept")
	must(t, os.MkdirAll(filepath.Dir(kept), 0o700))
	must(t, os.WriteFile(kept, nil, 0o600))
	data := archive{parts: []part{{name: "x", content: "x"}}}.bytes()
	if _, err := unzip(t, parent, data, Options{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
}

// What other programs pack is read as they meant it.
func TestZipsOfOtherPrograms(t *testing.T) {
	source := t.TempDir()
	for name, content := range map[string]string{"server/index.js": "code", "server/lib/a.txt": strings.Repeat("text ", 1000), "empty.txt": "", "d\u00e9cembre.md": "x"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(source, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(source, name), []byte(content), 0o644))
	}
	must(t, os.Chmod(filepath.Join(source, "server/index.js"), 0o755))
	must(t, os.Chmod(source, 0o755))
	want := listing(t, source)
	packers := map[string]func(file string) error{
		"archive/zip": func(file string) error {
			f, err := os.Create(file)
			must(t, err)
			w := zip.NewWriter(f)
			return errors.Join(w.AddFS(os.DirFS(source)), w.Close(), f.Close())
		},
		"python": func(file string) error {
			script := `import os, sys, zipfile
z = zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED)
for d, _, files in os.walk("."):
    z.write(d)
    for f in files: z.write(os.path.join(d, f))
z.close()`
			return run(source, "python3", "-c", script, file)
		},
		"zip":        func(file string) error { return run(source, "zip", "-q", "-r", file, ".") },
		"zip stream": func(file string) error { return run(source, "sh", "-c", "zip -q -r - . > "+file) },
		"zip -fz":    func(file string) error { return run(source, "zip", "-q", "-fz", "-r", file, ".") },
	}
	for name, pack := range packers {
		t.Run(name, func(t *testing.T) {
			if program, _, _ := strings.Cut(name, " "); program == "zip" {
				if _, err := exec.LookPath("zip"); err != nil {
					t.Log("there is no zip on this computer")
					return
				}
			}
			file := filepath.Join(t.TempDir(), "x.zip")
			must(t, pack(file))
			data, err := os.ReadFile(file)
			must(t, err)
			parent := parentOf(t)
			_, err = unzip(t, parent, data, Options{})
			must(t, err)
			if got := listing(t, filepath.Join(parent, "new")); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func run(dir string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, out)
	}
	return nil
}

// FuzzZip: whatever the bytes, there is a folder or there is nothing; and what is
// taken, another reader reads the same way.
func FuzzZip(f *testing.F) {
	f.Add(archive{parts: []part{{name: "plugin.json", content: "{}"}, {name: "d/"}, {name: "d/x", content: strings.Repeat("x", 99), after: "signed", mode: 0o100755}}}.bytes())
	f.Add(archive{parts: []part{{name: "a", content: "x"}}, zip64: func([]byte) {}, comment: "c"}.bytes())
	f.Add(archive{}.bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		parent := parentOf(t)
		limits := Limits{Entries: 100, FileBytes: 1 << 20, TotalBytes: 4 << 20}
		result, err := unzip(t, parent, data, Options{Limits: limits})
		if err != nil {
			wantNothing(t, parent)
			return
		}
		agree(t, filepath.Join(parent, "new"), data, result)
	})
}

// agree compares with package archive/zip.
func agree(t *testing.T, dir string, data []byte, result Result) {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		t.Fatalf("another reader refuses it: %v", err)
	}
	files := 0
	for _, entry := range reader.File {
		if entry.FileInfo().IsDir() {
			continue
		}
		files++
		r, err := entry.Open()
		must(t, err)
		want, err := io.ReadAll(r)
		must(t, err)
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(entry.Name)))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q differs: %v", entry.Name, err)
		}
	}
	if files != result.Files {
		t.Fatalf("another reader finds %d files, not %d", files, result.Files)
	}
}
