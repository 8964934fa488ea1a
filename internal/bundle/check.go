package bundle

import (
	"bytes"
	"debug/macho"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"howett.net/plist"

	"sallyport/internal/buildinfo"
)

// Problem is one thing that is wrong with a bundle.
type Problem struct {
	Code     string
	Path     string // inside the bundle; "" for the whole
	Sentence string
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Code + ": " + p.Sentence
	}
	return p.Code + ": " + p.Path + ": " + p.Sentence
}

// Want is what a bundle is compared with. The zero one compares it with itself alone.
type Want struct {
	Version string   // "" for whichever it says
	Archs   []string // "arm64", "amd64"; nil for whichever there are
	// Attributes lists a file's extended attributes; nil asks the system.
	Attributes func(path string) ([]string, error)
}

// Check returns all that is wrong with the bundle at dir.
func Check(dir string, want Want) []Problem {
	if want.Attributes == nil {
		want.Attributes = attributes
	}
	c := &checker{dir: dir, want: want}
	info, err := os.Lstat(filepath.Join(dir, "Contents"))
	if filepath.Ext(filepath.Clean(dir)) != ".app" || err != nil || !info.IsDir() {
		c.say("not-a-bundle", "", "this is no folder with a name in .app and Contents in it")
		return c.problems
	}
	c.files()
	c.info()
	return c.problems
}

type checker struct {
	dir      string
	want     Want
	problems []Problem
	plist    []byte
	fields   infoPlist
}

func (c *checker) say(code, name, sentence string, args ...any) {
	c.problems = append(c.problems, Problem{code, name, fmt.Sprintf(sentence, args...)})
}

// files looks at what lies in the bundle, whatever it is for.
func (c *checker) files() {
	err := filepath.WalkDir(c.dir, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(c.dir, full)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		c.attributesOf(full, name)
		if stray(name) {
			c.say("stray-file", name, "it belongs to no bundle")
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			c.link(full, name)
		case info.IsDir() || info.Mode().IsRegular():
			c.mode(name, info.Mode())
		default:
			c.say("stray-file", name, "it is neither file, folder nor link")
		}
		return nil
	})
	if err != nil {
		c.say("unreadable", "", "%v", err)
	}
}

// stray says whether a name is of what desktops, archives and editors leave behind.
func stray(name string) bool {
	base := path.Base(name)
	switch {
	case name == "." || name == "Contents":
		return false
	case !strings.HasPrefix(name, "Contents/"):
		return true
	case strings.HasPrefix(base, "._"), strings.HasSuffix(base, "~"), strings.HasPrefix(base, ".git"):
		return true
	}
	return slices.Contains([]string{".DS_Store", "__MACOSX", ".localized", "Icon\r", ".fseventsd"}, base)
}

func (c *checker) attributesOf(full, name string) {
	all, err := c.want.Attributes(full)
	if err != nil {
		c.say("unreadable", name, "its attributes cannot be read")
		return
	}
	for _, attribute := range all {
		if strings.HasSuffix(attribute, "com.apple.quarantine") {
			c.say("quarantined", name, "it is marked as downloaded (com.apple.quarantine)")
		}
	}
}

func (c *checker) link(full, name string) {
	target, err := os.Readlink(full)
	if err != nil {
		c.say("unreadable", name, "its target cannot be read")
		return
	}
	inside := path.Join(path.Dir(name), filepath.ToSlash(target))
	switch {
	case filepath.IsAbs(target), inside == "..", strings.HasPrefix(inside, "../"):
		c.say("link-outside", name, "it leads out of the bundle")
	default:
		if _, err := os.Stat(full); err != nil {
			c.say("link-broken", name, "it leads nowhere")
		}
	}
}

// mode compares with the one mode that a kind of file has.
func (c *checker) mode(name string, mode fs.FileMode) {
	want := fs.FileMode(0o644)
	if mode.IsDir() || path.Dir(name) == "Contents/MacOS" {
		want = 0o755
	}
	if got := mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid); got != want {
		c.say("wrong-mode", name, "its mode is %o and should be %o", unixMode(got), want)
	}
}

func unixMode(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		bits |= 0o4000
	}
	if mode&fs.ModeSetgid != 0 {
		bits |= 0o2000
	}
	return bits
}

// infoPlist are the keys that a bundle does not work without.
type infoPlist struct {
	ID         string `plist:"CFBundleIdentifier"`
	Name       string `plist:"CFBundleName"`
	Type       string `plist:"CFBundlePackageType"`
	Executable string `plist:"CFBundleExecutable"`
	Icon       string `plist:"CFBundleIconFile"`
	Version    string `plist:"CFBundleShortVersionString"`
	Numbers    string `plist:"CFBundleVersion"`
	Minimum    string `plist:"LSMinimumSystemVersion"`
	Commit     string `plist:"SallyportCommit"`
	Date       string `plist:"SallyportDate"`
	URLTypes   []struct {
		Schemes []string `plist:"CFBundleURLSchemes"`
	} `plist:"CFBundleURLTypes"`
}

// info looks at Info.plist and at what it names.
func (c *checker) info() {
	var err error
	if c.plist, err = os.ReadFile(filepath.Join(c.dir, "Contents", "Info.plist")); err != nil {
		c.say("plist-missing", "Contents/Info.plist", "it is missing or cannot be read")
		return
	}
	if _, err := plist.Unmarshal(c.plist, &c.fields); err != nil {
		c.say("plist-invalid", "Contents/Info.plist", "it is no property list with text where text belongs")
		return
	}
	numbers, _, _ := strings.Cut(c.fields.Version, "-")
	for _, key := range []struct {
		name, got, want string
	}{
		{"CFBundleIdentifier", c.fields.ID, ID},
		{"CFBundleName", c.fields.Name, "Sallyport"},
		{"CFBundlePackageType", c.fields.Type, "APPL"},
		{"CFBundleExecutable", c.fields.Executable, Executable},
		{"CFBundleIconFile", c.fields.Icon, Icon},
		{"CFBundleVersion", c.fields.Numbers, numbers},
	} {
		if key.got != key.want || key.want == "" {
			c.say("plist-key", "Contents/Info.plist", "%s is %q and should be %q", key.name, key.got, key.want)
		}
	}
	if !c.hasScheme() {
		c.say("plist-key", "Contents/Info.plist", "CFBundleURLTypes does not name %s", Scheme)
	}
	if c.want.Version != "" && c.fields.Version != c.want.Version {
		c.say("version-differs", "Contents/Info.plist", "it says %s, and %s is wanted", c.fields.Version, c.want.Version)
	}
	c.icon()
	c.executable()
}

func (c *checker) hasScheme() bool {
	for _, kind := range c.fields.URLTypes {
		if slices.Contains(kind.Schemes, Scheme) {
			return true
		}
	}
	return false
}

func (c *checker) icon() {
	content, err := os.ReadFile(filepath.Join(c.dir, "Contents", "Resources", Icon))
	if err != nil || !bytes.HasPrefix(content, []byte("icns")) || len(content) < 8 || int(big.Uint32(content[4:])) != len(content) {
		c.say("icon", "Contents/Resources/"+Icon, "it is missing or no icon")
	}
}

// executable looks at the program: its kinds, its stamp, its signature.
func (c *checker) executable() {
	where := "Contents/MacOS/" + Executable
	content, err := os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(where)))
	if err != nil {
		c.say("executable-missing", where, "it is missing or cannot be read")
		return
	}
	programs, archs, err := thin(content)
	if err != nil {
		c.say("executable-kind", where, "%v", err)
		return
	}
	for _, arch := range c.want.Archs {
		if !slices.Contains(archs, arch) {
			c.say("executable-archs", where, "it has no part for %s", arch)
		}
	}
	switch stamp, ok := buildinfo.Find(content); {
	case !ok:
		c.say("not-stamped", where, "it does not say one version (scripts/version ldflags)")
	case stamp != buildinfo.Info{Version: c.fields.Version, Commit: c.fields.Commit, Date: c.fields.Date}:
		c.say("version-differs", where, "it is %s of %s, and Info.plist says %s of %s", stamp.Version, stamp.Date, c.fields.Version, c.fields.Date)
	}
	for i, program := range programs {
		if needs := minimum(program); !atLeast(c.fields.Minimum, needs) {
			c.say("plist-key", "Contents/Info.plist", "LSMinimumSystemVersion is %q, and the program for %s needs %s", c.fields.Minimum, archs[i], needs)
		}
	}
	for i, program := range programs {
		if command(program, loadUUID) == nil {
			c.say("no-uuid", where, "the part for %s has no LC_UUID, by which macOS tells programs apart that use the local network", archs[i])
		}
	}
	c.signatures(where, programs, archs)
}

func (c *checker) signatures(where string, programs [][]byte, archs []string) {
	contents := os.DirFS(filepath.Join(c.dir, "Contents"))
	seal, err := fs.ReadFile(contents, sealFile)
	if err != nil {
		c.say("not-sealed", "Contents/"+sealFile, "it is missing or cannot be read")
		return
	}
	if err := verifySeal(contents, seal, Executable); err != nil {
		c.say("seal-broken", "Contents/"+sealFile, "%v", err)
	}
	for i, program := range programs {
		switch err := verify(program, c.plist, seal); {
		case errors.Is(err, errUnsigned):
			c.say("not-signed", where, "the part for %s has no signature", archs[i])
		case err != nil:
			c.say("signature-broken", where, "the part for %s: %v", archs[i], err)
		}
	}
}

// thin returns the programs of a Mach-O file, one for each kind of processor.
func thin(content []byte) (programs [][]byte, archs []string, err error) {
	fat, err := macho.NewFatFile(bytes.NewReader(content))
	if errors.Is(err, macho.ErrNotFat) {
		f, err := macho.NewFile(bytes.NewReader(content))
		if err != nil || f.Type != macho.TypeExec {
			return nil, nil, errors.New("it is no program for macOS")
		}
		return [][]byte{content}, []string{arch(f.Cpu)}, nil
	}
	if err != nil {
		return nil, nil, errors.New("it is no program for macOS")
	}
	for _, part := range fat.Arches {
		if part.Type != macho.TypeExec || uint64(part.Offset)+uint64(part.Size) > uint64(len(content)) {
			return nil, nil, errors.New("a part of it is no program for macOS")
		}
		programs = append(programs, content[part.Offset:part.Offset+part.Size])
		archs = append(archs, arch(part.Cpu))
	}
	return programs, archs, nil
}

// arch is Go's name of a kind of processor.
func arch(cpu macho.Cpu) string {
	switch cpu {
	case macho.CpuArm64:
		return "arm64"
	case macho.CpuAmd64:
		return "amd64"
	default:
		return cpu.String()
	}
}

// minimum is the oldest macOS that a program says it runs on, "" if it does not say.
func minimum(program []byte) string {
	raw := command(program, loadBuildVersion)
	if len(raw) < 16 {
		return ""
	}
	v := little.Uint32(raw[12:])
	return fmt.Sprintf("%d.%d", v>>16, v>>8&0xff)
}

// Load commands that are looked at here.
const (
	loadUUID         = 0x1b
	loadBuildVersion = 0x32
)

// command is the first load command of a kind, nil without.
func command(program []byte, kind uint32) []byte {
	f, err := macho.NewFile(bytes.NewReader(program))
	if err != nil {
		return nil
	}
	for _, load := range f.Loads {
		if raw := load.Raw(); little.Uint32(raw) == kind {
			return raw
		}
	}
	return nil
}

// atLeast compares numbers with points between them.
func atLeast(got, needs string) bool {
	g, n := strings.Split(got, "."), strings.Split(needs, ".")
	for i := range n {
		var a int
		if i < len(g) {
			var err error
			if a, err = strconv.Atoi(g[i]); err != nil {
				return false
			}
		}
		if b, _ := strconv.Atoi(n[i]); a != b {
			return a > b
		}
	}
	return got != ""
}
