//go:build !windows

package install

import (
	"os/exec"
	"syscall"
)

// ownGroup lets the end of ctx reach everything that the helper started.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
