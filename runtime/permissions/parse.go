package permissions

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sallyport/internal/coded"
)

// The limits of a Set. They bound what a package can make the operator read.
const (
	maxEntries   = 256 // entries in one list
	maxEntrySize = 256 // bytes in one entry
)

// The closed list of fs words (spec/permissions.md).
const (
	PluginData     = "plugin-data"
	WorkspaceRead  = "workspace-read"
	WorkspaceWrite = "workspace-write"
)

// Undeclared is what a package that declares nothing asks for: its own data
// folder and whatever tools the operator allows (spec/permissions.md).
func Undeclared() Set { return Set{Tools: []string{"*"}, FS: []string{PluginData}} }

// Parse reads a JSON object with the four lists, exactly: an unknown or repeated
// name, a name in another case, null and anything but strings are refused with
// the code "permissions-invalid". An absent list stays nil and an empty one is
// not nil, for callers that tell the two apart.
func Parse(raw []byte) (Set, error) {
	var lists map[string]jsontext.Value
	if jsontext.Value(raw).Kind() != '{' {
		return Set{}, invalid("permissions are not a JSON object")
	}
	if err := json.Unmarshal(raw, &lists); err != nil {
		return Set{}, invalid("permissions are not a JSON object with unique names")
	}
	var s Set
	targets := map[string]*[]string{"tools": &s.Tools, "net": &s.Net, "secrets": &s.Secrets, "fs": &s.FS}
	for name, list := range lists {
		target, known := targets[name]
		if !known {
			return Set{}, invalid(fmt.Sprintf("permissions have an unknown name %q", name))
		}
		parsed, ok := stringList(list)
		if !ok {
			return Set{}, invalid(fmt.Sprintf("permissions.%s is not a list of strings", name))
		}
		*target = parsed
	}
	return s.normal()
}

// Request reads what a package asks for. A list that the package does not write
// is the one of Undeclared; a list that it writes as [] is empty.
func Request(raw []byte) (Set, error) {
	s, err := Parse(raw)
	if err != nil {
		return Set{}, err
	}
	return s.orElse(Undeclared()), nil
}

// Narrowed returns outer with the lists of s that are not nil in place of its
// own, or an error when that would widen outer ("permissions-wider").
func (s Set) Narrowed(outer Set) (Set, error) {
	normal, err := s.normal()
	if err != nil {
		return Set{}, err
	}
	normal = normal.orElse(outer)
	return normal, normal.Within(outer)
}

// Validate reports the first entry that is not in the form its list has.
func (s Set) Validate() error {
	_, err := s.normal()
	return err
}

func (s Set) orElse(other Set) Set {
	pick := func(mine, theirs []string) []string {
		if mine == nil {
			return slices.Clone(theirs)
		}
		return mine
	}
	return Set{
		Tools: pick(s.Tools, other.Tools), Net: pick(s.Net, other.Net),
		Secrets: pick(s.Secrets, other.Secrets), FS: pick(s.FS, other.FS),
	}
}

// normal returns s with each list validated, sorted and free of repeats, hosts
// in lower case and their ports written out: equal permissions are equal sets.
func (s Set) normal() (Set, error) {
	var out Set
	for _, list := range []struct {
		name string
		from []string
		to   *[]string
		form func(string) (string, error)
	}{
		{"tools", s.Tools, &out.Tools, toolPattern},
		{"net", s.Net, &out.Net, netPattern},
		{"secrets", s.Secrets, &out.Secrets, secretName},
		{"fs", s.FS, &out.FS, fsWord},
	} {
		if len(list.from) > maxEntries {
			return Set{}, invalid(fmt.Sprintf("permissions.%s has more than %d entries", list.name, maxEntries))
		}
		if list.from != nil {
			*list.to = make([]string, 0, len(list.from))
		}
		for _, entry := range list.from {
			formed, err := list.form(entry)
			if err == nil && len(entry) > maxEntrySize {
				err = fmt.Errorf("is longer than %d bytes", maxEntrySize)
			}
			if err != nil {
				return Set{}, invalid(fmt.Sprintf("permissions.%s: %s %v", list.name, quoted(entry), err))
			}
			*list.to = append(*list.to, formed)
		}
		slices.Sort(*list.to)
		*list.to = slices.Compact(*list.to)
	}
	return out, nil
}

func toolPattern(entry string) (string, error) {
	if entry == "" {
		return "", fmt.Errorf("is empty")
	}
	if !utf8.ValidString(entry) || strings.ContainsFunc(entry, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return "", fmt.Errorf("holds characters that no tool name has")
	}
	return entry, nil
}

func secretName(entry string) (string, error) {
	ok := entry != "" && len(entry) <= 128
	for _, r := range entry {
		ok = ok && (r == '_' || r == '-' || r == '.' || r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)))
	}
	if !ok {
		return "", fmt.Errorf("is not 1 to 128 letters, digits, '_', '-' and '.'")
	}
	return entry, nil
}

func fsWord(entry string) (string, error) {
	switch entry {
	case PluginData, WorkspaceRead, WorkspaceWrite:
		return entry, nil
	}
	return "", fmt.Errorf("is not one of %s, %s, %s", PluginData, WorkspaceRead, WorkspaceWrite)
}

// netPattern accepts host[:port] and *.host[:port]. A pattern without a port
// means 443, the port of https: the narrow reading.
func netPattern(entry string) (string, error) {
	host, port, err := splitHostPort(strings.ToLower(entry))
	if err != nil {
		return "", err
	}
	name := strings.TrimPrefix(host, "*.")
	if ip, err := netip.ParseAddr(name); err == nil && name == host {
		return joinHostPort(ip.Unmap().String(), port), nil
	}
	if !isHostName(name) {
		return "", fmt.Errorf("is not host, host:port, *.host or *.host:port")
	}
	return joinHostPort(host, port), nil
}

// splitHostPort takes "host", "host:port", "[v6]" and "[v6]:port".
func splitHostPort(text string) (host string, port int, err error) {
	port = 443
	rest := ""
	if inner, found := strings.CutPrefix(text, "["); found {
		if host, rest, found = strings.Cut(inner, "]"); !found || !strings.Contains(host, ":") {
			return "", 0, fmt.Errorf("is not an address in brackets")
		}
	} else if i := strings.IndexByte(text, ':'); i >= 0 {
		host, rest = text[:i], text[i:]
	} else {
		host = text
	}
	if rest != "" {
		digits, found := strings.CutPrefix(rest, ":")
		port, err = strconv.Atoi(digits)
		if !found || err != nil || port < 1 || port > 65535 || digits[0] == '+' || digits[0] == '0' {
			return "", 0, fmt.Errorf("has no port from 1 to 65535")
		}
	}
	return host, port, nil
}

func joinHostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}

func isHostName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	numeric := true
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		numeric = true
		for _, c := range []byte(label) {
			digit := c >= '0' && c <= '9'
			if !digit && c != '-' && c != '_' && (c < 'a' || c > 'z') {
				return false
			}
			numeric = numeric && digit
		}
	}
	// A last label of digits alone is an IPv4 address in some odd notation.
	return !numeric
}

func stringList(raw jsontext.Value) ([]string, bool) {
	if raw.Kind() != '[' {
		return nil, false
	}
	var items []jsontext.Value
	if json.Unmarshal(raw, &items) != nil {
		return nil, false
	}
	list := make([]string, len(items))
	for i, item := range items {
		if item.Kind() != '"' || json.Unmarshal(item, &list[i]) != nil {
			return nil, false
		}
	}
	return list, true
}

func quoted(entry string) string {
	if len(entry) > 64 {
		entry = strings.ToValidUTF8(entry[:64], "") + "…"
	}
	return strconv.QuoteToGraphic(entry)
}

func invalid(sentence string) *coded.Error { return coded.New("permissions-invalid", sentence) }
