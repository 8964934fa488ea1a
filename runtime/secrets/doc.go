// Package secrets keeps values in the operating system's keyring and gives them
// to env only.
//
// The one idea: a value comes back byte for byte or is refused before it is
// stored, and every call to the keyring is bounded, so that one that hangs
// blocks nothing else (spec/child-environment.md 5, spec/permissions.md).
//
// It decides nothing about who may have a value: env asks for declared and
// approved names only. host imports it.
package secrets

import (
	_ "filippo.io/age"
	_ "github.com/godbus/dbus/v5"
	_ "github.com/zalando/go-keyring"
)
