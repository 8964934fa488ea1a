package fakeserver

import "os/exec"

func ignoreTermination() {}

func ownSession(*exec.Cmd) {}
