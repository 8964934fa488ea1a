package secrets

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"syscall"
)

// KeyringConfig is what the system's keyring needs.
type KeyringConfig struct {
	// Service is the label under which entries are kept; "Sallyport" when empty.
	// Two installations with one service share their values.
	Service string
	// Getenv finds the session bus on Linux; nil means os.Getenv.
	Getenv func(string) string
}

func (c KeyringConfig) service() string {
	if c.Service == "" {
		return "Sallyport"
	}
	return c.Service
}

// library is a keyring whose calls know no context: zalando/go-keyring on macOS
// (it runs /usr/bin/security) and Windows (the Credential Manager).
type library struct {
	name    string
	service string
	limit   Limit
	set     func(service, user, password string) error
	get     func(service, user string) (string, error)
	remove  func(service, user string) error
	// absent is the library's error for an entry that is not there.
	absent error
	// explain gives the system's errors their names.
	explain func(error) error
}

func (l *library) Name() string { return l.name }

func (l *library) Limit() Limit { return l.limit }

func (l *library) Set(_ context.Context, key string, value []byte) error {
	return l.named(l.set(l.service, key, string(value)))
}

func (l *library) Get(_ context.Context, key string) ([]byte, error) {
	value, err := l.get(l.service, key)
	return []byte(value), l.named(err)
}

func (l *library) Delete(_ context.Context, key string) error {
	return l.named(l.remove(l.service, key))
}

// Check looks for an entry that nobody makes: ':' begins no key.
func (l *library) Check(context.Context) error {
	_, err := l.get(l.service, ":check")
	if err = l.named(err); errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (l *library) Close() error { return nil }

func (l *library) named(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, l.absent) {
		return ErrNotFound
	}
	return l.explain(err)
}

// windowsLimit is CRED_MAX_CREDENTIAL_BLOB_SIZE. The library hands the bytes over
// as they are, so the unit is bytes and not UTF-16 (C61).
func windowsLimit() Limit { return plainLimit(2560) }

// macLimit is one line of "security -i", in which the library writes the value as
// base64.
func macLimit(service string) Limit {
	return Limit{
		Most: 4096,
		Unit: "bytes (as a command line in base64)",
		Size: func(key string, value []byte) int {
			encoded := len("go-keyring-base64:") + base64.StdEncoding.EncodedLen(len(value))
			return len("add-generic-password -U -s  -a  -w \n") + shellLength(service) + shellLength(key) + encoded
		},
	}
}

// shellLength is what the library's quoting makes of text.
func shellLength(text string) int {
	safe := func(r rune) bool {
		return '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || strings.ContainsRune("_@%+=:,./-", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !safe(r) }) < 0 {
		return len(text)
	}
	return len(text) + 2 + strings.Count(text, "'")*len(`"'"'`)
}

// macError reads the exit status of /usr/bin/security, which is the low byte of
// the keychain's status.
func macError(err error) error {
	var ended interface {
		error
		ExitCode() int
	}
	if !errors.As(err, &ended) {
		return err
	}
	switch ended.ExitCode() {
	case 36: // errSecInteractionNotAllowed -25308: locked and no window can be shown
		return locked(err)
	case 51, 128: // errSecAuthFailed -25293, userCanceledErr -128
		return denied(err)
	case 37, 50: // errSecNoDefaultKeychain -25307, errSecNoSuchKeychain -25294
		return noCollection()
	case 44: // errSecItemNotFound -25300
		return ErrNotFound
	}
	return err
}

// windowsError reads the system's error number.
func windowsError(err error) error {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return err
	}
	switch uintptr(number) {
	case 5: // ERROR_ACCESS_DENIED
		return denied(err)
	case 1168: // ERROR_NOT_FOUND
		return ErrNotFound
	case 1312: // ERROR_NO_SUCH_LOGON_SESSION: this log-in has no Credential Manager
		return noProvider(err)
	case 1722, 1717: // RPC_S_SERVER_UNAVAILABLE, RPC_S_UNKNOWN_IF: VaultSvc is down
		return notAnswering()
	}
	return err
}
