package env

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/coded"
)

// Where says in which field a literal stands.
type Where string

// The fields that are looked at.
const (
	InEnv      Where = "env"
	InHeader   Where = "header"
	InArgument Where = "argument"
	InAddress  Where = "address"
)

// AddressName is the Name of a literal in an address: there is one a connector.
const AddressName = "url"

// NameValue is a variable or a header as it is written down.
type NameValue struct{ Name, Value string }

// Texts is everything of a connector in which somebody may have written out a
// credential.
type Texts struct {
	Env, Headers []NameValue
	Args         []string
	URL          string
}

// Literal is a place where a credential seems to be written out
// (spec/child-environment.md 5). It never holds the value.
type Literal struct {
	// Name is the variable's or header's, ArgumentName or AddressName: what the
	// operator names to say that it is no secret.
	Name  string `json:"name"`
	Where Where  `json:"where"`
	// Kind is what it looks like, in words with an article: "a GitHub token".
	Kind string `json:"kind"`
	// Certain is true for a shape that nothing but a credential has.
	Certain bool `json:"certain"`
	// Placeholder is true for what stands where a credential belongs and is none:
	// "your-api-key-here", "<token>", or a reference that is not expanded there.
	Placeholder bool `json:"placeholder,omitempty"`
	// Secret is a fitting name for it in the keyring.
	Secret string `json:"secret"`
}

// ArgumentName names an argument, counted from 0 as in the manifest: "args[2]".
func ArgumentName(i int) string { return fmt.Sprintf("args[%d]", i) }

// FindLiterals lists what looks like a credential, or like a placeholder for one,
// at most one a value, in the order env, headers, args, address. The texts count
// as literal from end to end: whoever reads a format with references takes those
// out first. Its time is linear in the size of the texts.
func FindLiterals(t Texts) []Literal {
	var all []Literal
	add := func(where Where, name, label string, f finding) {
		if f.kind != "" {
			all = append(all, Literal{name, where, f.kind, f.certain, f.placeholder, secretName(label, f)})
		}
	}
	for _, v := range t.Env {
		add(InEnv, v.Name, v.Name, judge(v.Name, v.Value))
	}
	for _, v := range t.Headers {
		add(InHeader, v.Name, v.Name, judge(v.Name, v.Value))
	}
	labels := argumentLabels(t.Args)
	for i, arg := range t.Args {
		add(InArgument, ArgumentName(i), labels[i], judgeArgument(labels[i], arg))
	}
	add(InAddress, AddressName, "", judgeAddress(t.URL))
	return all
}

// ShowArguments returns args for showing: what looks like a credential is hidden,
// but for what the operator named and is not certainly one.
func (x Exempt) ShowArguments(args []string) []string {
	labels := argumentLabels(args)
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = arg
		if f := judgeArgument(labels[i], arg); x.hides(Literal{Name: ArgumentName(i), Where: InArgument}, f) {
			out[i] = hideBehind(arg)
		}
	}
	return out
}

func (x Exempt) hides(l Literal, f finding) bool {
	return f.credential() && (f.certain || !x.Covers(l))
}

// hideBehind leaves the option or header name that stands before a value.
func hideBehind(arg string) string {
	if name, value, ok := nameBefore(arg); ok && !judge("", name).credential() {
		return arg[:len(arg)-len(value)] + Hidden
	}
	return Hidden
}

// ShowAddress returns an address without its query, or hidden whole, where
// something in it looks like a credential.
func (x Exempt) ShowAddress(address string) string {
	if !x.hides(Literal{Name: AddressName, Where: InAddress}, judgeAddress(address)) {
		return address
	}
	if before, _, ok := strings.Cut(address, "?"); ok && !judgeAddress(before).credential() {
		return before + "?" + Hidden
	}
	return Hidden
}

// ShowValue returns the value of a variable or header, hidden by the same rule.
func (x Exempt) ShowValue(where Where, name, value string) string {
	if x.hides(Literal{Name: name, Where: where}, judge(name, value)) {
		return Hidden
	}
	return value
}

// authScheme is the word before the credential of an Authorization header.
var authScheme = regexp.MustCompile(`^(?i:bearer|basic|token|apikey|api-key)[ \t]+`)

// SplitScheme cuts "Bearer " and the like off the credential in a value, so that
// the credential alone can be kept: what is left of a header refers to it.
func SplitScheme(value string) (scheme, credential string) {
	scheme = authScheme.FindString(value)
	return scheme, value[len(scheme):]
}

// finding is what one value was taken for; the zero one is nothing.
type finding struct {
	kind        string
	certain     bool
	placeholder bool
	secret      string // a name for the keyring that the shape suggests
}

func (f finding) credential() bool { return f.kind != "" && !f.placeholder }

const (
	aCredential  = "a credential" //nolint:gosec // a word
	aPlaceholder = "a placeholder for a credential"
)

// judge looks at one value under its name, which may be "".
func judge(name, value string) finding {
	if f := findShape(value); f.kind != "" {
		return f
	}
	words := wordsOf(name)
	switch {
	case names(words) && !harmless(words, value):
		if isPlaceholder(value) {
			return finding{kind: aPlaceholder, placeholder: true}
		}
		return finding{kind: aCredential}
	case tells(words) && !isPlaceholder(value) && looksRandom(value):
		return finding{kind: aCredential}
	}
	return judgePairs(value)
}

// judgePairs looks at what a value holds under names of its own: JSON, a
// connection string, the query of an address, headers line by line.
func judgePairs(value string) finding {
	if notExpanded.MatchString(value) {
		return finding{} // secret:NAME is no line of a header
	}
	for pair := range pairsIn(value) {
		words := wordsOf(pair.Name)
		if isPlaceholder(pair.Value) || harmless(words, pair.Value) {
			continue
		}
		if _, bare := SplitScheme(pair.Value); isPlaceholder(bare) {
			continue
		}
		if names(words) || tells(words) && looksRandom(pair.Value) {
			return finding{kind: aCredential}
		}
	}
	return finding{}
}

// judgeArgument looks at an argument. label is the option before it that names it.
func judgeArgument(label, arg string) finding {
	if name, value, ok := nameBefore(arg); ok {
		if f := judge(name, value); f.kind != "" {
			return f
		}
	}
	return judge(label, arg)
}

// argumentLabels says for each argument which option it is the value of:
// "--token", "X", or its own name in "--token=X".
func argumentLabels(args []string) []string {
	labels := make([]string, len(args))
	for i, arg := range args {
		if name, _, ok := nameBefore(arg); ok {
			labels[i] = name
			continue
		}
		if i > 0 && option.MatchString(args[i-1]) && !strings.HasPrefix(arg, "-") {
			labels[i] = strings.TrimLeft(args[i-1], "-")
		}
	}
	return labels
}

var (
	option     = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9_.-]*$`)
	assignment = regexp.MustCompile(`^-{0,2}([A-Za-z][A-Za-z0-9_.-]*)=`)
	headerLine = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*):[ \t]*`)
)

// nameBefore cuts --name=value, NAME=value and "Name: value".
func nameBefore(arg string) (name, value string, ok bool) {
	if notExpanded.MatchString(arg) {
		return "", "", false
	}
	for _, form := range []*regexp.Regexp{assignment, headerLine} {
		if m := form.FindStringSubmatchIndex(arg); m != nil && !strings.HasPrefix(arg[m[1]:], "//") {
			return arg[m[2]:m[3]], arg[m[1]:], true
		}
	}
	return "", "", false
}

func judgeAddress(address string) finding {
	if f := findShape(address); f.kind != "" {
		return f
	}
	_, query, _ := strings.Cut(address, "?")
	for part := range strings.SplitSeq(query, "&") {
		if name, value, ok := strings.Cut(part, "="); ok {
			if f := judge(name, value); f.kind != "" {
				return f
			}
		}
	}
	return finding{}
}

// secretName makes a name for the keyring: by the label where that says what it
// is, by the shape otherwise (spec/permissions.md has the alphabet).
func secretName(label string, f finding) string {
	words := wordsOf(label)
	if f.secret != "" && (len(words) == 0 || !names(words) || words[0] == "AUTHORIZATION") {
		return f.secret
	}
	if len(words) == 0 {
		return "CREDENTIAL"
	}
	name := strings.Join(words, "_")
	return name[:min(len(name), 100)]
}

// CheckLiteral refuses a literal that looks like a credential, by its name or
// by its shape, with literal-secret, and what stands in the place of one with
// literal-placeholder (spec/child-environment.md 5). The name may be a variable's
// or a header's. The value is not in the error.
func CheckLiteral(name, value string) error {
	return Exempt{}.Check(FindLiterals(Texts{Env: []NameValue{{name, value}}}))
}

// Exempt is what the operator said is no secret, for one connector.
type Exempt struct {
	Connector string   // its id, for the command that a refusal names; may be ""
	NotSecret []string // names of literals
}

// Covers reports whether the operator named the literal.
func (x Exempt) Covers(l Literal) bool {
	return slices.ContainsFunc(x.NotSecret, func(name string) bool {
		return name == l.Name || l.Where == InHeader && strings.EqualFold(name, l.Name)
	})
}

// Check refuses a literal that the operator did not name, a credential before what
// stands in the place of one, and says how many more there are.
func (x Exempt) Check(literals []Literal) error {
	others := slices.DeleteFunc(slices.Clone(literals), x.Covers)
	if len(others) == 0 {
		return nil
	}
	first := max(0, slices.IndexFunc(others, func(l Literal) bool { return !l.Placeholder }))
	refusal := others[first].refusal(x.Connector)
	if more := len(others) - 1; more > 0 {
		refusal.Sentence += fmt.Sprintf(" (and %d more)", more)
	}
	return refusal
}

// Literals lists what looks like a credential in a connector's texts, with what its
// format and its settings make of them. What the operator named is among them.
func (w Words) Literals(env, headers []Declared, args []string, url string) ([]Literal, error) {
	var all []Literal
	for i, d := range slices.Concat(env, headers) {
		t, err := w.scope.parse(d)
		if err != nil {
			return nil, err
		}
		where := InHeader
		if i < len(env) {
			where = InEnv
		}
		all = append(all, literalsOf(where, d, t)...)
	}
	texts := Texts{Args: make([]string, len(args))}
	for i, arg := range args {
		t, err := w.scope.parse(Declared{Name: ArgumentName(i), Value: arg})
		if err != nil {
			return nil, err
		}
		texts.Args[i] = t.judged()
	}
	t, err := w.scope.parse(Declared{Name: AddressName, Value: url})
	texts.URL = t.judged()
	return append(all, FindLiterals(texts)...), err
}

// CheckLiterals refuses the first of Literals that the operator did not name.
func (w Words) CheckLiterals(literals []Literal) error { return w.exempt.Check(literals) }

// literalsOf judges by name only what is a literal from end to end; of a value with
// references it judges the text between them, and each default by the name.
func literalsOf(where Where, d Declared, value template) []Literal {
	for _, p := range value {
		if p.kind == isEnv && p.fallback {
			if found := literalIn(where, d.Name, p.text); found != nil {
				return found
			}
		}
	}
	if value.references() == "" {
		return literalIn(where, d.Name, value.judged())
	}
	if f := judge("", value.judged()); f.credential() {
		return []Literal{{d.Name, where, f.kind, f.certain, false, secretName(d.Name, f)}}
	}
	return nil
}

// What stands for pieces that are no literals: neither is taken for a credential.
const (
	someFolder    = "${PLUGIN_ROOT}"
	someReference = "<reference>"
)

// judged is the text of t that somebody wrote down.
func (t template) judged() string {
	var text strings.Builder
	for _, p := range t {
		switch {
		case p.folder:
			text.WriteString(someFolder)
		case p.kind == isText:
			text.WriteString(p.text)
		case p.kind == isMany:
			for _, inner := range p.many {
				text.WriteString(inner.judged() + " ")
			}
		case p.kind == isEnv, p.kind == isSecret:
			text.WriteString(someReference)
		}
	}
	return text.String()
}

func literalIn(where Where, name, value string) []Literal {
	one := []NameValue{{name, value}}
	if where == InHeader {
		return FindLiterals(Texts{Headers: one})
	}
	return FindLiterals(Texts{Env: one})
}

// Refusal says that the literal cannot stay and which command mends it for the
// connector with that id; "" where there is none yet.
func (l Literal) Refusal(id string) error { return l.refusal(id) }

func (l Literal) refusal(id string) *coded.Error {
	id = quotedID(id)
	name := Quote(l.Name)
	if l.Placeholder {
		return &coded.Error{
			Code:     "literal-placeholder",
			Sentence: fmt.Sprintf("%s is %s and not the credential itself", l.place(), l.Kind),
			Next:     fmt.Sprintf("%s; if it is meant as it stands: sallyport plugins not-secret %s %s", l.mend(id, name), id, name),
		}
	}
	return &coded.Error{
		Code:     "literal-secret",
		Sentence: fmt.Sprintf("%s looks like %s written out", l.place(), l.Kind),
		Next:     fmt.Sprintf("%s; if it is no secret: sallyport plugins not-secret %s %s", l.mend(id, name), id, name),
	}
}

func (l Literal) place() string {
	switch l.Where {
	case InHeader:
		return fmt.Sprintf("the header %q", l.Name)
	case InArgument:
		return "the argument " + l.Name
	case InAddress:
		return "a part of the address"
	}
	return fmt.Sprintf("the value of %q", l.Name)
}

// mend says how to get rid of it. What stands in an argument or an address cannot be
// referred to there: who reads it has to read it elsewhere.
func (l Literal) mend(id, name string) string {
	switch {
	case l.Where == InArgument:
		return "everybody can read a command line: hand it over in an environment variable"
	case l.Where == InAddress:
		return "an address is shown and kept in many places: hand it over in a header"
	case l.Placeholder:
		return fmt.Sprintf("keep the real one (sallyport secrets set %s), then refer to it: sallyport secrets move %s %s", l.Secret, id, name)
	}
	return fmt.Sprintf("move it to the keyring: sallyport secrets move %s %s", id, name)
}

// quotedID is an id in a command; ID where there is none yet.
func quotedID(id string) string {
	if id == "" {
		return "ID"
	}
	return Quote(id)
}

// SettingName names the operator's value of a plugin's setting: "userConfig.api_key".
func SettingName(key string) string { return settingPrefix + key }

const settingPrefix = "userConfig."

// SettingKey is the setting of such a name.
func SettingKey(name string) (key string, ok bool) { return strings.CutPrefix(name, settingPrefix) }

// SecretName proposes a name for the keyring for what stands under a name.
func SecretName(name string) string { return secretName(name, finding{}) }

var bare = regexp.MustCompile(`^[A-Za-z0-9_./@:+-]+$`)

// Quote writes a word as a shell takes it: names in a manifest are anybody's, and
// the commands that a refusal names are copied.
func Quote(word string) string {
	if bare.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
