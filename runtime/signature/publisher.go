package signature

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"strings"
)

// maxName is how much of a certificate's name is kept, in bytes.
const maxName = 200

// describe says who the signer is, and asks the roots whether somebody vouches.
func (v Verifier) describe(s signed) (Certificate, Publisher) {
	c := s.certificate
	now := v.now()
	sum, key := sha256.Sum256(c.Raw), sha256.Sum256(c.RawSubjectPublicKeyInfo)
	out := Certificate{
		CommonName: short(c.Subject.CommonName), Organization: short(strings.Join(c.Subject.Organization, ", ")),
		Issuer: short(c.Issuer.String()), NotBefore: c.NotBefore, NotAfter: c.NotAfter,
		SHA256: hex.EncodeToString(sum[:]), Expired: now.After(c.NotAfter),
		SelfSigned: bytes.Equal(c.RawIssuer, c.RawSubject) && c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil,
	}
	publisher := Publisher{Name: out.CommonName, Fingerprint: "sha256:" + hex.EncodeToString(key[:]), Vouched: v.vouched(s)}
	if publisher.Name == "" || out.Organization != "" && out.Organization != publisher.Name {
		publisher.Name = strings.TrimPrefix(publisher.Name+", "+out.Organization, ", ")
	}
	return out, publisher
}

// vouched reports whether the certificate leads to a root that is trusted for signing
// code, today: the time of signing is the signer's own word, so it cannot keep a
// certificate alive that has ended. Nobody is asked whether it was revoked.
func (v Verifier) vouched(s signed) bool {
	between := x509.NewCertPool()
	for _, other := range s.others {
		between.AddCert(other)
	}
	_, err := s.certificate.Verify(x509.VerifyOptions{
		Roots: v.Roots, Intermediates: between, CurrentTime: v.now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	})
	return err == nil
}

func short(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	return name
}
