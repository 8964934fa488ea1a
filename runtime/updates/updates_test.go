package updates

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// pair is a key made of one byte: these tests sign for nobody else.
func pair(seed byte) (ed25519.PublicKey, ed25519.PrivateKey) {
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize)))
	return private.Public().(ed25519.PublicKey), private
}

func manifest() map[string]any {
	file := func(os, arch, kind string) map[string]any {
		return map[string]any{"os": os, "arch": arch, "kind": kind, "url": "https://dl.example.com/" + os + "." + kind, "sha256": strings.Repeat("ab", 32), "size": 1000}
	}
	return map[string]any{"schema": 1, "version": "1.3.0", "date": "2026-11-28T00:00:00Z", "expires": "2027-02-28T00:00:00Z", "notes": "https://example.com/1.3.0",
		"files": []any{file("linux", "amd64", "deb"), file("linux", "arm64", "deb"), file("darwin", "universal", "zip")}}
}

func encode(t *testing.T, m any) []byte {
	t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// site serves a manifest and its signature over TLS.
func site(t *testing.T, raw, signature []byte) (Checker, Source) {
	t.Helper()
	public, _ := pair('k')
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/m.json":
			_, _ = w.Write(raw)
		case "/m.json.sig":
			_, _ = w.Write(signature)
		case "/elsewhere":
			http.Redirect(w, r, "/m.json", http.StatusFound)
		case "/half":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return Checker{Client: client, Now: func() time.Time { return now }, Version: "1.2.9", OS: "linux", Arch: "amd64"},
		Source{URL: server.URL + "/m.json", Keys: []ed25519.PublicKey{public}}
}

func signed(t *testing.T, raw []byte) []byte {
	t.Helper()
	_, private := pair('k')
	return []byte(encode64(ed25519.Sign(private, raw)) + "\n")
}

func encode64(raw []byte) string { return FormatKey(raw) }

func TestOnlyANewerVersionIsAnUpdate(t *testing.T) {
	raw := encode(t, manifest())
	for _, row := range []struct {
		version string
		want    State
		files   int
	}{
		{"1.2.9", Newer, 1}, {"1.3.0-rc.1", Newer, 1}, {"0.0.1", Newer, 1},
		{"1.3.0", Newest, 0}, {"1.3.1-rc.1", Newest, 0}, {"1.10.0", Newest, 0}, {"2.0.0", Newest, 0},
		{"dev", Unknown, 1}, {"", Unknown, 1}, {"1.2.3+build", Unknown, 1},
	} {
		c, s := site(t, raw, signed(t, raw))
		c.Version = row.version
		got, err := c.Check(t.Context(), s)
		if err != nil || got.State != row.want || got.Version != "1.3.0" || len(got.Files) != row.files {
			t.Errorf("for %q it is %+v (%v)", row.version, got, err)
		}
	}
	c, s := site(t, raw, signed(t, raw))
	c.OS, c.Arch = "darwin", "arm64"
	if got, err := c.Check(t.Context(), s); err != nil || len(got.Files) != 1 || got.Files[0].Kind != "zip" {
		t.Errorf("a universal file is not one for this processor: %+v (%v)", got, err)
	}
}

func TestWhatIsNotBelieved(t *testing.T) {
	good := encode(t, manifest())
	_, stranger := pair('x')
	for _, row := range []struct {
		name           string
		raw, signature []byte
		code           string
	}{
		{"signed by another key", good, []byte(encode64(ed25519.Sign(stranger, good))), "updates-signature-invalid"},
		{"changed by one byte", append([]byte(" "), good...), signed(t, good), "updates-signature-invalid"},
		{"not signed", good, nil, "updates-signature-invalid"},
		{"a signature that is no base64", good, []byte("%%%"), "updates-signature-invalid"},
		{"half a signature", good, signed(t, good)[:40], "updates-signature-invalid"},
		{"two signatures", good, append(signed(t, good), signed(t, good)...), "updates-signature-invalid"},
		{"a signature that is too large", good, []byte(strings.Repeat("A", maxSignature+1)), "updates-too-large"},
		{"a manifest that is too large", []byte(strings.Repeat(" ", maxManifest+1)), signed(t, good), "updates-too-large"},
		{"a signed text that is no manifest", []byte("hello"), signed(t, []byte("hello")), "updates-manifest-invalid"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, s := site(t, row.raw, row.signature)
			if got, err := c.Check(t.Context(), s); coded.Of(err) != row.code {
				t.Errorf("it is %+v, %v", got, err)
			}
		})
	}
}

func TestAManifestThatIsRefused(t *testing.T) {
	file := func(key string, value any) func(map[string]any) {
		return func(m map[string]any) { m["files"].([]any)[0].(map[string]any)[key] = value }
	}
	set := func(key string, value any) func(map[string]any) { return func(m map[string]any) { m[key] = value } }
	for name, change := range map[string]func(map[string]any){
		"another schema": set("schema", 2), "no schema": func(m map[string]any) { delete(m, "schema") },
		"an unknown field": set("run", "curl | sh"), "a version of two numbers": set("version", "1.3"), "a version with a v": set("version", "v1.3.0"),
		"remarks on the build": set("version", "1.3.0+x"), "no date": set("date", "0001-01-01T00:00:00Z"), "no end": func(m map[string]any) { delete(m, "expires") },
		"an end before its date": set("expires", "2026-11-01T00:00:00Z"), "ten years": set("expires", "2036-11-01T00:00:00Z"),
		"notes by http": set("notes", "http://example.com"), "notes as a script": set("notes", "javascript:alert(1)"), "notes with a password": set("notes", "https://a:b@example.com"),
		"notes with a sign that is not seen": set("notes", "https://example.com/\u202e"), "no files": set("files", []any{}), "too long notes": set("notes", "https://e.com/"+strings.Repeat("x", maxText)),
		"a file by http": file("url", "http://example.com/x"), "a hash that is none": file("sha256", "ab"), "a hash in capitals": file("sha256", strings.Repeat("AB", 32)),
		"no size": file("size", 0), "a size below nothing": file("size", -1), "a size beyond everything": file("size", int64(maxFileSize)+1), "a system that is no word": file("os", "lin ux"),
		"a kind that is no word": file("kind", "../x"), "two of one kind": file("arch", "arm64"),
	} {
		m := manifest()
		change(m)
		if _, err := Parse(encode(t, m)); coded.Of(err) != "updates-manifest-invalid" {
			t.Errorf("%s: %v", name, err)
		}
		_, private := pair('k')
		if _, err := Sign(private, encode(t, m)); coded.Of(err) != "updates-manifest-invalid" {
			t.Errorf("%s is signed: %v", name, err)
		}
	}
	many := manifest()
	for i := range maxFiles {
		f := maps.Clone(many["files"].([]any)[0].(map[string]any))
		f["kind"] = fmt.Sprint("k", i)
		many["files"] = append(many["files"].([]any), f)
	}
	for name, raw := range map[string][]byte{"too many files": encode(t, many), "two documents": append(encode(t, manifest()), "{}"...), "none": nil} {
		if _, err := Parse(raw); coded.Of(err) != "updates-manifest-invalid" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAManifestHoldsFromItsDateToItsEnd(t *testing.T) {
	raw := encode(t, manifest())
	for at, code := range map[string]string{
		"2026-11-26T12:00:00Z": "updates-from-the-future", "2026-11-27T12:00:00Z": "", "2027-02-27T23:59:59Z": "", "2027-02-28T00:00:00Z": "updates-expired", "2030-01-01T00:00:00Z": "updates-expired",
	} {
		c, s := site(t, raw, signed(t, raw))
		c.Now = func() time.Time { at, _ := time.Parse(time.RFC3339, at); return at }
		if _, err := c.Check(t.Context(), s); coded.Of(err) != code {
			t.Errorf("at %s it is %v, want %q", at, err, code)
		}
	}
}

func TestAnAddressThatDoesNotAnswerAsItShould(t *testing.T) {
	c, s := site(t, nil, nil)
	for path, code := range map[string]string{"/absent": "updates-unreachable", "/elsewhere": "updates-redirected", "/half": "updates-unreachable"} {
		other := s
		other.URL = strings.TrimSuffix(s.URL, "/m.json") + path
		if _, err := c.Check(t.Context(), other); coded.Of(err) != code {
			t.Errorf("%s: %v", path, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Check(ended, s); coded.Of(err) != "updates-unreachable" {
		t.Errorf("a check that was given up: %v", err)
	}
}

func TestASourceIsNamedWhole(t *testing.T) {
	public, _ := pair('k')
	key := FormatKey(public)
	for text, code := range map[string]string{
		"": "updates-not-configured", "https://example.com/m.json": "updates-not-configured", "https://example.com/m.json," + key: "",
		"https://example.com/m.json," + key + "," + key: "", "http://example.com/m.json," + key: "updates-address-invalid",
		"https://example.com/m.json,": "updates-key-invalid", "https://example.com/m.json,abc": "updates-key-invalid", "https://u:p@example.com/," + key: "updates-address-invalid",
	} {
		if s, err := parseSource(text); coded.Of(err) != code || err == nil && (s.Host() != "example.com" || !slices.Equal(s.Keys[0], public)) {
			t.Errorf("%q is %+v, %v", text, s, err)
		}
	}
	if _, err := Compiled(); coded.Of(err) != "updates-not-configured" {
		t.Errorf("a build that nobody stamped knows a source: %v", err)
	}
	if _, err := NewSource("https://example.com/m.json"); coded.Of(err) != "updates-key-invalid" {
		t.Errorf("a source without a key: %v", err)
	}
}

// TestASignatureIsThatOfTheRFC: RFC 8032 7.1, test 3: others can make and check it.
func TestASignatureIsThatOfTheRFC(t *testing.T) {
	seed := []byte{0xc5, 0xaa, 0x8d, 0xf4, 0x3f, 0x9f, 0x83, 0x7b, 0xed, 0xb7, 0x44, 0x2f, 0x31, 0xdc, 0xb7, 0xb1, 0x66, 0xd3, 0x85, 0x35, 0x07, 0x6f, 0x09, 0x4b, 0x85, 0xce, 0x3a, 0x2e, 0x0b, 0x44, 0x58, 0xf7}
	key := ed25519.NewKeyFromSeed(seed)
	public := []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
	sum, err := hex.DecodeString("6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a")
	if err != nil || Verify(public, []byte{0xaf, 0x82}, []byte(encode64(sum))) != nil || Verify(public, []byte{0xaf, 0x83}, []byte(encode64(sum))) == nil {
		t.Error("the example of the RFC does not verify, or another text does")
	}
	raw := encode(t, manifest())
	signature, err := Sign(key, raw)
	if err != nil || Verify([]ed25519.PublicKey{nil, key.Public().(ed25519.PublicKey)}, raw, signature) != nil {
		t.Errorf("what was signed does not verify: %v", err)
	}
	if _, err := Sign(nil, raw); err == nil {
		t.Error("something is signed without a key")
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"schema":1,"version":"1.3.0","date":"2026-11-28T00:00:00Z","expires":"2027-02-28T00:00:00Z","notes":"https://example.com","files":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Parse(raw)
		if err == nil && (m.wrong() != "" || !isVersion(m.Version)) {
			t.Errorf("%q is taken", raw)
		}
		if err != nil && coded.Of(err) == "" {
			t.Errorf("%q: %v has no code", raw, err)
		}
	})
}
