package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// exactly is cobra.ExactArgs with a sentence that names what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage("%s needs %s; see sallyport %s --help", cmd.Name(), strings.Join(names[len(args):], " and "), commandWords(cmd))
		case len(args) > len(names):
			return usage("%s takes no %q; see sallyport %s --help", cmd.Name(), args[len(names)], commandWords(cmd))
		}
		return nil
	}
}

// upTo is exactly with that many more arguments allowed.
func upTo(more int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) && len(args) <= len(names)+more {
			args = args[:len(names)]
		}
		return exactly(names...)(cmd, args)
	}
}

// commandWords is the command as typed, without the program's name.
func commandWords(cmd *cobra.Command) string {
	_, words, _ := strings.Cut(cmd.CommandPath(), " ")
	return words
}

// isUsage reports whether cobra itself refused the command line: it has no type
// for that.
func isUsage(err error) bool {
	text := err.Error()
	for _, prefix := range []string{"unknown command", "unknown flag", "unknown shorthand", "invalid argument",
		"required flag", "flag needs an argument", "if any flags in the group", "accepts "} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// flagError says which flag is wrong, without what the parser says to programmers.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	for _, inside := range []string{": strconv.", ": time: "} {
		text, _, _ = strings.Cut(text, inside)
	}
	return usage("%s; see sallyport %s", text, strings.TrimSpace(commandWords(cmd)+" --help"))
}

// mistyped is cobra's own refusal of a command in one line, with what may have been
// meant.
func mistyped(err error) error {
	text, meant, _ := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	text = strings.TrimSuffix(text, ` for "sallyport"`)
	return fmt.Errorf("%s%s; see sallyport --help", text, perhaps(strings.Fields(meant)))
}

func perhaps(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(words, " or ") + "?)"
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: onlyHolds,
		Example: "  sallyport " + use + " " + commands[0].Name()}
	cmd.AddCommand(commands...)
	return cmd
}

// onlyHolds is what a command does that only holds others.
func onlyHolds(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		cmd.SuggestionsMinimumDistance = 2 // as cobra has it for the first word
		return usage("%s has no command %q%s; see sallyport %s --help", cmd.Name(), args[0], perhaps(cmd.SuggestionsFor(args[0])), commandWords(cmd))
	}
	return cmd.Help()
}
