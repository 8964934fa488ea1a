package loginitem

import (
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"sallyport/internal/coded"
)

// checkProgram refuses a program that will not be there, or not be started, at the next
// login: one in a temporary folder, on a disk image, in a cache of builds, one that macOS
// runs from a copy of its own or asks about first.
func (i Item) checkProgram() error {
	if !filepath.IsAbs(i.Program) || strings.ContainsFunc(strings.Join(append([]string{i.Program}, i.Args...), ""), unicode.IsControl) {
		return refused("it or its data folder has no path that can be written down", "install Sallyport, and turn this on in the installed one")
	}
	real, err := filepath.EvalSymlinks(i.Program)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(real); err == nil && !info.Mode().IsRegular() {
			err = os.ErrInvalid
		}
	}
	if err != nil {
		return refused("its file is gone or was replaced while it runs", "start Sallyport again, then turn this on")
	}
	for _, path := range []string{i.Program, real} {
		if why := i.passing(filepath.Clean(path)); why != "" {
			return refused(why, "install Sallyport where it stays, and turn this on in the installed one")
		}
	}
	if quarantined(real) {
		return refused("macOS has it in quarantine", "move Sallyport into Applications and open it once, then turn this on")
	}
	return nil
}

func refused(why, next string) error {
	return &coded.Error{Code: "autostart-place-refused", Sentence: "this program cannot be started at login: " + why, Next: next}
}

// passing says why a program at a path will not stay there, or "".
func (i Item) passing(path string) string {
	temps := i.Temps
	if temps == nil {
		temps = i.temporary()
	}
	for _, temp := range temps {
		if within(path, temp) {
			return "it lies in a folder that is cleared"
		}
	}
	slashed := filepath.ToSlash(path)
	switch {
	case strings.Contains(slashed, "/AppTranslocation/"):
		return "macOS runs it from a copy that it throws away"
	case strings.HasPrefix(slashed, "/Volumes/"):
		return "it lies on a disk image or on a disk that can be taken away"
	case strings.Contains(slashed, "/go-build"):
		return "it lies in the cache of the Go command"
	}
	return ""
}

// temporary are the folders that systems clear.
func (i Item) temporary() []string {
	return []string{
		os.TempDir(), resolved(os.TempDir()), "/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp",
		"/private/var/folders", "/var/folders",
		filepath.Join(i.Home, ".cache"), filepath.Join(i.Home, "Library", "Caches"),
		filepath.Join(i.Home, ".Trash"), filepath.Join(i.Home, ".local", "share", "Trash"),
	}
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func within(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator)) && filepath.IsAbs(folder)
}
