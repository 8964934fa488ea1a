package secrets

import (
	"errors"
	"fmt"

	"sallyport/internal/coded"
)

// The codes that say why a keyring did not do what it was asked. Each is also a
// word of State, without "keyring-".
const (
	codeNoBus        = "keyring-no-bus"
	codeNoProvider   = "keyring-no-provider"
	codeNoCollection = "keyring-no-collection"
	codeLocked       = "keyring-locked"
	codeDenied       = "keyring-denied"
	codeNotAnswering = "keyring-not-answering"
	codeFailed       = "keyring-failed"
)

func noBus(cause error) *coded.Error {
	return because(coded.New("keyring-no-bus", "there is no session bus, so no keyring can be reached"), cause)
}

func noProvider(cause error) *coded.Error {
	return because(coded.New("keyring-no-provider", "no program on this system offers a keyring"), cause)
}

func noCollection() *coded.Error {
	return coded.New("keyring-no-collection", "the keyring program runs, but it has no keyring to keep anything in")
}

func locked(cause error) *coded.Error {
	return because(coded.New("keyring-locked", "the keyring is locked"), cause)
}

func denied(cause error) *coded.Error {
	return because(coded.New("keyring-denied", "access to the keyring was denied"), cause)
}

func notAnswering() *coded.Error {
	return coded.New("keyring-not-answering", "the keyring does not answer")
}

func failed(cause error) *coded.Error {
	return because(coded.New("keyring-failed", "the keyring could not do it"), cause)
}

func because(e *coded.Error, cause error) *coded.Error {
	e.Err = cause
	return e
}

func unknown(name string) error {
	return &coded.Error{
		Code:     "secret-unknown",
		Sentence: fmt.Sprintf("there is no secret %q", name),
		Next:     "store it with sallyport secrets set " + name,
	}
}

func lost(name string) error {
	return &coded.Error{
		Code:     "secret-unknown",
		Sentence: fmt.Sprintf("the secret %q was stored once, and the keyring no longer has it", name),
		Next:     "store it again with sallyport secrets set " + name,
	}
}

// explained gives a backend's error its code and the advice for this system.
func (s *Store) explained(err error) error {
	if err == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	e, ok := errors.AsType[*coded.Error](err)
	if !ok {
		e = failed(err)
	}
	if e.Next != "" {
		return e
	}
	told := *e
	told.Next = advice(e.Code, s.system)
	return &told
}

// named reports whether err already says what happened.
func named(err error) bool { return coded.Of(err) != "" || errors.Is(err, ErrNotFound) }

// Faults are all that a keyring can have against a call, as the keyring says it.
func Faults() []*coded.Error {
	return []*coded.Error{
		noBus(nil), noProvider(nil), noCollection(), locked(nil), denied(nil), notAnswering(), failed(nil),
	}
}
