package plugins

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

// Overlay is what the operator's own configuration adds to one connector. It may
// use references; the permissions can only narrow what the package requests.
type Overlay struct {
	Env         map[string]string `json:"env,omitempty"`
	Inherit     []string          `json:"inherit,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	MaxFrame    int64             `json:"maxFrame,omitempty"`
	StdoutNoise string            `json:"stdoutNoise,omitempty"`
	Budget      Budget            `json:"budget,omitzero"`
	// Permissions replaces list by list; a nil list stays as the package has it.
	Permissions *permissions.Set `json:"permissions,omitempty"`
	// Err makes the connector invalid: the entry could not be read.
	Err error `json:"-"`
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
	c.Requested.Secrets = withSecrets(c.Requested.Secrets, o.Env, o.Headers)
	if o.Permissions != nil {
		narrow, err := o.Permissions.Narrowed(c.Requested)
		if err != nil {
			return refuse(err.Error())
		}
		c.Requested = narrow
	}
	return c
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

func (b *Budget) overlay(o Budget) string {
	for _, field := range []struct {
		to   *int64
		from int64
	}{
		{&b.MemoryBytes, o.MemoryBytes}, {&b.CPUSeconds, o.CPUSeconds}, {&b.OpenFiles, o.OpenFiles}, {&b.Processes, o.Processes},
	} {
		if field.from < 0 {
			return "a budget is negative"
		}
		if field.from > 0 {
			*field.to = field.from
		}
	}
	return ""
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
