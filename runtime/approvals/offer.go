package approvals

import (
	"bytes"
	"encoding/json"

	"sallyport/internal/coded"
)

// offered is one definition of an offer.
type offered struct {
	name string
	pin  Pin
	raw  []byte
	err  *coded.Error // why it is not offered to anybody
}

// offeredTools reads the definitions of an offer.
func offeredTools(raw []json.RawMessage) []offered { return offeredBy(raw, "name", PinTool) }

// offeredBy pins each definition. A name that comes twice is refused wherever it
// stands, also where one of the two cannot be pinned: neither is the tool (C45).
func offeredBy(raw []json.RawMessage, key string, pinOf func(json.RawMessage) (string, Pin, error)) []offered {
	out := make([]offered, len(raw))
	first := map[string]int{}
	for i, definition := range raw {
		name, pin, err := pinOf(definition)
		out[i] = offered{name: name, pin: pin, raw: definition}
		names := []string{name}
		if err != nil {
			out[i].err = refusalOf(err)
			if names = looseNames(definition, key); len(names) > 0 {
				out[i].name = names[0]
			}
		}
		for _, name := range names {
			before, twice := first[name]
			if !twice {
				first[name] = i
			} else if before != i {
				out[i].err, out[before].err = toolDuplicate(name), toolDuplicate(name)
			}
		}
	}
	return out
}

// looseNames returns every name that some reader could take for that of a
// definition which has no single reading.
func looseNames(raw []byte, key string) []string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var names []string
	for decoder.More() {
		member, err := decoder.Token()
		if err != nil {
			return names
		}
		var value any
		if decoder.Decode(&value) != nil {
			return names
		}
		if name, ok := value.(string); ok && member == key && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// pinAll pins prompts or templates; what cannot be pinned, or comes twice, is left
// out and so never exposed.
func pinAll(raw []json.RawMessage, key string, pinOf func(json.RawMessage) (string, Pin, error)) []pinned {
	out := []pinned{}
	for _, o := range offeredBy(raw, key, pinOf) {
		if o.err == nil {
			out = append(out, pinned{Name: o.name, Pin: o.pin, Definition: validJSON(o.raw)})
		}
	}
	return out
}
