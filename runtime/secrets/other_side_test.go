//go:build !linux

package secrets

// otherSide is on Linux alone.
func otherSide() {}
