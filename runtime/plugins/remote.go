package plugins

import (
	"cmp"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sallyport/internal/coded"
)

func (s *server) fillRemote(entry *node) *fault {
	if f := onlyFields(entry, string(s.transport), "type", "url", "headers"); f != nil {
		return f
	}
	address, at, f := requiredText(entry, "url", "url-invalid")
	if f != nil {
		return f
	}
	if sentence := endpoint(address); sentence != "" {
		return &fault{at.from, "url-invalid", sentence}
	}
	s.launch.URL = address
	if s.launch.Headers, f = textValues(entry, "headers", "headers-invalid", headerField); f != nil {
		return f
	}
	if name := sortHeaders(s.launch.Headers); name != "" {
		return &fault{entry.get("headers").from, "headers-invalid", "headers: " + show(name) + " stands twice in different case"}
	}
	return nil
}

// sortHeaders sorts by lower-case name and returns one that stands twice.
func sortHeaders(headers []Value) string {
	slices.SortFunc(headers, func(a, b Value) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	for i := range headers[min(1, len(headers)):] {
		if strings.EqualFold(headers[i].Name, headers[i+1].Name) {
			return headers[i+1].Name
		}
	}
	return ""
}

// endpoint follows §7.2.1: absolute, http or https, no user information, no
// fragment, and http for loopback literals only.
func endpoint(address string) string {
	if strings.ContainsFunc(address, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }) {
		return "url holds spaces or invisible characters"
	}
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" {
		return "url is not an absolute URL"
	}
	host := u.Hostname()
	port, portErr := strconv.Atoi(u.Port())
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "url is neither https nor http"
	case host == "" || strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }):
		return "url has no host, or one that is not written in ASCII"
	case u.User != nil:
		return "url holds user information"
	case strings.Contains(address, "#"):
		return "url holds a fragment"
	case strings.HasSuffix(u.Host, ":") || u.Port() != "" && (portErr != nil || port < 1 || port > 65535):
		return "url has no port from 1 to 65535"
	case u.Scheme == "http" && !isLoopback(host):
		return "url is http, which is for localhost and loopback addresses only"
	}
	return ""
}

// CheckAddress is for an address whose placeholders are expanded: the code is
// url-invalid. It looks at the words alone.
func CheckAddress(address string) error {
	if sentence := endpoint(address); sentence != "" {
		return &coded.Error{Code: "url-invalid", Sentence: sentence, Next: "correct the address, or what it is made of"}
	}
	return nil
}

// isLoopback takes localhost and address literals as they are written; nothing
// is looked up.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// headerField follows RFC 9110 5.1 and 5.5.
func headerField(name, value string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) }) {
		return "is not a valid header name"
	}
	if strings.Trim(value, " \t") != value {
		return "has a value that begins or ends with white space"
	}
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return "has a value with control characters"
		}
	}
	return ""
}

func isTokenChar(r rune) bool {
	return r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}
