package cli

import (
	"io"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/loginitem"
)

func (c *command) autostartCommand() *cobra.Command {
	return group("autostart", "Start Sallyport when you log in to this computer",
		c.autostart("status", "Say whether Sallyport starts when you log in", nil),
		c.autostart("on", "Start Sallyport when you log in", new(true)),
		c.autostart("off", "Start Sallyport at login no longer", new(false)))
}

const autostartLong = `Sallyport starts when you log in only if you turn that on. It is then one entry where your
system looks: a LaunchAgent on macOS, an entry in the folder autostart on Linux, a value of
the registry on Windows. What stands there and is not Sallyport's is never touched. It is
this very program that is started, so turn it on in the installed one.

On Linux without a desktop: systemctl --user enable --now sallyport, where the package has
brought its unit.`

func (c *command) autostart(name, short string, on *bool) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: exactly(), Long: autostartLong, Example: "  sallyport autostart " + name,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) (err error) {
				var now api.Autostart
				if on == nil {
					err = h.Get(cmd.Context(), "/v1/autostart", nil, &now)
				} else {
					err = h.Post(cmd.Context(), "/v1/autostart", api.AutostartChange{On: on}, &now)
				}
				if err != nil {
					return err
				}
				return c.print(now, func(w io.Writer) error { return printAutostart(w, now) })
			})
		},
	}
}

func printAutostart(w io.Writer, a api.Autostart) error {
	p := &page{w: w}
	p.line("%s", map[loginitem.State]string{
		loginitem.Off: "off: Sallyport does not start when you log in", loginitem.On: "on: Sallyport starts when you log in",
		loginitem.Other:   "another program, or another installation, starts when you log in",
		loginitem.Broken:  "broken: the program that should start when you log in is gone",
		loginitem.Paused:  "paused: it was turned off in the settings of this system",
		loginitem.Foreign: "what stands in its place was not written by Sallyport",
	}[a.State])
	p.field("starts", shown(a.Program))
	p.field("by", a.How)
	if a.State != loginitem.Off {
		p.field("where", shown(a.Where))
	}
	p.field("also by", a.Unit)
	switch a.State {
	case loginitem.Other, loginitem.Broken, loginitem.Paused:
		p.line("next: sallyport autostart on, to start this program; or sallyport autostart off")
	case loginitem.Foreign:
		p.line("next: look at it, and move it away")
	}
	return p.err
}
