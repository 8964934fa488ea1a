package browser

import (
	"os/exec"
	"syscall"
)

// system is open, which is part of macOS. -u takes what follows for an address and
// never for a file.
func system() []string { return []string{"/usr/bin/open", "-u"} }

// detach keeps the browser when Sallyport ends.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
