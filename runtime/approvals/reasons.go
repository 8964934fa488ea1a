package approvals

import (
	"fmt"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// word is the connector as a command takes it.
func word(id plugins.ID) string { return Visible(env.Quote(id.String())) }

// changedNow is the refusal for a difference between approved and present fields.
func changedNow(id plugins.ID, approved, now Fields) *coded.Error {
	changes := Changes(approved, now)
	if len(changes) == 0 {
		return coded.New("artifact-changed", "it is no longer what was approved")
	}
	e := reason(id, changes[0].Code)
	if others := len(codesOf(changes)) - 1; others > 0 {
		e.Sentence += fmt.Sprintf(" (and %d more)", others)
	}
	return e
}

func codesOf(changes []Change) []string {
	var codes []string
	for _, change := range changes {
		if len(codes) == 0 || codes[len(codes)-1] != change.Code {
			codes = append(codes, change.Code)
		}
	}
	return codes
}

// reason words a code of spec/approval.md 2.1.
func reason(id plugins.ID, code string) *coded.Error {
	what, ok := map[string]string{
		"binding-changed":     "its name or the place it came from changed since it was approved",
		"publisher-changed":   "it is no longer signed by whom it was when it was approved",
		"version-changed":     "its version changed since it was approved",
		"artifact-changed":    "its files changed since they were approved",
		"transport-changed":   "the way it is reached changed since it was approved",
		"command-changed":     "its command changed since it was approved",
		"executable-changed":  "the program that its command starts changed since it was approved",
		"input-changed":       "a file that its command line names changed since it was approved",
		"args-changed":        "its arguments changed since they were approved",
		"cwd-changed":         "its working directory changed since it was approved",
		"env-changed":         "its environment changed since it was approved",
		"endpoint-changed":    "its address changed since it was approved",
		"headers-changed":     "its headers changed since they were approved",
		"permissions-changed": "what it asks to be allowed changed since it was approved",
		"options-changed":     "its options changed since they were approved",
	}[code]
	if !ok {
		what = strings.ReplaceAll(code, "-", " ")
	}
	return &coded.Error{Code: code, Sentence: what, Next: "look at what changed: sallyport diff " + word(id) + "; then approve it again: sallyport approve " + word(id)}
}

const codeDenied = "permission-denied"

func toolChanged(id plugins.ID, name string) *coded.Error {
	return &coded.Error{Code: "tool-changed", Sentence: fmt.Sprintf("the definition of %q changed since it was approved", Visible(name)),
		Next: "look at what changed: sallyport diff " + word(id) + "; then choose the tools again: sallyport approve " + word(id)}
}

func toolAdded(id plugins.ID, name string) *coded.Error {
	return &coded.Error{Code: "tool-added", Sentence: fmt.Sprintf("%q was added since the tools were chosen", Visible(name)),
		Next: "look at what changed: sallyport diff " + word(id) + "; then choose the tools again: sallyport approve " + word(id)}
}

func toolDuplicate(name string) *coded.Error {
	return &coded.Error{Code: "tool-duplicate", Sentence: fmt.Sprintf("the server lists %q twice", Visible(name)),
		Next: "report it to the plugin's author; its other tools are not affected"}
}

func toolMissing(name string) *coded.Error {
	return &coded.Error{Code: "tool-missing", Sentence: fmt.Sprintf("the server does not offer %q now", Visible(name)),
		Next: "see what there is: sallyport tools"}
}

func toolNotGranted(id plugins.ID, name string) *coded.Error {
	return &coded.Error{Code: codeDenied, Sentence: fmt.Sprintf("%q is not among the tools that the operator allowed", Visible(name)),
		Next: "to allow it, choose the tools again: sallyport approve " + word(id)}
}

func toolNotPermitted(name string) *coded.Error {
	return &coded.Error{Code: codeDenied, Sentence: fmt.Sprintf("the connector's permissions do not cover the tool %q", Visible(name)),
		Next: "its manifest has to ask for it"}
}
