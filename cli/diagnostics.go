package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"sallyport/api/client"
	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/runtime/host"
)

func (c *command) diagnosticsCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "diagnostics", Short: "Print what somebody who helps you needs to know, without secrets", Args: exactly(),
		Long: `Print what somebody who helps you needs to know, as JSON: versions, codes of health
items, states, names and digests of connectors, whether the audit verifies, and the last
lines of the log without paths. No secret, no path of yours, no argument and no answer of a
tool is in it. Read it before you send it: the names of your connectors are in it.`,
		Example: "  sallyport diagnostics --output diagnostics.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var d host.Diagnostics
				if err := h.Get(cmd.Context(), "/v1/diagnostics", nil, &d); err != nil {
					return err
				}
				if output == "" {
					return c.printJSON(d)
				}
				if err := writeDiagnostics(output, d); err != nil {
					return err
				}
				return c.print(map[string]string{"where": output}, func(w io.Writer) error {
					p := &page{w: w}
					p.line("written to %s; read it before you send it to somebody", shown(output))
					return p.err
				})
			})
		},
	}
	cmd.Flags().StringVar(&output, "output", "", "write a new `FILE` instead of printing")
	return cmd
}

func writeDiagnostics(path string, d host.Diagnostics) error {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return err
	}
	err := atomicfile.WriteNew(path, raw.Bytes(), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &coded.Error{Code: "file-exists", Sentence: "there is a file of that name, and it is not overwritten", Next: "name another one", Err: err}
	}
	return err
}
