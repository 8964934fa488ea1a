package plugins

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/coded"
)

// secretPrefix begins a value that the keyring holds.
const secretPrefix = "secret:"

// number is how numbers are written; NaN, infinities and hexadecimal are none.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// Fits says why the operator's values cannot be those of the setting, "" when they
// can. The values are not in the sentence.
func (s Setting) Fits(values []string) string {
	if sentence := s.fits(values); sentence != "" {
		return sentence
	}
	for _, value := range values {
		switch {
		case value == "" || strings.HasPrefix(value, secretPrefix):
		case (s.Type == "directory" || s.Type == "file") && !filepath.IsAbs(value):
			return "the setting " + show(s.Key) + " is a whole path, from the root on"
		}
	}
	return ""
}

// fits is Fits for a default, too, in which placeholders may stand.
func (s Setting) fits(values []string) string {
	if len(values) > 1 && !s.Multiple {
		return "the setting " + show(s.Key) + " has one value"
	}
	for _, value := range values {
		if value == "" || strings.HasPrefix(value, secretPrefix) {
			continue // blank is no value; what the keyring holds is not known here
		}
		switch {
		case strings.ContainsRune(value, 0):
			return "the setting " + show(s.Key) + " holds a NUL character"
		case s.Type == "number":
			if sentence := s.fitsNumber(value); sentence != "" {
				return sentence
			}
		case s.Type == "boolean" && value != "true" && value != "false":
			return "the setting " + show(s.Key) + " is true or false"
		}
	}
	return ""
}

func (s Setting) fitsNumber(value string) string {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !number.MatchString(value) {
		return "the setting " + show(s.Key) + " is a number"
	}
	if least, err := strconv.ParseFloat(s.Min, 64); err == nil && n < least {
		return fmt.Sprintf("the setting %s is at least %s", show(s.Key), s.Min)
	}
	if most, err := strconv.ParseFloat(s.Max, 64); err == nil && n > most {
		return fmt.Sprintf("the setting %s is at most %s", show(s.Key), s.Max)
	}
	return ""
}

// Missing reports whether the setting is required and has neither a value nor a
// default. Blank is no value.
func (s Setting) Missing() bool {
	values := s.Value
	if values == nil {
		values = s.Default
	}
	return s.Required && !slices.ContainsFunc(values, func(value string) bool { return value != "" })
}

// settled makes a connector invalid that cannot start for want of a setting: its
// question could not show what would run.
func (c Connector) settled() Connector {
	var keys, commands []string
	for _, s := range c.Settings {
		if !s.Missing() {
			continue
		}
		keys = append(keys, show(s.Key))
		if s.Sensitive {
			commands = append(commands, "--secret "+s.Key)
		} else {
			commands = append(commands, s.Key+"=VALUE")
		}
	}
	if len(keys) > 0 && c.Invalid == nil {
		c.Invalid = &coded.Error{Code: "user-config-missing",
			Sentence: "it needs " + plural(len(keys), "a value for ", "values for ") + strings.Join(keys, ", "),
			Next:     "give it: sallyport config " + c.ID.String() + " " + strings.Join(commands, " ")}
	}
	return c
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
