//go:build !windows

package mcp

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }

func killProcess(pid int) { syscall.Kill(pid, syscall.SIGKILL) }

// alive is false for a zombie too: some containers have nobody who reaps.
func alive(pid int) bool {
	if stat, err := os.ReadFile("/proc/" + itoa(pid) + "/stat"); err == nil {
		_, rest, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(rest, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}
