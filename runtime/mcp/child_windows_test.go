package mcp

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func killGroup(pid int) { killProcess(pid) }

func killProcess(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}

func alive(pid int) bool {
	_, err := os.FindProcess(pid)
	return err == nil
}
