package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"sallyport/internal/coded"
	"sallyport/internal/jcs"
)

// Pin is "t1:" and the hex SHA-256 of one whole definition in RFC 8785 form
// (spec/approval.md 2.3).
type Pin string

// PinTool returns the name and the pin of one tool as its server wrote it. Key
// order and white space do not count; every other byte of meaning does. What has
// no single reading is refused with "tool-unpinnable".
func PinTool(raw json.RawMessage) (name string, pin Pin, err error) {
	return pinNamed(raw, "name")
}

// PinPrompt is PinTool for one prompt.
func PinPrompt(raw json.RawMessage) (name string, pin Pin, err error) {
	return pinNamed(raw, "name")
}

// PinTemplate is PinTool for one resource template, which its uriTemplate names.
func PinTemplate(raw json.RawMessage) (uriTemplate string, pin Pin, err error) {
	return pinNamed(raw, "uriTemplate")
}

// PinText returns the pin of a server's instructions.
func PinText(text string) (Pin, error) {
	sum, err := jcs.Sum("t1:", text)
	if err != nil {
		return "", unpinnable("the instructions are not valid text", err)
	}
	return Pin(sum), nil
}

func pinNamed(raw json.RawMessage, key string) (string, Pin, error) {
	if err := jcs.Exact(raw); err != nil {
		return "", "", unpinnable(whyInexact(err), err)
	}
	canonical, err := jcs.Canonical(raw)
	if err != nil {
		return "", "", unpinnable("the definition has more than one reading", err)
	}
	name, err := nameOf(canonical, key)
	if err != nil {
		return name, "", err
	}
	return name, Pin(sum256("t1:", canonical)), nil
}

func whyInexact(err error) string {
	if errors.Is(err, jcs.ErrRange) || errors.Is(err, jcs.ErrInexact) {
		return "the definition has a number that changes when it is read"
	}
	return "the definition has more than one reading"
}

// nameOf reads the name under exactly this key: encoding/json would take "Name"
// for it as well, and two readers would see two names.
func nameOf(canonical []byte, key string) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(canonical, &members); err != nil || members == nil {
		return "", unpinnable("the definition is not an object", err)
	}
	var name *string
	if err := json.Unmarshal(members[key], &name); err != nil || name == nil || *name == "" {
		return "", unpinnable(fmt.Sprintf("the definition has no %s", key), err)
	}
	for _, r := range *name {
		if r == utf8.RuneError || hidden(r) {
			return *name, unpinnable("the name has characters that cannot be seen: "+strconv.QuoteToASCII(*name), nil)
		}
	}
	return *name, nil
}

func unpinnable(sentence string, cause error) error {
	return &coded.Error{
		Code: "tool-unpinnable", Sentence: sentence,
		Next: "report it to the plugin's author; the rest of the plugin is not affected",
		Err:  cause,
	}
}
