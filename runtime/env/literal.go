package env

import (
	"fmt"
	"regexp"
	"strings"

	"sallyport/internal/coded"
)

// credentialName is what the name of a credential ends in, once it is upper
// case with '_' between words. TOKEN_FILE or MAX_TOKENS are not among them.
var credentialName = regexp.MustCompile(`(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|API_KEY|PRIVATE_KEY|SECRET_KEY|ACCESS_KEY|AUTH_KEY|CREDENTIALS?|AUTHORIZATION|COOKIE)$`)

// credentialShape is how well-known credentials look, wherever they stand.
var credentialShape = regexp.MustCompile(strings.Join([]string{
	`\bsk-[A-Za-z0-9_-]{16,}`,
	`\bgh[pousr]_[A-Za-z0-9]{20,}`,
	`\bgithub_pat_[A-Za-z0-9_]{20,}`,
	`\bglpat-[A-Za-z0-9_-]{16,}`,
	`\bxox[abeprs]-[A-Za-z0-9-]{10,}`,
	`\b(AKIA|ASIA)[A-Z0-9]{16}\b`,
	`\bAIza[A-Za-z0-9_-]{35}`,
	`\bnpm_[A-Za-z0-9]{30,}`,
	`\bhf_[A-Za-z0-9]{30,}`,
	`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`,
	`-----BEGIN [A-Z ]*PRIVATE KEY-----`,
	`[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@`,
}, "|"))

// CheckLiteral refuses a literal that looks like a credential, by its name or
// by its shape, with literal-secret (spec/child-environment.md 5). The name may
// be a variable's or a header's. The value is not in the error.
func CheckLiteral(name, value string) error {
	words := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if credentialName.MatchString(words) && !harmless(value) {
		return literalSecret(name)
	}
	return checkShape(name, value)
}

// harmless values say that there is no credential rather than being one.
func harmless(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "true", "false", "0", "1", "none", "null":
		return true
	}
	return false
}

func checkShape(name, value string) error {
	if credentialShape.MatchString(value) {
		return literalSecret(name)
	}
	return nil
}

// checkDeclared judges by name only what is a literal from end to end.
func checkDeclared(d Declared, value template) error {
	if len(value) > 1 || value.references() != "" {
		return checkShape(d.Name, value.literal())
	}
	return CheckLiteral(d.Name, value.literal())
}

func literalSecret(name string) error {
	return &coded.Error{
		Code:     "literal-secret",
		Sentence: fmt.Sprintf("the value of %q looks like a credential written out", name),
		Next:     "move it to the keyring and refer to it as secret:NAME",
	}
}

var secretReference = regexp.MustCompile(`^secret:\S|=secret:\S|\$\{secret:`)

// CheckNoSecret refuses a secret: reference in a field where none expands: the
// command, an argument, the working directory, an address. field says which, in
// words ("argument 2"). The code is secret-in-args.
func CheckNoSecret(field, text string) error {
	if !secretReference.MatchString(text) {
		return nil
	}
	return secretInArgs(field)
}

func secretInArgs(field string) error {
	return &coded.Error{
		Code:     "secret-in-args",
		Sentence: fmt.Sprintf("the %s refers to a secret, which every program on the computer could read there", field),
		Next:     "hand the secret over in an environment variable or a header",
	}
}

// CheckArguments refuses secrets and NUL in what stands on a command line.
func CheckArguments(command string, args []string, dir string) error {
	if err := checkArgument("command", command); err != nil {
		return err
	}
	for i, arg := range args {
		if err := checkArgument(fmt.Sprintf("argument %d", i+1), arg); err != nil {
			return err
		}
	}
	return checkArgument("working directory", dir)
}

func checkArgument(field, text string) error {
	if strings.ContainsRune(text, 0) {
		return coded.New("argument-nul", fmt.Sprintf("the %s holds a NUL character", field))
	}
	return CheckNoSecret(field, text)
}
