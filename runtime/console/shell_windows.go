package console

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

const shellVariable = "ComSpec"

func systemShell() string { return filepath.Join(systemFolder(), "cmd.exe") }

func systemFolder() string {
	folder, err := windows.GetSystemDirectory()
	if err != nil {
		return `C:\Windows\System32`
	}
	return folder
}

// trusted reports whether a path leads to a program in the system's folder, where only
// an administrator puts one.
func trusted(path string) bool {
	info, err := os.Stat(path)
	inside := strings.HasPrefix(strings.ToLower(filepath.Clean(path)), strings.ToLower(systemFolder())+`\`)
	return err == nil && info.Mode().IsRegular() && inside
}
