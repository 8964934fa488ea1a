//go:build !linux

package process

// bootID is not needed where start times are dates.
func bootID() string { return "" }
