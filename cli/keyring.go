package cli

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/api"
	"sallyport/runtime/approvals"
	"sallyport/runtime/health"
	"sallyport/runtime/secrets"
)

// keyringProblem reports whether doctor says it better by asking the keyring.
func keyringProblem(p health.Problem) bool {
	return p.Code == health.SecretsUnavailable || p.Code == health.SealKeyUnavailable
}

// keyringFinding is how the keyring is. That it cannot be used is a fault where
// something waits for it.
func keyringFinding(k api.Keyring) finding {
	f := finding{What: "keyring", OK: true, Says: k.Where, Keyring: &k}
	if k.State == secrets.OK {
		if k.SealKey.In == approvals.KeyInFile {
			f.Says += "; the seal key is in a file"
		}
		return f
	}
	f.Says, f.OK = k.Says, len(k.Needs) == 0 && !k.SealKey.Waiting
	if f.OK {
		f.Absent, f.Next = true, "nothing needs it yet; to see more: sallyport doctor --keyring"
	}
	return f
}

// aboutKeyring keeps what was found about the keyring, with its explanation.
func aboutKeyring(findings []finding) []finding {
	about := slices.DeleteFunc(findings, func(f finding) bool { return f.Keyring == nil })
	for i, f := range about {
		about[i].OK = f.Keyring.State == secrets.OK
	}
	if len(about) == 0 {
		return []finding{{What: "keyring", Says: "it was not asked: the store does not open", Next: "sallyport doctor"}}
	}
	return about
}

const (
	keyringWidth = 80 // of a small terminal
	mostNeeds    = 3  // connectors that are named
)

// keyring explains one that cannot be used: what is so, what waits for it, what to
// type.
func (p *page) keyring(k *api.Keyring) {
	what := k.What
	if what == "" {
		what = k.Next
	}
	p.wrapped("     ", what)
	switch {
	case k.SealKey.Waiting:
		p.wrapped("     ", "Waits for it: every approval, since the key that seals them is in it; so nothing starts.")
	case len(k.Needs) > 0:
		p.wrapped("     ", "Waits for it: "+needing(k.Needs)+". All others run.")
	default:
		p.wrapped("     ", "Nothing waits for it.")
	}
	for _, step := range helpful(k) {
		p.wrapped("     ", sentence(step.Do))
		for _, command := range step.Type {
			p.line("         %s", command)
		}
	}
	if len(k.Steps) > 0 {
		p.line("     More: docs/guide/secrets.md. Look again: sallyport doctor")
	}
}

// helpful are the steps that help what waits for the keyring.
func helpful(k *api.Keyring) []api.KeyringStep {
	if !k.SealKey.Waiting {
		return k.Steps
	}
	steps := slices.DeleteFunc(slices.Clone(k.Steps), func(step api.KeyringStep) bool { return step.Instead })
	give := "if that keyring is gone for good, give the key up and approve everything anew:"
	if len(steps) > 0 {
		give = "or, " + give
	}
	return append(steps, api.KeyringStep{Do: give, Type: []string{"sallyport decisions accept-store --key-lost --yes"}})
}

func needing(needs []api.KeyringNeed) string {
	var named []string
	for i, need := range needs {
		if i == mostNeeds && len(needs) > mostNeeds+1 {
			named = append(named, fmt.Sprintf("and %d more", len(needs)-mostNeeds))
			break
		}
		named = append(named, shown(need.ID))
	}
	return strings.Join(named, ", ")
}

// sentence begins text with a capital letter.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// wrapped writes text in lines that a small terminal shows whole, all of them indented
// as the first one is by its beginning.
func (p *page) wrapped(begin, text string) {
	line, indent := begin, strings.Repeat(" ", len(begin))
	for word := range strings.FieldsSeq(text) {
		if len(line) > len(begin) && len(line)+1+len(word) > keyringWidth {
			p.line("%s", line)
			line = indent
		}
		if len(line) > len(begin) {
			line += " "
		}
		line += word
	}
	p.line("%s", line)
}
