package secrets

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sallyport/internal/coded"
)

func TestMain(m *testing.M) {
	otherSide()
	goleak.VerifyTestMain(m)
}

// awkward are values that some keyring or library is known to change.
var awkward = map[string]string{
	"an ordinary token":               "ghp_0123456789abcdef",
	"an empty value":                  "",
	"a space at each end":             " a ",
	"newlines at the end":             "a\n\n",
	"carriage returns":                "a\r\nb\r",
	"a NUL":                           "a\x00b",
	"bytes that are no UTF-8":         "\xff\xfe\x80",
	"what go-keyring writes":          "go-keyring-base64:aGVsbG8=",
	"what go-keyring wrote once":      "go-keyring-encoded:68656c6c6f",
	"what it writes, not decodable":   "go-keyring-base64:%%%",
	"a PEM block":                     "-----BEGIN PRIVATE KEY-----\nMIIEv\n-----END PRIVATE KEY-----\n",
	"quotes and a shell":              `'"$(id)` + "`;\\",
	"characters outside the BMP":      "密碼🔑",
	"a byte order mark":               "\ufeffx",
	"the most that is taken on Linux": strings.Repeat("x", mostBytes),
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if coded.Of(err) != code {
		t.Errorf("error is %v (%s), want %s", err, coded.Of(err), code)
	}
}

func eventually(t *testing.T, true func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited 20 s in vain")
		}
	}
}
