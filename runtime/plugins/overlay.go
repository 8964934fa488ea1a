package plugins

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

// Overlay is what the operator's own configuration adds to one connector. It may
// use references; Permissions can only narrow what the package requests, and Permit is
// a request of the operator's own.
type Overlay struct {
	Env         map[string]string `json:"env,omitempty"`
	Inherit     []string          `json:"inherit,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	MaxFrame    int64             `json:"maxFrame,omitempty"`
	StdoutNoise string            `json:"stdoutNoise,omitempty"`
	Budget      Budget            `json:"budget,omitzero"`
	// NotSecret are the operator's words that a literal is no credential (Options).
	NotSecret []string `json:"notSecret,omitempty"`
	// UserConfig are the values of the plugin's settings (Connector.Settings).
	UserConfig map[string]Choice `json:"userConfig,omitempty"`
	// Permissions replaces list by list; a nil list stays as the package has it.
	Permissions *permissions.Set `json:"permissions,omitempty"`
	// Permit is what the operator asks for in addition to the package. It is approved
	// like the rest.
	Permit Permit `json:"permit,omitzero"`
	// Err makes the connector invalid: the entry could not be read.
	Err error `json:"-"`
}

// Choice is what the operator gives for one setting: a text, a number, true or
// false, or a list of those.
type Choice []string

// UnmarshalJSON takes one value or a list of values, as they are written.
func (c *Choice) UnmarshalJSON(raw []byte) error {
	doc, err := parseDocument(raw)
	if err != nil {
		return err
	}
	if *c = choiceOf(doc, doc.root); *c == nil {
		return errors.New("a setting is a text, a number, true or false, or a list of those")
	}
	return nil
}

// choiceOf reads one value or a list of values; nil where it is neither.
func choiceOf(doc *document, n *node) Choice {
	items := n.items
	if n.kind != '[' {
		items = []*node{n}
	}
	list := make(Choice, 0, len(items))
	for _, item := range items {
		switch item.kind {
		case '"', '0':
			list = append(list, item.text)
		case 't', 'f':
			list = append(list, string(doc.raw(item)))
		default:
			return nil
		}
	}
	return list
}

// Permit is a request of the operator's own: hosts that Sallyport may connect to
// for a server that is dialled (docs/decisions/0016-the-operator-asks-for-hosts.md),
// and what of the workspace it may be told.
type Permit struct {
	Net []string `json:"net,omitempty"`
	FS  []string `json:"fs,omitempty"`
}

// ParseOverlays reads a JSON object of overlays by connector id. An entry that
// cannot be read is kept with its Err, so that its connector does not run
// without what the entry was meant to say. The error is for the object itself.
func ParseOverlays(raw []byte) (map[string]Overlay, error) {
	doc, err := parseDocument(raw)
	if err != nil || doc.root.kind != '{' || doc.root.repeatedHere() != nil {
		refusal := coded.New("overlay-invalid", "the connectors in the configuration are not a JSON object with unique names")
		refusal.Err = err
		return nil, refusal
	}
	overlays := make(map[string]Overlay, len(doc.root.members))
	for _, entry := range doc.root.members {
		var o Overlay
		if entry.value.kind != '{' {
			o.Err = errors.New("the entry is not an object")
		} else if json.Unmarshal(doc.raw(entry.value), &o, json.RejectUnknownMembers(true)) != nil {
			o = Overlay{Err: errors.New("the entry has an unknown or repeated name or a value of the wrong kind")}
		}
		overlays[entry.name] = o
	}
	return overlays, nil
}

// apply returns the connector with the overlay on top. A bad overlay makes the
// connector invalid ("overlay-invalid"); it is never left out.
func (o Overlay) apply(c Connector) Connector {
	refuse := func(sentence string) Connector {
		if c.Invalid == nil {
			c.Invalid = coded.New("overlay-invalid", "the configuration for "+show(c.ID.String())+": "+sentence)
			c.Invalid.Next = "correct the entry in config.json"
		}
		return c
	}
	if o.Err != nil {
		return refuse(o.Err.Error())
	}
	if len(o.Env) > 0 && c.Transport != Stdio || len(o.Headers) > 0 && c.Transport == Stdio {
		return refuse("env is for stdio servers and headers are for the others")
	}
	var sentence string
	c.Launch.Replaced = slices.Concat(replaced(c.Launch.Env, o.Env, exactly), replaced(c.Launch.Headers, o.Headers, strings.EqualFold))
	if c.Launch.Env, sentence = overlaid(c.Launch.Env, o.Env, envEntry, exactly); sentence != "" {
		return refuse("env: " + sentence)
	}
	if c.Launch.Headers, sentence = overlaid(c.Launch.Headers, o.Headers, headerField, strings.EqualFold); sentence != "" {
		return refuse("headers: " + sentence)
	}
	if len(o.Headers) == 0 {
		// Unchanged, and shared with the cache.
	} else if name := sortHeaders(c.Launch.Headers); name != "" {
		return refuse("headers: " + show(name) + " stands twice in different case")
	}
	if c.Launch.Inherit, sentence = inheritNames(append(slices.Clone(c.Launch.Inherit), o.Inherit...)); sentence != "" {
		return refuse(sentence)
	}
	if o.MaxFrame < 0 || o.MaxFrame > MaxFrameLimit {
		return refuse(fmt.Sprintf("maxFrame is not from 1 to %d", MaxFrameLimit))
	}
	if o.MaxFrame > 0 {
		c.Options.MaxFrame = o.MaxFrame
	}
	if o.StdoutNoise != "" {
		if sentence := noise(o.StdoutNoise); sentence != "" {
			return refuse(sentence)
		}
		c.Options.StdoutNoise = o.StdoutNoise
	}
	if sentence := c.Options.Budget.overlay(o.Budget); sentence != "" {
		return refuse(sentence)
	}
	if c.Options.NotSecret, sentence = literalNames(c.Options.NotSecret, o.NotSecret); sentence != "" {
		return refuse("notSecret: " + sentence)
	}
	if c.Settings, sentence = chosen(c.Settings, o.UserConfig); sentence != "" {
		return refuse("userConfig: " + sentence)
	}
	c.Requested.Secrets = withSecrets(c.Requested.Secrets, o.Env, o.Headers)
	for _, choice := range o.UserConfig {
		for _, value := range choice {
			c.Requested.Secrets = withSecrets(c.Requested.Secrets, map[string]string{"": value})
		}
	}
	if o.Permissions != nil {
		narrow, err := o.Permissions.Narrowed(c.Requested)
		if err != nil {
			return refuse(err.Error())
		}
		c.Requested = narrow
	}
	if c, sentence = o.Permit.apply(c); sentence != "" {
		return refuse(sentence)
	}
	return c
}

func (p Permit) apply(c Connector) (Connector, string) {
	if len(p.FS) > 0 {
		more, err := c.Requested.WithFS(p.FS)
		if err != nil {
			return c, "permit: " + err.Error()
		}
		c.Requested = more
	}
	if len(p.Net) == 0 {
		return c, ""
	}
	if c.Transport == Stdio {
		return c, "permit.net is for servers that Sallyport connects to; nothing limits where a child process connects"
	}
	asked, err := permissions.Set{}.WithNet(p.Net)
	if err != nil {
		return c, "permit: " + err.Error()
	}
	all, err := c.Requested.WithNet(asked.Net)
	if err != nil {
		return c, "permit: " + err.Error()
	}
	for _, host := range asked.Net {
		if !slices.Contains(c.Requested.Net, host) {
			c.AskedNet = append(c.AskedNet, host)
		}
	}
	c.Requested = all
	return c, ""
}

// secretReference finds secret:NAME and ${secret:NAME} (spec/child-environment.md 5).
var secretReference = regexp.MustCompile(`^secret:([A-Za-z0-9_.-]+)$|\$\{secret:([A-Za-z0-9_.-]+)\}`)

// withSecrets adds the secrets that the operator's own values name: who writes the
// reference asks for it, and the approval is still asked about it. A package that
// knows nothing of Sallyport could never list one.
func withSecrets(requested []string, own ...map[string]string) []string {
	added := slices.Clone(requested)
	for _, values := range own {
		for _, value := range values {
			for _, found := range secretReference.FindAllStringSubmatch(value, -1) {
				added = append(added, found[1]+found[2])
			}
		}
	}
	if len(added) == len(requested) {
		return requested
	}
	slices.Sort(added)
	return slices.Compact(added)
}

// chosen puts the operator's values into the settings.
func chosen(settings []Setting, choices map[string]Choice) ([]Setting, string) {
	if len(choices) == 0 {
		return settings, ""
	}
	settings = slices.Clone(settings)
	for _, key := range slices.Sorted(maps.Keys(choices)) {
		at := slices.IndexFunc(settings, func(s Setting) bool { return s.Key == key })
		if at < 0 {
			return settings, "the plugin has no setting " + show(key)
		}
		if sentence := settings[at].Fits(choices[key]); sentence != "" {
			return settings, sentence
		}
		settings[at].Value = choices[key]
	}
	return settings, ""
}

// literalNames adds names of literals, sorted and once each.
func literalNames(have, more []string) ([]string, string) {
	if len(more) == 0 {
		return have, ""
	}
	for _, name := range more {
		if name == "" || len(name) > maxServerName || strings.ContainsFunc(name, unicode.IsControl) {
			return have, show(name) + " is not the name of a variable, a header or an argument"
		}
	}
	all := slices.Concat(have, more)
	slices.Sort(all)
	return slices.Compact(all), ""
}

// replaced returns the declared values that own takes the place of.
func replaced(declared []Value, own map[string]string, same func(a, b string) bool) (list []Value) {
	for _, v := range declared {
		for name := range own {
			if same(name, v.Name) {
				list = append(list, v)
			}
		}
	}
	return list
}

func exactly(a, b string) bool { return a == b }

// overlaid replaces values of the same name and adds the others, sorted.
func overlaid(declared []Value, own map[string]string, check func(name, value string) string, same func(a, b string) bool) ([]Value, string) {
	if len(own) == 0 {
		return declared, ""
	}
	merged := slices.DeleteFunc(slices.Clone(declared), func(v Value) bool {
		for name := range own {
			if same(name, v.Name) {
				return true
			}
		}
		return false
	})
	for name, value := range own {
		if sentence := check(name, value); sentence != "" {
			return declared, show(name) + " " + sentence
		}
		merged = append(merged, Value{Name: name, Value: value, FromOperator: true})
	}
	slices.SortFunc(merged, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	return merged, ""
}
