package env

import (
	"fmt"
	"regexp"
	"strings"

	"sallyport/internal/coded"
)

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
