package fakeserver

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// spill writes the environment to stderr as careless programs do: as it is, as
// JSON of two kinds, base64 at three offsets, hex, in an address, and in pieces.
func spill() {
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(os.Stderr, "%s is %s\n", name, value)
		escaped, _ := json.Marshal(object{name: value})
		fmt.Fprintf(os.Stderr, "%s\n%s\n", escaped, encode(object{name: value})) // Go's way, and everybody else's
		for _, before := range []string{"", "a", "ab"} {
			fmt.Fprintln(os.Stderr, base64.StdEncoding.EncodeToString([]byte(before+value)), base64.RawURLEncoding.EncodeToString([]byte(before+value)))
		}
		fmt.Fprintln(os.Stderr, hex.EncodeToString([]byte(value)))
		fmt.Fprintln(os.Stderr, url.QueryEscape(value), url.PathEscape(value), encodeURIComponent(value), strings.ToLower(url.QueryEscape(value)))
		half := len(value) / 2
		os.Stderr.WriteString(value[:half])
		time.Sleep(2 * time.Millisecond) // two reads, as a rule
		os.Stderr.WriteString(value[half:] + "\n")
	}
}

// encodeURIComponent is JavaScript's.
func encodeURIComponent(text string) string {
	escaped := strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	return strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(escaped)
}
