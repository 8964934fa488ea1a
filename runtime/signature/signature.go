// Package signature reads the signature that an MCP bundle (.mcpb) may carry behind
// its archive: MCPB_SIG_V1, a length, a detached PKCS #7 signature in DER,
// MCPB_SIG_END.
//
// The one idea: there are three answers and none is ever taken for another. A
// signature is valid, or there is none, or it is broken; and a broken one is an
// error, never "unsigned". What may be unpacked is handed out with the answer
// (Report.Archive) and is exactly the bytes that were signed.
//
// It decides nothing: a valid signature says who held a key, not that the code is
// good (spec/approval.md, refused alternatives). It asks no server, so a revoked
// certificate is not noticed. runtime/install and whoever shows a signature import it.
package signature

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"strconv"
	"time"

	"sallyport/internal/coded"
)

// State is one of three answers.
type State string

// The states.
const (
	// Valid: the archive is what the holder of the key signed.
	Valid State = "valid"
	// Unsigned: nothing claims to be a signature.
	Unsigned State = "unsigned"
	// Broken: something claims to be a signature and is none. It comes with an error.
	Broken State = "broken"
)

// Report is what a file's signature says.
type Report struct {
	State State
	// Archive is the zip archive without its signature, and all of the file that may
	// be unpacked. nil where the state is Broken.
	Archive *io.SectionReader
	// Publisher is who signed; zero unless Valid.
	Publisher Publisher
	// Certificate is the signer's; zero unless Valid.
	Certificate Certificate
	// SignedAt is when the signer says it was signed; nobody else says so. Zero where
	// it does not say.
	SignedAt time.Time
}

// Publisher is what is remembered of a signature.
type Publisher struct {
	// Name is what the certificate calls its holder. Unless Vouched, anybody can write
	// any name there.
	Name string `json:"name"`
	// Fingerprint is "sha256:" and the hash of the public key, so that a renewed
	// certificate for the same key is the same publisher.
	Fingerprint string `json:"fingerprint"`
	// Vouched: an authority that this computer trusts for signing code says that the
	// name is right, today.
	Vouched bool `json:"vouched"`
}

// String is the publisher as plugins.Connector.Publisher and the identity have it.
// Whether somebody vouches is left out: that changes with time and not with the
// package. No publisher is "".
func (p Publisher) String() string {
	if p.Fingerprint == "" {
		return ""
	}
	return p.Fingerprint + " " + strconv.QuoteToASCII(p.Name)
}

// Certificate is the signer's certificate, for showing.
type Certificate struct {
	CommonName, Organization string
	Issuer                   string
	NotBefore, NotAfter      time.Time
	SHA256                   string // of the certificate, as other tools show it
	SelfSigned               bool
	Expired                  bool // today
}

// Sentence says what the signature is worth, without a full stop.
func (r Report) Sentence() string {
	name := strconv.QuoteToGraphic(r.Publisher.Name)
	switch {
	case r.State == Unsigned:
		return "not signed"
	case r.State != Valid:
		return "the signature is broken"
	case r.Publisher.Vouched:
		return fmt.Sprintf("signed by %s, as an authority that this computer trusts confirms", name)
	case r.Certificate.SelfSigned:
		return fmt.Sprintf("signed by a key that nobody vouches for; it calls itself %s", name)
	case r.Certificate.Expired:
		return fmt.Sprintf("signed by a key that nobody vouches for any more: its certificate for %s ended on %s",
			name, r.Certificate.NotAfter.UTC().Format(time.DateOnly))
	}
	return fmt.Sprintf("signed by a key that nobody vouches for: no authority that this computer trusts has confirmed %s", name)
}

// Verifier verifies against other roots and another clock than the computer's, for
// tests. The zero value is the computer's own.
type Verifier struct {
	Roots *x509.CertPool   // nil: those of the operating system
	Now   func() time.Time // nil: time.Now
}

// Verify reads the signature of a file of that size. The error is a *coded.Error
// where the signature, or the end of the archive, is broken; it is ctx's where that
// ended, and the file's where that cannot be read. A report without error is Valid
// or Unsigned.
func Verify(ctx context.Context, file io.ReaderAt, size int64) (Report, error) {
	return Verifier{}.Verify(ctx, file, size)
}

// Verify is Verify with v's roots and clock.
func (v Verifier) Verify(ctx context.Context, file io.ReaderAt, size int64) (Report, error) {
	broken := Report{State: Broken}
	layout, err := findLayout(file, size)
	if err != nil {
		return broken, err
	}
	if layout.der == nil {
		return Report{State: Unsigned, Archive: layout.archives[0]}, nil
	}
	signed, err := parse(layout.der)
	if err != nil {
		return broken, err
	}
	archive, err := signed.matching(ctx, layout.archives)
	if err != nil {
		return broken, err
	}
	if err := signed.check(v.now()); err != nil {
		return broken, err
	}
	report := Report{State: Valid, Archive: archive, SignedAt: signed.at}
	report.Certificate, report.Publisher = v.describe(signed)
	return report, nil
}

func (v Verifier) now() time.Time {
	if v.Now == nil {
		return time.Now()
	}
	return v.Now()
}

func refusal(code, sentence string) *coded.Error {
	return &coded.Error{Code: code, Sentence: sentence,
		Next: "get the file again from where it is published; where that has the same fault, tell its publisher"}
}
