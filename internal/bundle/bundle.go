// Package bundle makes and checks Sallyport's .app for macOS, on any system.
//
// The one idea: a bundle is files with rules, so that a folder can be put together
// and looked at without a Mac: Info.plist, the icon, one program for both kinds of
// processor, and the ad-hoc signature that makes all of it one thing. What this checks
// is not what macOS checks: Check refuses what is wrong for certain, and docs/macos.md
// says what only a Mac can show.
//
// It builds no program and signs with no identity. Only build/sallyport-bundle
// imports it.
package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"sallyport/internal/appicon"
	"sallyport/internal/buildinfo"
	"sallyport/internal/loginitem"
)

// Names that are the same in every bundle. ID is also the name that macOS knows the
// running app by, and that of the login item.
const (
	ID         = loginitem.Name
	Executable = "sallyport"
	Icon       = "Sallyport.icns"
	Scheme     = "sallyport"
)

// App says what a bundle is made of.
type App struct {
	// Programs are Mach-O files, one for each kind of processor.
	Programs [][]byte
	// Plist is the template of Info.plist.
	Plist string
	// License is put in as it is.
	License []byte
	// Headless programs have no window of their own.
	Headless bool
}

// Make puts the bundle together at dir, which must not exist and ends in .app. The
// version in Info.plist is the one that the programs are stamped with.
func (a App) Make(dir string) error {
	if filepath.Ext(dir) != ".app" {
		return fmt.Errorf("cannot make %s: a bundle's name ends in .app", filepath.Base(dir))
	}
	info, err := a.stamp()
	if err != nil {
		return err
	}
	plist, err := a.infoPlist(info)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // a program that everybody may start
		return fmt.Errorf("cannot make the bundle: %w", err)
	}
	files := map[string][]byte{
		"Contents/Info.plist":        plist,
		"Contents/PkgInfo":           []byte("APPL????"),
		"Contents/Resources/" + Icon: icns(),
	}
	if len(a.License) > 0 {
		files["Contents/Resources/LICENSE.txt"] = a.License
	}
	for name, content := range files {
		if err := put(dir, name, content, 0o644); err != nil {
			return err
		}
	}
	return a.sign(dir, plist)
}

// sign writes the seal over what is there, and the programs with a signature that
// names the seal.
func (a App) sign(dir string, plist []byte) error {
	seal, err := codeResources(os.DirFS(filepath.Join(dir, "Contents")), Executable)
	if err != nil {
		return err
	}
	if err := put(dir, "Contents/_CodeSignature/CodeResources", seal, 0o644); err != nil {
		return err
	}
	signed := make([][]byte, 0, len(a.Programs))
	for _, program := range a.Programs {
		one, err := Sign(program, Signature{Identifier: ID, InfoPlist: plist, Resources: seal})
		if err != nil {
			return err
		}
		signed = append(signed, one)
	}
	program := signed[0]
	if len(signed) > 1 {
		if program, err = Fat(signed...); err != nil {
			return err
		}
	}
	return put(dir, "Contents/MacOS/"+Executable, program, 0o755)
}

// stamp is what all programs say of themselves.
func (a App) stamp() (buildinfo.Info, error) {
	info, ok := buildinfo.Find(bytes.Join(a.Programs, nil))
	if !ok {
		return info, errors.New("cannot tell the version: the programs have no stamp, or different ones (build with scripts/version ldflags)")
	}
	return info, nil
}

func (a App) infoPlist(info buildinfo.Info) ([]byte, error) {
	t, err := template.New("Info.plist").Option("missingkey=error").Parse(a.Plist)
	if err != nil {
		return nil, fmt.Errorf("cannot read the template: %w", err)
	}
	numbers, _, _ := strings.Cut(info.Version, "-")
	var out bytes.Buffer
	// No value needs escaping: the forms of all are known (buildinfo).
	err = t.Execute(&out, map[string]any{
		"ID": ID, "Executable": Executable, "Icon": Icon, "Version": info.Version, "Numbers": numbers,
		"Commit": info.Commit, "Date": info.Date, "Headless": a.Headless,
	})
	return out.Bytes(), err
}

func put(dir, name string, content []byte, mode fs.FileMode) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a program that everybody may start
		return fmt.Errorf("cannot make the bundle: %w", err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return fmt.Errorf("cannot make the bundle: %w", err)
	}
	return os.Chmod(path, mode) // whatever the umask is
}

// icns is the icon in every size that macOS asks for: PNG files in a container.
func icns() []byte {
	var parts bytes.Buffer
	for _, size := range []struct {
		kind   string
		pixels int
	}{{"icp4", 16}, {"ic11", 32}, {"icp5", 32}, {"ic12", 64}, {"ic07", 128}, {"ic13", 256}, {"ic08", 256}, {"ic14", 512}, {"ic09", 512}, {"ic10", 1024}} {
		content := appicon.PNG(size.pixels, false)
		parts.WriteString(size.kind)
		parts.Write(big.AppendUint32(nil, uint32(8+len(content))))
		parts.Write(content)
	}
	return append(big.AppendUint32([]byte("icns"), uint32(8+parts.Len())), parts.Bytes()...)
}
