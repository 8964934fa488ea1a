//go:build !windows

package env

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// ownSession keeps an interactive shell away from Sallyport's terminal, and
// makes its process group killable as one.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// killGroup is called before Wait, while pid cannot have been given away.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// shellOf finds the login shell of uid in the text of /etc/passwd.
func shellOf(passwd []byte, uid int) string {
	for line := range strings.Lines(string(passwd)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(fields) == 7 && fields[2] == strconv.Itoa(uid) {
			return fields[6]
		}
	}
	return ""
}
