package secrets

import "github.com/zalando/go-keyring"

// SystemKeyring returns the login keychain. It does not touch it.
func SystemKeyring(c KeyringConfig) Backend {
	return &library{
		name: "the macOS keychain", service: c.service(), limit: macLimit(c.service()),
		set: keyring.Set, get: keyring.Get, remove: keyring.Delete,
		absent: keyring.ErrNotFound, explain: macError,
	}
}
