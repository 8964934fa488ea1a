package cli_test

import (
	"testing"

	"sallyport/internal/keyringtest"
)

// keyring is the address of a login of its own with an unlocked keyring, for the
// script that says so; the others have none.
func keyring(t *testing.T) map[string]string {
	login := keyringtest.Unlocked(t)
	return map[string]string{"KEYRING": login.Address, "KEYRING_RUNTIME": login.Runtime}
}
