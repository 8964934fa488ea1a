package bundle

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the older half of Apple's format; the newer, with SHA-256, is the one that counts
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"howett.net/plist"
)

// sealFile is the seal's place below Contents.
const sealFile = "_CodeSignature/CodeResources"

// sealed says whether codesign takes a file below Contents into the seal. The program
// itself, Info.plist and the seal are covered by the program's signature.
func sealed(name, executable string) bool {
	switch {
	case name == "Info.plist", name == "PkgInfo", name == "MacOS/"+executable:
		return false
	case strings.HasPrefix(name, "_CodeSignature/"), path.Base(name) == ".DS_Store":
		return false
	}
	return true
}

// codeResources is the seal: the hash of every file, and the rules by which macOS
// finds out whether one is missing or came to it. The rules are codesign's own.
func codeResources(contents fs.FS, executable string) ([]byte, error) {
	files, files2 := map[string]any{}, map[string]any{}
	err := fs.WalkDir(contents, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !sealed(name, executable) {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is no file", name)
		}
		content, err := fs.ReadFile(contents, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		files2[name] = map[string]any{"hash2": sum[:]}
		if strings.HasPrefix(name, "Resources/") {
			old := sha1.Sum(content) //nolint:gosec // see above
			files[name] = old[:]
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot seal the bundle: %w", err)
	}
	return encode(map[string]any{"files": files, "files2": files2, "rules": rules(), "rules2": rules2()})
}

func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := plist.NewEncoderForFormat(&out, plist.XMLFormat)
	encoder.Indent("\t")
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), nil
}

type rule = map[string]any

func weight(w float64) rule { return rule{"weight": w} }

func rules() rule {
	return rule{
		"^Resources/":                            true,
		`^Resources/.*\.lproj/`:                  rule{"optional": true, "weight": 1000.0},
		`^Resources/Base\.lproj/`:                weight(1010),
		`^Resources/.*\.lproj/locversion.plist$`: rule{"omit": true, "weight": 1100.0},
		"^version.plist$":                        true,
	}
}

func rules2() rule {
	all := rule{
		"^.*":                          true,
		`.*\.dSYM($|/)`:                weight(11),
		`^(.*/)?\.DS_Store$`:           rule{"omit": true, "weight": 2000.0},
		`^Info\.plist$`:                rule{"omit": true, "weight": 20.0},
		"^PkgInfo$":                    rule{"omit": true, "weight": 20.0},
		"^Resources/":                  weight(20),
		"^[^/]+$":                      rule{"nested": true, "weight": 10.0},
		`^version\.plist$`:             weight(20),
		`^embedded\.provisionprofile$`: weight(20),
		"^(Frameworks|SharedFrameworks|PlugIns|Plug-ins|XPCServices|Helpers|MacOS|Library/(Automator|Spotlight|LoginItems))/": rule{"nested": true, "weight": 10.0},
	}
	for name, value := range rules() {
		if strings.Contains(name, "lproj") {
			all[name] = value
		}
	}
	return all
}
