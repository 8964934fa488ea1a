package signature

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/smallstep/pkcs7"
)

const (
	codeUnreadable = "signature-unreadable"
	codeMismatch   = "signature-mismatch"
	codeWrong      = "signature-wrong"
	codeWeak       = "signature-weak"
	codeTime       = "signature-time"
)

// minRSA is in bits.
const minRSA = 2048

// clockSlack is how far in the future a signature may say it was made.
const clockSlack = 24 * time.Hour

// signed is a PKCS #7 signature of the only shape that is taken: detached, by one
// signer whose certificate is there, over attributes with a digest of the archive.
type signed struct {
	certificate *x509.Certificate
	others      []*x509.Certificate
	algorithm   x509.SignatureAlgorithm
	hash        crypto.Hash
	digest      []byte // what the archive has to have
	attributes  []byte // the bytes that were signed
	signature   []byte
	at          time.Time
}

// parse reads a signature and believes nothing of it yet. The sentences are fixed:
// what the library says may quote the file.
func parse(der []byte) (s signed, err error) {
	if !isDER(der, 0) {
		return s, unreadable("it is not one value in DER")
	}
	message, err := pkcs7.Parse(der)
	switch {
	case err != nil:
		return s, unreadable("it is not PKCS #7 signed data")
	case len(message.Content) > 0:
		return s, unreadable("it holds a text of its own in place of being about the archive")
	case len(message.Signers) != 1:
		return s, unreadable("it does not have one signer, named by a certificate's issuer and number")
	}
	signer := message.Signers[0]
	s.certificate = message.GetOnlySigner()
	if s.certificate == nil {
		return s, unreadable("the signer's certificate is not in it")
	}
	for _, other := range message.Certificates {
		if other != s.certificate {
			s.others = append(s.others, other)
		}
	}
	if s.hash, err = hashOf(signer.DigestAlgorithm.Algorithm); err != nil {
		return s, err
	}
	if s.algorithm, err = algorithmOf(s.certificate, s.hash, signer.DigestEncryptionAlgorithm.Algorithm); err != nil {
		return s, err
	}
	s.signature = signer.EncryptedDigest
	var content asn1.ObjectIdentifier
	found := map[string]int{}
	for _, attribute := range signer.AuthenticatedAttributes {
		// Taken apart and put together again in the order that they have here, for
		// that is the order in which they were signed.
		raw, err := asn1.Marshal(attribute)
		if err != nil {
			return s, unreadable("an attribute of it cannot be read")
		}
		s.attributes = append(s.attributes, raw...)
		var into any
		switch {
		case attribute.Type.Equal(pkcs7.OIDAttributeContentType):
			into = &content
		case attribute.Type.Equal(pkcs7.OIDAttributeMessageDigest):
			into = &s.digest
		case attribute.Type.Equal(pkcs7.OIDAttributeSigningTime):
			into = &s.at
		default:
			continue
		}
		found[attribute.Type.String()]++
		if rest, err := asn1.Unmarshal(attribute.Value.Bytes, into); err != nil || len(rest) > 0 {
			return s, unreadable("an attribute of it cannot be read")
		}
	}
	for _, count := range found {
		if count > 1 {
			return s, unreadable("an attribute of it stands twice")
		}
	}
	if !content.Equal(pkcs7.OIDData) || len(s.digest) != s.hash.Size() {
		return s, unreadable("it says of no archive which one it is for")
	}
	s.attributes, err = asn1.Marshal(asn1.RawValue{Tag: asn1.TagSet, IsCompound: true, Bytes: s.attributes})
	if err != nil {
		return s, unreadable("an attribute of it cannot be read")
	}
	return s, nil
}

// maxDepth is how deep values may stand in each other; real ones have about 15.
const maxDepth = 40

// isDER reports whether der is one value, and every value in it is. The library takes
// more than that, at a price that grows with the depth times the length.
func isDER(der []byte, depth int) bool {
	var value asn1.RawValue
	rest, err := asn1.Unmarshal(der, &value)
	if err != nil || len(rest) > 0 || depth > maxDepth {
		return false
	}
	for inner := value.Bytes; value.IsCompound && len(inner) > 0; {
		rest, err := asn1.Unmarshal(inner, &asn1.RawValue{})
		if err != nil || !isDER(inner[:len(inner)-len(rest)], depth+1) {
			return false
		}
		inner = rest
	}
	return true
}

// matching returns the reading of the archive that the signature is for.
func (s signed) matching(ctx context.Context, archives []*io.SectionReader) (*io.SectionReader, error) {
	for _, archive := range archives {
		sum := newHash(s.hash)
		if _, err := io.Copy(sum, &untilDone{ctx, io.NewSectionReader(archive, 0, archive.Size())}); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("cannot read the archive: %w", err)
		}
		if subtle.ConstantTimeCompare(sum.Sum(nil), s.digest) == 1 {
			return archives[0], nil
		}
	}
	return nil, refusal(codeMismatch, "the archive is not the one that was signed: it was changed after that, or the signature is another's")
}

// check verifies the signature itself and whether it can have been made then.
func (s signed) check(now time.Time) error {
	if err := s.certificate.CheckSignature(s.algorithm, s.attributes, s.signature); err != nil {
		return refusal(codeWrong, "the signature was not made with the key of its certificate")
	}
	at := s.at
	if at.IsZero() {
		at = now
	}
	switch {
	case at.After(now.Add(clockSlack)):
		return refusal(codeTime, "the signature says that it was made in the future")
	case at.Before(s.certificate.NotBefore), at.After(s.certificate.NotAfter):
		return refusal(codeTime, "the signer's certificate was not valid when the signature was made")
	}
	return nil
}

func unreadable(why string) error {
	return refusal(codeUnreadable, "the signature cannot be read: "+why)
}

func weak(what string) error {
	return refusal(codeWeak, "the signature proves nothing: "+what)
}

func hashOf(oid asn1.ObjectIdentifier) (crypto.Hash, error) {
	switch {
	case oid.Equal(pkcs7.OIDDigestAlgorithmSHA256):
		return crypto.SHA256, nil
	case oid.Equal(pkcs7.OIDDigestAlgorithmSHA384):
		return crypto.SHA384, nil
	case oid.Equal(pkcs7.OIDDigestAlgorithmSHA512):
		return crypto.SHA512, nil
	}
	return 0, weak("its digest is none of SHA-256, SHA-384 and SHA-512")
}

func newHash(h crypto.Hash) hash.Hash {
	switch h {
	case crypto.SHA384:
		return sha512.New384()
	case crypto.SHA512:
		return sha512.New()
	}
	return sha256.New()
}

// algorithmOf takes RSA and ECDSA with the digest that the attributes have, so that
// no weaker one can be slipped in.
func algorithmOf(c *x509.Certificate, h crypto.Hash, oid asn1.ObjectIdentifier) (x509.SignatureAlgorithm, error) {
	sha := slices.Index([]crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512}, h)
	is := func(named ...asn1.ObjectIdentifier) bool { return slices.ContainsFunc(named, oid.Equal) }
	switch c.PublicKeyAlgorithm {
	case x509.RSA:
		if key, ok := c.PublicKey.(*rsa.PublicKey); !ok || key.N.BitLen() < minRSA {
			return 0, weak(fmt.Sprintf("its key has less than %d bits", minRSA))
		}
		named := []asn1.ObjectIdentifier{pkcs7.OIDEncryptionAlgorithmRSASHA256, pkcs7.OIDEncryptionAlgorithmRSASHA384, pkcs7.OIDEncryptionAlgorithmRSASHA512}
		if is(pkcs7.OIDEncryptionAlgorithmRSA, named[sha]) {
			return []x509.SignatureAlgorithm{x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA}[sha], nil
		}
	case x509.ECDSA:
		named := []asn1.ObjectIdentifier{pkcs7.OIDDigestAlgorithmECDSASHA256, pkcs7.OIDDigestAlgorithmECDSASHA384, pkcs7.OIDDigestAlgorithmECDSASHA512}
		if is(named[sha]) {
			return []x509.SignatureAlgorithm{x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512}[sha], nil
		}
	}
	return 0, weak("it is neither RSA nor ECDSA with the digest that it names")
}

// untilDone ends reading when ctx does.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r *untilDone) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return r.Reader.Read(b)
}
