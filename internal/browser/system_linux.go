package browser

import (
	"os"
	"os/exec"
	"syscall"
)

// system is xdg-open where distributions put it.
func system() []string {
	for _, path := range []string{"/usr/bin/xdg-open", "/usr/local/bin/xdg-open", "/run/current-system/sw/bin/xdg-open"} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return []string{path}
		}
	}
	return nil
}

// detach keeps the browser when Sallyport ends.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
