// Package browser shows a person an address in the browser of their system.
//
// The one idea: one program with fixed arguments and the address as the last of them,
// and no shell. It is one of Sallyport's own helpers, a closed list
// (spec/approval.md 5.4a): the system's opener at its known place, never what a
// PATH, a package or a server names.
//
// It checks the address once more and waits for nothing. host may use it.
package browser

import (
	"context"
	"net/netip"
	"net/url"
	"os/exec"
	"strings"

	"sallyport/internal/coded"
)

// Opener shows addresses. The zero one is the system's.
type Opener struct {
	// Program takes the place of the system's opener, for tests; the address is its
	// last argument.
	Program []string
	// Environ is what the program gets; nil is the process's own environment.
	Environ []string
}

// Open starts the browser with an address of https, or of http on this machine, and
// does not wait for it: a browser may stay open for days.
func (o Opener) Open(_ context.Context, address string) error {
	if !forBrowser(address) {
		return coded.New("oauth-address-refused", "the address is not one for a browser")
	}
	line := o.Program
	if line == nil {
		line = system()
	}
	if len(line) == 0 {
		return unavailable(nil)
	}
	cmd := exec.Command(line[0], append(append([]string{}, line[1:]...), address)...)
	cmd.Env = o.Environ
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return unavailable(err)
	}
	go func() { _ = cmd.Wait() }() // so that nothing is left of it when it ends
	return nil
}

func unavailable(err error) error {
	return &coded.Error{Code: "browser-unavailable", Sentence: "no browser could be opened", Next: "open the address yourself", Err: err}
}

// forBrowser reports whether an address is https, or http on this machine, in plain
// characters.
func forBrowser(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" || strings.ContainsFunc(address, notPlain) {
		return false
	}
	if u.Scheme == "https" {
		return true
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback())
}

func notPlain(c rune) bool {
	return c <= ' ' || c > '~' || strings.ContainsRune("\"'<>\\^`{|}$();*!", c)
}
