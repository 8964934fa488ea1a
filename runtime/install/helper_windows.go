package install

import "os/exec"

// ownGroup leaves the killing to WaitDelay: helpers start nothing that outlives
// their pipes.
func ownGroup(*exec.Cmd) {}
