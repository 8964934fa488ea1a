//go:build !windows

package fakeserver

import (
	"os/exec"
	"os/signal"
	"syscall"
)

func ignoreTermination() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE) }

func ownSession(child *exec.Cmd) { child.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
