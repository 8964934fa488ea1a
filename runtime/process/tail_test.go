package process

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func tailOf(secrets []string, pieces ...string) []string {
	t := NewTail(secrets)
	for _, piece := range pieces {
		t.Write([]byte(piece))
	}
	t.Close()
	return t.Lines()
}

func TestTailKeepsLinesAsATerminalShowsThem(t *testing.T) {
	long := strings.Repeat("x", TailLine)
	for _, row := range []struct {
		what   string
		pieces []string
		want   []string
	}{
		{"lines", []string{"a\nb\n"}, []string{"a", "b"}},
		{"a line in pieces", []string{"a", "b", "\nc"}, []string{"ab", "c"}},
		{"Windows line ends", []string{"a\r\nb\r", "\n"}, []string{"a", "b"}},
		{"progress", []string{"1%\r2%\r", "100%\ndone\n"}, []string{"100%", "done"}},
		{"progress that never ends its line", []string{"1%\r2%\r"}, []string{"2%"}},
		{"a line at the limit", []string{long + "\n"}, []string{long}},
		{"a line beyond it", []string{long, "y", "z\n", "next\n"}, []string{long + "…", "next"}},
		{"control characters", []string{"\x1b[31mred\x07\x00\n"}, []string{`\x1b[31mred\x07\x00`}},
		{"invisible and turning characters", []string{"a\u202eb\u200b\n"}, []string{`a\u202eb\u200b`}},
		{"what is not UTF-8", []string{"a\xffb\n"}, []string{`a\xffb`}},
		{"a tab", []string{"a\tb\n"}, []string{"a\tb"}},
		{"nothing", nil, []string{}},
	} {
		if got := tailOf(nil, row.pieces...); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %.100q, want %.100q", row.what, got, row.want)
		}
	}
}

func TestTailKeepsTheEndOnly(t *testing.T) {
	tail := NewTail(nil)
	for n := range 100_000 {
		fmt.Fprintf(tail, "line %d\n", n)
	}
	lines := tail.Lines()
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	if lines[len(lines)-1] != "line 99999" || size > TailSize || len(lines) > tailLines || len(lines) < 4000 {
		t.Errorf("%d lines, %d bytes, last %q", len(lines), size, lines[len(lines)-1])
	}
}

func TestFloodOfShortLinesIsCheap(t *testing.T) {
	began := time.Now()
	tail := NewTail([]string{"SENTINEL-7f3a"})
	flood := []byte(strings.Repeat("\n", 64<<10))
	for range 64 {
		tail.Write(flood)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("4 MiB of line ends took %v", took)
	}
}

// C58, the part about stderr.
func TestSecretsAreMaskedHoweverTheyAreWritten(t *testing.T) {
	const secret = "SENTINEL-7f3a/+ é\"x&<(!\\u0026🖥"
	quoted, _ := json.Marshal(secret)
	b64 := base64.StdEncoding.EncodeToString
	for what, text := range map[string]string{
		"as it is":            "token=" + secret + " end",
		"twice":               secret + secret,
		"in an address":       "http://proxy/?k=" + url.QueryEscape(secret),
		"in a path":           "http://proxy/" + url.PathEscape(secret),
		"in JSON":             "{\"k\":" + string(quoted) + "}",
		"in others' JSON":     `{"k":"SENTINEL-7f3a/+ é\"x&<(!\\u0026🖥"}`,
		"in ASCII JSON":       `{"k":"SENTINEL-7f3a/+ \u00e9\"x&<(!\\u0026\ud83d\udda5"}`,
		"by JavaScript":       "http://proxy/?k=SENTINEL-7f3a%2F%2B%20%C3%A9%22x%26%3C(!%5Cu0026%F0%9F%96%A5",
		"by encodeURI":        "http://proxy/SENTINEL-7f3a/+%20%C3%A9%22x&%3C(!%5Cu0026%F0%9F%96%A5",
		"by Python":           "http://proxy/SENTINEL-7f3a/%2B%20%C3%A9%22x%26%3C%28%21%5Cu0026%F0%9F%96%A5",
		"with small digits":   "http://proxy/SENTINEL-7f3a%2f%2b%20%c3%a9%22x%26%3c%28%21%5cu0026%f0%9f%96%a5",
		"in hex":              hex.EncodeToString([]byte(secret)),
		"in base64":           b64([]byte(secret)),
		"in base64 behind 1":  b64([]byte("u" + secret + "tail")),
		"in base64 behind 2":  b64([]byte("us" + secret + "tail")),
		"in basic auth":       "Basic " + b64([]byte("user:"+secret)),
		"in base64 for names": base64.RawURLEncoding.EncodeToString([]byte("x:" + secret)),
	} {
		for cut := range len(text) {
			lines := strings.Join(tailOf([]string{secret}, text[:cut], text[cut:], "\n"), "\n")
			if !strings.Contains(lines, masked) || strings.Contains(lines, "SENTINEL") || containsCore(lines, secret) {
				t.Fatalf("%s, cut at %d: %q", what, cut, lines)
			}
		}
	}
}

// containsCore looks for what base64 gives for the middle of the secret.
func containsCore(text, secret string) bool {
	for offset := range 3 {
		core := base64.StdEncoding.EncodeToString([]byte(secret[offset : offset+9]))
		if strings.Contains(text, core) {
			return true
		}
	}
	return false
}

func TestSecretsThatOverlap(t *testing.T) {
	for _, row := range []struct {
		what    string
		secrets []string
		pieces  []string
		want    string
	}{
		{"one begins like another", []string{"tokn", "tokn-longer"}, []string{"a tokn", "-longer b"}, "a [secret] b"},
		{"the shorter one alone", []string{"tokn", "tokn-longer"}, []string{"a tokn", "-other b"}, "a [secret]-other b"},
		{"one ends as another begins", []string{"abcdef", "efgh"}, []string{"abcdef", "gh"}, "[secret]gh"},
		{"the beginning of one is not shown at the end", []string{"abcdefgh"}, []string{"x abcdef"}, "x [secret]"},
		{"a beginning that comes to nothing", []string{"abcdefgh"}, []string{"abcdef", "x"}, "abcdefx"},
		{"a secret with a line end", []string{"first line of a key\nsecond line of a key"}, []string{"first line of a key\nsecond ", "line of a key"}, "[secret]"},
		{"a line of it", []string{"first line of a key\nsecond line of a key"}, []string{"> second line of a key"}, "> [secret]"},
		{"a common word is not a secret", []string{"on", ""}, []string{"upon"}, "upon"},
	} {
		if got := strings.Join(tailOf(row.secrets, row.pieces...), "\n"); got != row.want {
			t.Errorf("%s: got %q, want %q", row.what, got, row.want)
		}
	}
}

func TestWhatIsUndecidedIsNotShown(t *testing.T) {
	tail := NewTail([]string{"SENTINEL-7f3a"})
	tail.Write([]byte("token=SENTINEL-7"))
	if got := tail.Lines(); !slices.Equal(got, []string{"token="}) {
		t.Errorf("got %q", got)
	}
}

func FuzzMaskIsTheSameHoweverItIsCut(f *testing.F) {
	f.Add("a SENTINEL-7f3a b", uint8(4), uint8(9))
	f.Add("U0VOVElORUwtN2YzYQ==", uint8(1), uint8(2))
	secrets := []string{"SENTINEL-7f3a", "SENT", "aaaa", "aaaaab"}
	f.Fuzz(func(t *testing.T, text string, a, b uint8) {
		i, j := int(a)%(len(text)+1), int(b)%(len(text)+1)
		if i > j {
			i, j = j, i
		}
		whole := tailOf(secrets, text)
		cut := tailOf(secrets, text[:i], text[i:j], text[j:])
		if !slices.Equal(whole, cut) {
			t.Fatalf("whole %q, cut %q", whole, cut)
		}
		if strings.Contains(strings.Join(cut, ""), "SENTINEL-7f3a") {
			t.Fatalf("shown: %q", cut)
		}
	})
}

func TestBackoff(t *testing.T) {
	for _, row := range []struct {
		failures int
		uptime   time.Duration
		delay    time.Duration
		parked   bool
	}{
		{1, 0, time.Second, false},
		{2, 0, 2 * time.Second, false},
		{3, time.Second, 4 * time.Second, false},
		{4, 59 * time.Second, 8 * time.Second, false},
		{5, 59 * time.Second, 16 * time.Second, true},
		{100, 0, time.Minute, true},
		{100, time.Minute, time.Second, false},
		{5, time.Hour, time.Second, false},
		{0, 0, time.Second, false},
	} {
		if delay, parked := Backoff(row.failures, row.uptime); delay != row.delay || parked != row.parked {
			t.Errorf("%d failures, %v up: got %v %v, want %v %v", row.failures, row.uptime, delay, parked, row.delay, row.parked)
		}
	}
}
