package secrets

import "github.com/zalando/go-keyring"

// SystemKeyring returns the Credential Manager. It does not touch it.
func SystemKeyring(c KeyringConfig) Backend {
	return &library{
		name: "the Windows Credential Manager", service: c.service(), limit: windowsLimit(),
		set: keyring.Set, get: keyring.Get, remove: keyring.Delete,
		absent: keyring.ErrNotFound, explain: windowsError,
	}
}
