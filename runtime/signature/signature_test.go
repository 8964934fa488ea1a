package signature

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"io"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smallstep/pkcs7"

	"sallyport/internal/coded"
)

// An identity can sign. Keys are slow to make, so each test makes few.
type identity struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

type wish func(*x509.Certificate)

func newKey(t testing.TB, bits int) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	if bits == 0 {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		key, err = rsa.GenerateKey(rand.Reader, bits)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue makes a certificate for key, signed by issuer or, where that is nil, by itself.
func issue(t testing.TB, key crypto.Signer, issuer *identity, wishes ...wish) identity {
	t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial.SetBit(serial, 119, 1),
		Subject:      pkix.Name{CommonName: "Jane Doe", Organization: []string{"Example Ltd"}},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	for _, w := range wishes {
		w(template)
	}
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.certificate, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return identity{certificate, key}
}

func authority(name string) wish {
	return func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: name}
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
	}
}

// archiveOf is a zip archive with one file and a comment.
func archiveOf(t testing.TB, text, comment string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.Create("manifest.json")
	if err == nil {
		_, err = io.WriteString(f, text)
	}
	if err == nil {
		err = w.SetComment(comment)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// derOf is the signature of content. change may do something unusual before the end.
func derOf(t testing.TB, content []byte, by identity, change func(*pkcs7.SignedData), attributes ...pkcs7.Attribute) []byte {
	t.Helper()
	data, err := pkcs7.NewSignedData(content)
	if err != nil {
		t.Fatal(err)
	}
	data.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
	if change != nil {
		change(data)
	}
	if err := data.AddSigner(by.certificate, by.key, pkcs7.SignerInfoConfig{ExtraSignedAttributes: attributes}); err != nil {
		t.Fatal(err)
	}
	data.Detach()
	der, err := data.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func blockOf(der []byte) []byte {
	block := binary.LittleEndian.AppendUint32([]byte(header), uint32(len(der)))
	return append(append(block, der...), footer...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func verify(file []byte) (Report, error) {
	return Verify(context.Background(), bytes.NewReader(file), int64(len(file)))
}

func TestASignedBundleIsValidAndSaysByWhom(t *testing.T) {
	for name, key := range map[string]crypto.Signer{"RSA": newKey(t, 2048), "ECDSA": newKey(t, 0)} {
		by := issue(t, key, nil)
		content := archiveOf(t, "hello", "a comment of its own")
		report, err := verify(join(content, blockOf(derOf(t, content, by, nil))))
		if err != nil || report.State != Valid {
			t.Fatalf("%s: %v %v", name, report.State, err)
		}
		if !report.Certificate.SelfSigned || report.Publisher.Vouched || report.Publisher.Name != "Jane Doe, Example Ltd" {
			t.Errorf("%s: %+v", name, report)
		}
		if want := `signed by a key that nobody vouches for; it calls itself "Jane Doe, Example Ltd"`; report.Sentence() != want {
			t.Errorf("%s: %s", name, report.Sentence())
		}
		if time.Since(report.SignedAt).Abs() > time.Minute {
			t.Errorf("%s: signed at %s", name, report.SignedAt)
		}
		got, err := io.ReadAll(report.Archive)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: the archive is not the one that was signed (%v)", name, err)
		}
	}
}

func TestAnArchiveWithoutSignatureIsUnsigned(t *testing.T) {
	for _, comment := range []string{"", "a comment", strings.Repeat("x", 1<<16-1)} {
		content := archiveOf(t, "hello", comment)
		report, err := verify(content)
		if err != nil || report.State != Unsigned || report.Archive.Size() != int64(len(content)) || report.Publisher.String() != "" {
			t.Errorf("comment of %d: %+v %v", len(comment), report, err)
		}
		if report.Sentence() != "not signed" {
			t.Error(report.Sentence())
		}
	}
}

// Versions of mcpb after 2.1.2 count the signature as part of the archive's comment,
// so that strict readers take the file: some before they sign, some after.
func TestTheSignatureMayBeCountedAsTheArchivesComment(t *testing.T) {
	by := issue(t, newKey(t, 0), nil)
	for _, first := range []bool{true, false} {
		content := archiveOf(t, "hello", "mine")
		grown := bytes.Clone(content)
		at := len(grown) - len("mine") - 2
		// The signature's length does not depend on what is signed, within two bytes
		// for ECDSA: try until it has the length that was counted.
		var file []byte
		for file == nil {
			length := len(blockOf(derOf(t, content, by, nil)))
			binary.LittleEndian.PutUint16(grown[at:], uint16(len("mine")+length))
			signed := content
			if first {
				signed = grown
			}
			if block := blockOf(derOf(t, signed, by, nil)); len(block) == length {
				file = join(grown, block)
			}
		}
		report, err := verify(file)
		if err != nil || report.State != Valid {
			t.Fatalf("counted before signing: %v: %v %v", first, report.State, err)
		}
		read, err := zip.NewReader(report.Archive, report.Archive.Size())
		if err != nil || len(read.File) != 1 || read.Comment != "mine" {
			t.Errorf("counted before signing: %v: the archive does not open: %v", first, err)
		}
	}
}

func TestBrokenSignaturesAreRefused(t *testing.T) {
	key := newKey(t, 0)
	by := issue(t, key, nil)
	content, other := archiveOf(t, "hello", ""), archiveOf(t, "evil!", "")
	der := derOf(t, content, by, nil)
	block := blockOf(der)
	flipped := bytes.Clone(content)
	flipped[40] ^= 1
	withLength := func(n uint32) []byte {
		b := bytes.Clone(block)
		binary.LittleEndian.PutUint32(b[len(header):], n)
		return b
	}
	// A signed file whose signature holds an archive's end, with the name of the
	// certificate as the carrier.
	hiding := issue(t, key, nil, func(c *x509.Certificate) { c.Subject.CommonName = "Jane " + endMark + strings.Repeat("\x01", 18) })
	elsewhere := bytes.Clone(der)
	serial := by.certificate.SerialNumber.Bytes()
	copy(elsewhere[bytes.LastIndex(elsewhere, serial):], "\x01another-serial!")
	ended := issue(t, key, nil, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	notYet := issue(t, key, nil, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })
	weakKey := issue(t, newKey(t, 1024), nil)
	digest := pkcs7.Attribute{Type: pkcs7.OIDAttributeMessageDigest, Value: bytes.Repeat([]byte{7}, 32)}
	attached := func() []byte {
		data, _ := pkcs7.NewSignedData([]byte("a text of its own"))
		data.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
		if err := data.AddSigner(by.certificate, by.key, pkcs7.SignerInfoConfig{}); err != nil {
			t.Fatal(err)
		}
		out, _ := data.Finish()
		return out
	}()
	bare := func() []byte {
		data, _ := pkcs7.NewSignedData(content)
		data.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
		if err := data.SignWithoutAttr(by.certificate, by.key, pkcs7.SignerInfoConfig{}); err != nil {
			t.Fatal(err)
		}
		data.Detach()
		out, _ := data.Finish()
		return out
	}()
	sha1 := derOf(t, content, by, func(d *pkcs7.SignedData) { d.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA1) })
	again := derOf(t, content, by, func(d *pkcs7.SignedData) {
		if err := d.AddSigner(by.certificate, by.key, pkcs7.SignerInfoConfig{}); err != nil {
			t.Fatal(err)
		}
	})
	enveloped, _ := asn1.Marshal(struct{ Type asn1.ObjectIdentifier }{pkcs7.OIDData})

	for _, row := range []struct {
		why  string
		file []byte
		code string
	}{
		{"a byte of the archive was changed", join(flipped, block), codeMismatch},
		{"the signature is another archive's", join(other, block), codeMismatch},
		{"the last byte is missing", join(content, block[:len(block)-1]), codeBlock},
		{"the last half is missing", join(content, block[:len(block)/2]), codeBlock},
		{"only its first word is there", join(content, []byte(header)), codeBlock},
		{"only its last word is there", join(content, []byte(footer)), codeBlock},
		{"its first byte is missing", join(content, block[1:]), codeBlock},
		{"it says that it is longer", join(content, withLength(uint32(len(der)+1))), codeBlock},
		{"it says that it is shorter", join(content, withLength(uint32(len(der)-1))), codeBlock},
		{"it says that it is empty", join(content, blockOf(nil)), codeBlock},
		{"it says that it is larger than anything", join(content, withLength(1<<32-1)), codeBlock},
		{"it is larger than the limit", join(content, blockOf(make([]byte, maxSignature+1))), codeBlock},
		{"a byte follows it", join(content, block, []byte("\n")), codeBlock},
		{"an archive follows it", join(content, block, other), codeHidden},
		{"two are there", join(content, block, block), codeBlock},
		{"two are there, each for what is before it", join(content, block, blockOf(derOf(t, join(content, block), by, nil))), codeBlock},
		{"one is in the archive's comment, and no more follows", archiveOf(t, "hello", string(block)+"."), codeBlock},
		{"one is in the comment of a signed archive", func() []byte {
			c := archiveOf(t, "hello", string(block))
			return join(c, blockOf(derOf(t, c, by, nil)))
		}(), codeBlock},
		{"bytes stand between the archive and it", func() []byte {
			c := join(content, []byte("hidden"))
			return join(c, blockOf(derOf(t, c, by, nil)))
		}(), codeTrailing},
		{"bytes follow an archive without one", join(content, []byte("hidden")), codeTrailing},
		{"bytes stand before an archive without one", join([]byte("hidden"), content), codeHidden},
		{"there is no archive", block, codeNoArchive},
		{"the file is empty", nil, codeNoArchive},
		{"it holds the end of another archive", join(content, blockOf(derOf(t, content, hiding, nil))), codeHidden},
		{"it is no DER", join(content, blockOf([]byte("garbage"))), codeUnreadable},
		{"it is nested without end", join(content, blockOf(nested())), codeUnreadable},
		{"something follows the DER within it", join(content, blockOf(append(bytes.Clone(der), 0))), codeUnreadable},
		{"it is another kind of PKCS #7", join(content, blockOf(enveloped)), codeUnreadable},
		{"it is about a text of its own", join(content, blockOf(attached)), codeUnreadable},
		{"it has no attributes", join(content, blockOf(bare)), codeUnreadable},
		{"it has two digests", join(content, blockOf(derOf(t, content, by, nil, digest))), codeUnreadable},
		{"two signed", join(content, blockOf(again)), codeUnreadable},
		{"the signer's certificate is not there", join(content, blockOf(elsewhere)), codeUnreadable},
		{"another key made it", join(content, blockOf(derOf(t, content, identity{by.certificate, newKey(t, 0)}, nil))), codeWrong},
		{"its digest is SHA-1", join(content, blockOf(sha1)), codeWeak},
		{"its key is short", join(content, blockOf(derOf(t, content, weakKey, nil))), codeWeak},
		{"the certificate had ended", join(content, blockOf(derOf(t, content, ended, nil))), codeTime},
		{"the certificate was not valid yet", join(content, blockOf(derOf(t, content, notYet, nil))), codeTime},
	} {
		report, err := verify(row.file)
		if coded.Of(err) != row.code {
			t.Errorf("%s: got %v, want %s", row.why, err, row.code)
		}
		if report.State != Broken || report.Archive != nil || report.Publisher != (Publisher{}) {
			t.Errorf("%s: the report is %+v", row.why, report)
		}
	}
}

// nested is a few thousand values in each other.
func nested() []byte {
	der := []byte{0x30, 0x00}
	for range 5000 {
		der, _ = asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: der})
	}
	return der
}

// Whoever reads the whole file would take the archive that stands last. What is
// handed out is what was signed.
func TestAnArchiveBehindASignatureIsNeverHandedOut(t *testing.T) {
	by := issue(t, newKey(t, 0), nil)
	content, evil := archiveOf(t, "hello", ""), archiveOf(t, "evil!", "")
	block := blockOf(derOf(t, content, by, nil))
	file := join(content, block, evil)
	if report, err := verify(file); err == nil {
		t.Errorf("an archive behind the signature passed as %s", report.State)
	}
	file = join(file, blockOf(derOf(t, file, by, nil)))
	if report, err := verify(file); err == nil {
		t.Errorf("an archive behind a signature, both signed, passed as %s", report.State)
	}
	// One that counts what stands before it as its own is an archive with a gap. The
	// signature in the gap says nothing about it.
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.SetOffset(int64(len(content) + len(block)))
	if _, err := w.Create("manifest.json"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err := verify(join(content, block, out.Bytes())); err != nil || report.State != Unsigned {
		t.Errorf("an archive with a gap is %s: %v", report.State, err)
	}
}

func TestASignatureThatSaysItIsFromTheFutureIsRefused(t *testing.T) {
	by := issue(t, newKey(t, 0), nil, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(-72 * time.Hour) })
	content := archiveOf(t, "hello", "")
	file := join(content, blockOf(derOf(t, content, by, nil)))
	before := Verifier{Now: func() time.Time { return time.Now().Add(-48 * time.Hour) }}
	if _, err := before.Verify(t.Context(), bytes.NewReader(file), int64(len(file))); coded.Of(err) != codeTime {
		t.Errorf("got %v", err)
	}
}

func TestAnAuthorityVouchesOnlyForCodeAndOnlyToday(t *testing.T) {
	root := issue(t, newKey(t, 0), nil, authority("Root"))
	middle := issue(t, newKey(t, 0), &root, authority("Middle"))
	leafKey := newKey(t, 0)
	leaf := issue(t, leafKey, &middle)
	forServers := issue(t, leafKey, &middle, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	roots := x509.NewCertPool()
	roots.AddCert(root.certificate)
	content := archiveOf(t, "hello", "")
	withMiddle := func(d *pkcs7.SignedData) { d.AddCertificate(middle.certificate) }
	for _, row := range []struct {
		why      string
		der      []byte
		later    time.Duration
		vouched  bool
		sentence string
	}{
		{"a chain to a root", derOf(t, content, leaf, withMiddle), 0, true, "signed by \"Jane Doe, Example Ltd\", as an authority that this computer trusts confirms"},
		{"a chain with a part missing", derOf(t, content, leaf, nil), 0, false, "signed by a key that nobody vouches for: no authority that this computer trusts has confirmed \"Jane Doe, Example Ltd\""},
		{"a certificate for servers", derOf(t, content, forServers, withMiddle), 0, false, "signed by a key that nobody vouches for: no authority that this computer trusts has confirmed \"Jane Doe, Example Ltd\""},
		{"a certificate that has ended since", derOf(t, content, leaf, withMiddle), 48 * time.Hour, false,
			"signed by a key that nobody vouches for any more: its certificate for \"Jane Doe, Example Ltd\" ended on " + leaf.certificate.NotAfter.UTC().Format(time.DateOnly)},
	} {
		file := join(content, blockOf(row.der))
		v := Verifier{Roots: roots, Now: func() time.Time { return time.Now().Add(row.later) }}
		report, err := v.Verify(t.Context(), bytes.NewReader(file), int64(len(file)))
		if err != nil || report.Publisher.Vouched != row.vouched || report.Sentence() != row.sentence {
			t.Errorf("%s: %v %v %q", row.why, err, report.Publisher.Vouched, report.Sentence())
		}
	}
}

func TestAPublisherIsKnownByItsKey(t *testing.T) {
	key := newKey(t, 0)
	content := archiveOf(t, "hello", "")
	of := func(by identity) Publisher {
		report, err := verify(join(content, blockOf(derOf(t, content, by, nil))))
		if err != nil {
			t.Fatal(err)
		}
		return report.Publisher
	}
	first, renewed, thief := of(issue(t, key, nil)), of(issue(t, key, nil)), of(issue(t, newKey(t, 0), nil))
	if first != renewed {
		t.Errorf("a renewed certificate is another publisher: %s and %s", first, renewed)
	}
	if first.Name != thief.Name || first.String() == thief.String() {
		t.Errorf("the same name with another key is the same publisher: %s", thief)
	}
	if (Publisher{}).String() != "" {
		t.Error("no publisher has a text")
	}
}

func TestVerifyingEndsWithItsContext(t *testing.T) {
	by := issue(t, newKey(t, 0), nil)
	content := archiveOf(t, "hello", "")
	file := join(content, blockOf(derOf(t, content, by, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if report, err := Verify(ctx, bytes.NewReader(file), int64(len(file))); err != context.Canceled || report.State != Broken {
		t.Errorf("%v %v", report.State, err)
	}
}

// An archive of more than 65535 entries ends with further records.
func TestALargeArchiveIsReadToItsStart(t *testing.T) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := range 1 << 16 {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	by := issue(t, newKey(t, 0), nil)
	if report, err := verify(join(out.Bytes(), blockOf(derOf(t, out.Bytes(), by, nil)))); err != nil || report.State != Valid {
		t.Errorf("signed: %v %v", report.State, err)
	}
	if _, err := verify(append([]byte("hidden"), out.Bytes()...)); coded.Of(err) != codeNoArchive {
		t.Errorf("with something before it: %v", err)
	}
}

// FuzzVerify: an answer without error is valid or unsigned and has an archive that is
// the start of the file; everything else is broken and has none.
func FuzzVerify(f *testing.F) {
	by := issue(f, newKey(f, 0), nil)
	content := archiveOf(f, "hello", "")
	block := blockOf(derOf(f, content, by, nil))
	for _, seed := range [][]byte{content, join(content, block), join(content, block, block), block, join(content, []byte(header)), nil} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		report, err := verify(file)
		switch {
		case err != nil && (report.State != Broken || report.Archive != nil || coded.Of(err) == ""):
			t.Errorf("%+v with %v", report, err)
		case err == nil && report.State != Valid && report.State != Unsigned:
			t.Errorf("%+v without an error", report)
		case err == nil && report.State == Unsigned && report.Archive.Size() != int64(len(file)):
			t.Error("an unsigned archive is not the whole file")
		case report.State == Valid && !bytes.Equal(file[:report.Archive.Size()], content):
			t.Error("something else than what was signed is valid")
		}
	})
}

// FuzzDER: no signature but one for the archive is valid, whatever it is made of.
func FuzzDER(f *testing.F) {
	by := issue(f, newKey(f, 0), nil)
	content := archiveOf(f, "hello", "")
	f.Add(derOf(f, content, by, nil))
	f.Add([]byte("garbage"))
	f.Add([]byte{0x30, 0x80})
	f.Fuzz(func(t *testing.T, der []byte) {
		report, err := verify(join(content, blockOf(der)))
		if (err == nil) != (report.State == Valid || report.State == Unsigned) || report.State == Unsigned {
			t.Errorf("%+v with %v", report, err)
		}
	})
}
