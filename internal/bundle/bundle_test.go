package bundle

import (
	"archive/zip"
	"bytes"
	"debug/macho"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const commit = "6f0c2ab5a3f0de2a1d4b0d3c0a9be4f6f2c7a1b2"

// built are programs for macOS that Go's linker made, by processor and version. They
// are made once: a build takes seconds.
var built sync.Map

func program(t *testing.T, arch, version string) []byte {
	t.Helper()
	once, _ := built.LoadOrStore(arch+version, sync.OnceValues(func() ([]byte, error) { return build(t, arch, version) }))
	content, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func build(t *testing.T, arch, version string) ([]byte, error) {
	to := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", to,
		"-ldflags", "-s -w -X sallyport/internal/buildinfo.stamp=sallyport-build,"+version+","+commit+",2026-11-30T20:00:00Z,", "./testdata/program")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS=darwin", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Log(string(out))
		return nil, err
	}
	return os.ReadFile(to)
}

func plistTemplate(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "build", "darwin", "Info.plist"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func makeBundle(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "Sallyport.app")
	app := App{Programs: [][]byte{program(t, "amd64", "1.2.0"), program(t, "arm64", "1.2.0")}, Plist: plistTemplate(t), License: []byte("free\n"), Headless: true}
	if err := app.Make(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copies returns a good bundle again and again: drawing its icon takes long.
func copies(t *testing.T) func(*testing.T) string {
	original := makeBundle(t)
	return func(t *testing.T) string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "Sallyport.app")
		if err := os.CopyFS(dir, os.DirFS(original)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
}

func TestGoodBundleHasNoProblem(t *testing.T) {
	dir := makeBundle(t)
	if problems := Check(dir, Want{Version: "1.2.0", Archs: []string{"amd64", "arm64"}}); len(problems) > 0 {
		t.Errorf("has %v", problems)
	}
}

func TestSameProgramsGiveTheSameBundle(t *testing.T) {
	pack := func() []byte {
		var out bytes.Buffer
		if err := Zip(&out, makeBundle(t), time.Unix(1764500000, 0)); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	if !bytes.Equal(pack(), pack()) {
		t.Error("two bundles of the same programs differ")
	}
}

func change(from, to string) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		t.Helper()
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(content, []byte(from)) {
			t.Fatalf("%q is not there to be changed", from)
		}
		write(t, file, bytes.ReplaceAll(content, []byte(from), []byte(to)))
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func with(content []byte) func(*testing.T, string) {
	return func(t *testing.T, file string) { t.Helper(); write(t, file, content) }
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

func mode(mode fs.FileMode) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		t.Helper()
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func linkTo(target string) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		t.Helper()
		if err := os.Symlink(target, file); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEachProblemOfABundleIsNamed(t *testing.T) {
	const plist, exe, seal = "Contents/Info.plist", "Contents/MacOS/sallyport", "Contents/_CodeSignature/CodeResources"
	unsigned := slices.Clone(program(t, "amd64", "1.2.0"))
	anonymous := slices.Clone(unsigned)
	anonymous[bytes.Index(anonymous, command(anonymous, loadUUID))]++
	fat := func(programs ...[]byte) []byte {
		joined, err := Fat(programs...)
		if err != nil {
			t.Fatal(err)
		}
		return joined
	}
	bundle := copies(t)
	for _, row := range []struct {
		name, file string
		act        func(*testing.T, string)
		code       string
	}{
		{"Info.plist is missing", plist, remove, "plist-missing"},
		{"Info.plist is no property list", plist, with([]byte("{")), "plist-invalid"},
		{"Info.plist has a number where text belongs", plist, change("<string>APPL</string>", "<array/>"), "plist-invalid"},
		{"another identifier", plist, change("<string>io.sallyport.Sallyport</string>\n\t<key>CFBundleInfo", "<string>com.wails.app</string>\n\t<key>CFBundleInfo"), "plist-key"},
		{"no name", plist, change("<key>CFBundleName</key>", "<key>Other</key>"), "plist-key"},
		{"another kind of package", plist, change("APPL", "BNDL"), "plist-key"},
		{"the program has another name", plist, change("<string>sallyport</string>\n\t<key>CFBundleIcon", "<string>Sallyport</string>\n\t<key>CFBundleIcon"), "plist-key"},
		{"the icon has another name", plist, change("Sallyport.icns", "iconfile"), "plist-key"},
		{"no numbers of the build", plist, change("<key>CFBundleVersion</key>", "<key>Other</key>"), "plist-key"},
		{"no address of our own", plist, change("CFBundleURLSchemes", "CFBundleURLScheme"), "plist-key"},
		{"no oldest system", plist, change("LSMinimumSystemVersion", "LSMinimum"), "plist-key"},
		{"an older system than the program runs on", plist, change("<string>12.0</string>", "<string>10.13</string>"), "plist-key"},
		{"Info.plist says another version than the program", plist, change("1.2.0", "1.2.1"), "version-differs"},
		{"Info.plist says another commit than the program", plist, change(commit, strings.Repeat("0", 40)), "version-differs"},
		{"the icon is missing", "Contents/Resources/Sallyport.icns", remove, "icon"},
		{"the icon is a picture", "Contents/Resources/Sallyport.icns", with([]byte("\x89PNG")), "icon"},
		{"the program is missing", exe, remove, "executable-missing"},
		{"the program is a script", exe, with([]byte("#!/bin/sh\n")), "executable-kind"},
		{"the program is one of Linux", exe, with([]byte("\x7fELF\x02\x01\x01")), "executable-kind"},
		{"the program is for one processor", exe, with(program(t, "arm64", "1.2.0")), "executable-archs"},
		{"its parts are of two versions", exe, with(fat(unsigned, program(t, "arm64", "1.2.1"))), "not-stamped"},
		{"a part has no signature", exe, with(fat(unsigned, program(t, "arm64", "1.2.0"))), "not-signed"},
		{"the linker's signature alone", exe, with(fat(unsigned, program(t, "arm64", "1.2.0"))), "signature-broken"},
		{"a byte of the program was changed", exe, change("__LINKEDIT", "__LINKEDIX"), "signature-broken"},
		{"a text of the program was changed", exe, change("sallyport/internal/buildinfo.Read", "sallyport/internal/buildinfo.Reed"), "signature-broken"},
		{"Info.plist was changed after signing", plist, change("developer-tools", "games"), "signature-broken"},
		{"a part has no name of its own", exe, with(anonymous), "no-uuid"},
		{"no seal", seal, remove, "not-sealed"},
		{"the seal is no property list", seal, with([]byte("x")), "seal-broken"},
		{"a sealed file was changed", "Contents/Resources/LICENSE.txt", with([]byte("not free\n")), "seal-broken"},
		{"a sealed file is missing", "Contents/Resources/LICENSE.txt", remove, "seal-broken"},
		{"a file came after the seal", "Contents/Resources/more.txt", with(nil), "seal-broken"},
		{"Finder left a file", "Contents/Resources/.DS_Store", with(nil), "stray-file"},
		{"an archive left a file", "Contents/._Info.plist", with(nil), "stray-file"},
		{"a file lies beside Contents", "notes.txt", with(nil), "stray-file"},
		{"a link leads out", "Contents/Resources/link", linkTo("../../../etc"), "link-outside"},
		{"a link leads to a place on this disk", "Contents/Resources/link", linkTo("/etc/hosts"), "link-outside"},
		{"a link leads nowhere", "Contents/Resources/link", linkTo("nothing"), "link-broken"},
		{"others may write", "Contents/Resources/LICENSE.txt", mode(0o666), "wrong-mode"},
		{"the program cannot be started", exe, mode(0o644), "wrong-mode"},
		{"the program is somebody else", exe, mode(0o755 | fs.ModeSetuid), "wrong-mode"},
		{"a folder is closed to others", "Contents/Resources", mode(0o700), "wrong-mode"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := bundle(t)
			row.act(t, filepath.Join(dir, filepath.FromSlash(row.file)))
			problems := Check(dir, Want{Version: "1.2.0", Archs: []string{"amd64", "arm64"}})
			if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == row.code }) {
				t.Errorf("has %v, want %s", problems, row.code)
			}
		})
	}
}

func TestOtherVersionThanWantedIsRefused(t *testing.T) {
	if problems := Check(makeBundle(t), Want{Version: "1.3.0"}); len(problems) != 1 || problems[0].Code != "version-differs" {
		t.Errorf("has %v", problems)
	}
}

func TestQuarantinedFileIsRefused(t *testing.T) {
	marked := func(path string) ([]string, error) {
		if filepath.Base(path) == Executable {
			return []string{"com.apple.quarantine"}, nil
		}
		return attributes(path)
	}
	if problems := Check(makeBundle(t), Want{Attributes: marked}); len(problems) != 1 || problems[0].Code != "quarantined" {
		t.Errorf("has %v", problems)
	}
}

func TestWhatIsNoBundleIsRefused(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "No.app")} {
		if problems := Check(dir, Want{}); len(problems) != 1 || problems[0].Code != "not-a-bundle" {
			t.Errorf("has %v", problems)
		}
	}
}

func TestLinkInsideIsKeptByTheArchive(t *testing.T) {
	dir := makeBundle(t)
	linkTo("../MacOS/sallyport")(t, filepath.Join(dir, "Contents", "Resources", "link"))
	for _, p := range Check(dir, Want{}) {
		if p.Code != "seal-broken" {
			t.Errorf("a link inside is a problem: %v", p)
		}
	}
	var out bytes.Buffer
	if err := Zip(&out, dir, time.Unix(1764500000, 0)); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]fs.FileMode{}
	for _, file := range archive.File {
		modes[file.Name] = file.Mode()
		if file.Name == "Sallyport.app/Contents/Resources/link" {
			content, err := file.Open()
			if err != nil {
				t.Fatal(err)
			}
			if target, err := io.ReadAll(content); err != nil || string(target) != "../MacOS/sallyport" {
				t.Errorf("the link leads to %q: %v", target, err)
			}
		}
	}
	for name, want := range map[string]fs.FileMode{
		"Sallyport.app/Contents/Resources/link":  fs.ModeSymlink | 0o777,
		"Sallyport.app/Contents/MacOS/sallyport": 0o755,
		"Sallyport.app/Contents/Info.plist":      0o644,
		"Sallyport.app/Contents/":                fs.ModeDir | 0o755,
	} {
		if modes[name] != want {
			t.Errorf("%s has the mode %v, want %v", name, modes[name], want)
		}
	}
}

// Go's linker is the other implementation: it signs every program for arm64.
func TestSignatureIsByteForByteTheLinkers(t *testing.T) {
	theirs := program(t, "arm64", "1.2.0")
	const linkerSigned = 0x20000
	ours, err := Sign(theirs, Signature{Identifier: "a.out", Bare: true, Flags: linkerSigned})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ours, theirs) {
		t.Error("the signature differs from the linker's")
	}
}

func TestSignedProgramIsStillAProgram(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		before := program(t, arch, "1.2.0")
		after, err := Sign(before, Signature{Identifier: ID})
		if err != nil {
			t.Fatal(err)
		}
		old, err := macho.NewFile(bytes.NewReader(before))
		if err != nil {
			t.Fatal(err)
		}
		f, err := macho.NewFile(bytes.NewReader(after))
		if err != nil {
			t.Fatal(err)
		}
		if edit := f.Segment("__LINKEDIT"); edit.Offset+edit.Filesz != uint64(len(after)) || edit.Memsz < edit.Filesz {
			t.Errorf("%s: the last segment ends at %d of %d bytes", arch, edit.Offset+edit.Filesz, len(after))
		}
		for i, section := range old.Sections {
			if section.Offset == 0 {
				continue // zeros, which are not in the file
			}
			was, _ := section.Data()
			is, err := f.Sections[i].Data()
			if err != nil || !bytes.Equal(was, is) {
				t.Errorf("%s: section %s was changed: %v", arch, section.Name, err)
			}
		}
		if again, err := Sign(after, Signature{Identifier: ID}); err != nil || !bytes.Equal(again, after) {
			t.Errorf("%s: signed again it differs: %v", arch, err)
		}
		if err := verify(after, nil, nil); err != nil {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

func TestUniversalProgramHoldsBothAsTheyWere(t *testing.T) {
	a, b := program(t, "amd64", "1.2.0"), program(t, "arm64", "1.2.0")
	joined, err := Fat(a, b)
	if err != nil {
		t.Fatal(err)
	}
	programs, archs, err := thin(joined)
	if err != nil || !slices.Equal(archs, []string{"amd64", "arm64"}) || !bytes.Equal(programs[0], a) || !bytes.Equal(programs[1], b) {
		t.Errorf("holds %v: %v", archs, err)
	}
	fat, err := macho.NewFatFile(bytes.NewReader(joined))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range fat.Arches {
		if part.Offset%(1<<14) != 0 || part.Align != 14 {
			t.Errorf("the part for %v begins at %d", part.Cpu, part.Offset)
		}
	}
	if _, err := Fat(a, a); err == nil {
		t.Error("two programs for one processor are joined")
	}
	if _, err := Fat(a, []byte("no program")); err == nil {
		t.Error("what is no program is joined")
	}
}

func TestBundleOfTwoVersionsIsNotMade(t *testing.T) {
	app := App{Programs: [][]byte{program(t, "amd64", "1.2.0"), program(t, "arm64", "1.2.1")}, Plist: plistTemplate(t)}
	if err := app.Make(filepath.Join(t.TempDir(), "Sallyport.app")); err == nil {
		t.Error("it is made")
	}
}

func FuzzSignatureIsReadWithoutAPanic(f *testing.F) {
	blob := Signature{Identifier: ID}.blob(make([]byte, 5000), places{})
	f.Add(blob)
	f.Add(blob[:40])
	f.Fuzz(func(_ *testing.T, blob []byte) {
		if len(blob) >= 12 {
			if d, err := directoryOf(blob); err == nil {
				_ = d.compare(make([]byte, 5000), []byte("a"), []byte("b"))
			}
		}
	})
}
