package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
)

func (c *command) timesCommand() *cobra.Command {
	var question, idle string
	cmd := &cobra.Command{
		Use: "times", Short: "Show or choose how long questions wait and unused servers run", Args: exactly(),
		Long: `Show how long a question waits for your answer, and after how long a server that
nobody uses is stopped; the next call starts it again. With --question or --idle they are
changed: a length of time such as 30m or 8h, default, or, for --idle, never.

A question that is open keeps the time it was asked with.`,
		Example: "  sallyport times\n  sallyport times --question 1h --idle never\n  sallyport times --question default",
		RunE: func(cmd *cobra.Command, _ []string) error {
			change, err := timesChange(question, idle)
			if err != nil {
				return err
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var now api.Settings
				if change == nil {
					err = h.Get(cmd.Context(), "/v1/settings", nil, &now)
				} else {
					err = h.Post(cmd.Context(), "/v1/settings", api.SettingsChange{Times: change}, &now)
				}
				if err != nil {
					return err
				}
				return c.print(now.Defaults, func(w io.Writer) error { return printTimes(w, now.Defaults) })
			})
		},
	}
	cmd.Flags().StringVar(&question, "question", "", "how long a question waits: 1m to 24h, or default")
	cmd.Flags().StringVar(&idle, "idle", "", "after how long without use a server is stopped: 1m to 168h, never, or default")
	for _, name := range []string{"question", "idle"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{"default", "30m", "1h", "8h"}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	}
	return cmd
}

// timesChange is nil where nothing is to be changed.
func timesChange(question, idle string) (*api.TimesChange, error) {
	if question == "" && idle == "" {
		return nil, nil
	}
	var change api.TimesChange
	for _, one := range []struct {
		text string
		into **int
		zero string // the word for no end
	}{{question, &change.QuestionMinutes, ""}, {idle, &change.IdleMinutes, "never"}} {
		switch {
		case one.text == "":
			continue
		case one.text == "default":
			back := -1
			*one.into = &back
			continue
		case one.text == one.zero:
			*one.into = new(int)
			continue
		}
		length, err := time.ParseDuration(one.text)
		if err != nil || length < time.Minute || length%time.Minute != 0 {
			return nil, &coded.Error{Code: "time-invalid", Sentence: "a time is given in whole minutes, such as 30m or 8h", Next: "see: sallyport times --help"}
		}
		minutes := int(length / time.Minute)
		*one.into = &minutes
	}
	return &change, nil
}

func printTimes(w io.Writer, d api.Defaults) error {
	idle := "never stopped"
	if d.IdleSeconds > 0 {
		idle = "stopped after " + shortTime(d.IdleSeconds)
	}
	_, err := fmt.Fprintf(w, "a question waits %s for an answer\na server that nobody uses is %s\n", shortTime(d.QuestionSeconds), idle)
	return err
}

// shortTime is 1h30m for 5400 seconds.
func shortTime(seconds int) string {
	text := strings.TrimSuffix((time.Duration(seconds) * time.Second).String(), "0s")
	if whole, ok := strings.CutSuffix(text, "h0m"); ok {
		return whole + "h"
	}
	return text
}
