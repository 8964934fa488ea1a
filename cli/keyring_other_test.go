//go:build !linux

package cli_test

import "testing"

// keyring: a login of its own can be made on Linux only.
func keyring(*testing.T) map[string]string { return nil }
