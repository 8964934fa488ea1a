// Package secrets keeps values in the operating system's keyring and gives them
// to env only.
//
// The one idea: a value comes back byte for byte or is refused before it is
// stored, and every call to the keyring is bounded, so that one that hangs
// blocks nothing else (spec/child-environment.md 5, spec/permissions.md).
//
// A Backend is the keyring itself: the system's (SystemKeyring) or, only when the
// operator asks for it, an encrypted file (File). Nothing chooses another backend
// by itself when one fails, and nothing is ever kept as plain text. The list of
// names is the host's, because keyrings have none that can be relied on.
//
// It decides nothing about who may have a value: env asks for declared and
// approved names only. host imports it.
package secrets
