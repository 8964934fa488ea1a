package browser

import (
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"
)

// system is the part of Windows that opens addresses, in the system's own folder.
func system() []string {
	dir, err := windows.GetSystemDirectory()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(dir, "rundll32.exe"), "url.dll,FileProtocolHandler"}
}

// detach keeps the browser when Sallyport ends.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
}
