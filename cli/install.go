package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// bundleAnswer is how a question about a bundle is answered.
type bundleAnswer struct {
	yes    bool
	digest string // what an installer expects
}

func (b *bundleAnswer) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&b.yes, "yes", false, "answer yes, without being asked")
	cmd.Flags().StringVar(&b.digest, "expect-digest", "", "refuse anything but the tree with this `DIGEST` (a1:…)")
}

func (c *command) installCommand() *cobra.Command {
	var how bundleAnswer
	cmd := &cobra.Command{
		Use: "install SOURCE", Short: "Install a plugin from a folder, an archive, npm or git", Args: exactly("a source"),
		Long: `Copy a plugin from a source, look at it, and put it among the installed plugins.
Nothing of it runs: whether it may is asked by sallyport approve.

A source is one of
  FOLDER                    a plugin's folder
  FILE                      a .mcpb, .dxt, .zip, .tar.gz or .tgz file
  npm:NAME@VERSION          an npm package with what it needs, install scripts off
  FOLDER#COMMIT             one commit of a git repository on this computer
  git+file:///PATH#COMMIT   the same

What was looked at is what is installed: the copy is digested before you are asked
and again after you answered. For scripts: --yes, best with --expect-digest.`,
		Example: "  sallyport install ~/Downloads/notes.mcpb\n  sallyport install npm:@modelcontextprotocol/server-everything@2026.1.14\n  sallyport install ./notes --yes --expect-digest a1:9f3c…",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				return c.install(cmd.Context(), h, "/v1/installations", api.NewInstallation{Source: absoluteSource(args[0])}, how)
			})
		},
	}
	how.flags(cmd)
	return cmd
}

func (c *command) updateCommand() *cobra.Command {
	var how bundleAnswer
	var version string
	cmd := &cobra.Command{
		Use: "update NAME [SOURCE]", Short: "Put the next version of an installed plugin in place", Args: upTo(1, "a plugin's name"),
		ValidArgsFunction: c.completePlugin,
		Long: `Copy the next version of an installed plugin, show what changed, and put it in the
old one's place. Without SOURCE it is taken from where the installed one came from;
for an npm package name the version with --to. What it has stored is kept, and what
was approved has to be approved again. sallyport undo puts the old one back.`,
		Example: "  sallyport update notes ~/Downloads/notes-2.mcpb\n  sallyport update everything --to 2026.2.1",
		RunE: func(cmd *cobra.Command, args []string) error {
			asked := api.Update{Version: version}
			if len(args) > 1 {
				asked.Source = absoluteSource(args[1])
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				return c.install(cmd.Context(), h, pluginPath(args[0], "/update"), asked, how)
			})
		},
	}
	how.flags(cmd)
	cmd.Flags().StringVar(&version, "to", "", "the `VERSION` of the npm package")
	return cmd
}

func (c *command) vendorCommand() *cobra.Command {
	var how bundleAnswer
	var version string
	cmd := &cobra.Command{
		Use: "vendor ID", Short: "Fix the code of a connector that downloads it at every start", Args: exactly("an ID"), ValidArgsFunction: c.completeID,
		Long: `Make an installed plugin of a connector that starts an npm package by npx and its
kind: the package and everything that it needs are fetched once, install scripts off,
checked against their lock file, and become a bundle with a digest. What runs is then
exactly what you approved. Your references to secrets and variables go with it; the
old connector stays until you remove it.`,
		Example: "  sallyport vendor connectors/everything\n  sallyport vendor connectors/everything --version 2026.1.14",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				err := c.install(cmd.Context(), h, pathOf(one, "/vendor"), api.Vendoring{Version: version}, how)
				if err == nil && one.Plugin == plugins.ByHand {
					c.say("%s is still there; to have only the bundle: sallyport connectors remove %s", shown(one.ID), typed(one.Server))
				}
				return err
			})
		},
	}
	how.flags(cmd)
	cmd.Flags().StringVar(&version, "version", "", "the `VERSION` of the package instead of the one that the command line means")
	return cmd
}

func (c *command) uninstallCommand() *cobra.Command {
	var purge bool
	cmd := c.bundleCommand("uninstall", "Remove an installed plugin; its approvals end",
		`Remove a plugin that Sallyport installed. Its servers stop and its approvals end
first. What it has stored stays, for when it is installed again, unless --purge.`,
		func(name string) (string, any) { return pluginPath(name, "/uninstall"), api.Uninstall{Purge: purge} })
	cmd.Flags().BoolVar(&purge, "purge", false, "remove what it has stored, too")
	return cmd
}

func (c *command) undoCommand() *cobra.Command {
	return c.bundleCommand("undo", "Put the version before an update back",
		`Put the version of a plugin that the last update replaced back in its place. What
was approved of it then, and not approved anew since, holds again.`,
		func(name string) (string, any) { return pluginPath(name, "/undo"), nil })
}

// bundleCommand is a command that asks about an installed plugin at once.
func (c *command) bundleCommand(name, short, long string, request func(plugin string) (path string, body any)) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: name + " NAME", Short: short, Long: long, Args: exactly("a plugin's name"), ValidArgsFunction: c.completePlugin,
		Example: "  sallyport " + name + " notes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var d api.Decision
				path, body := request(args[0])
				if err := h.Post(cmd.Context(), path, body, &d); err != nil {
					return err
				}
				return c.answerBundle(cmd.Context(), h, d, bundleAnswer{yes: yes})
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "answer yes, without being asked")
	return cmd
}

func pluginPath(name, rest string) string { return "/v1/plugins/" + url.PathEscape(name) + rest }

// absoluteSource makes a path absolute, as the sidecar has a folder of its own.
func absoluteSource(source string) string {
	if strings.HasPrefix(source, "npm:") || strings.Contains(source, "://") {
		return source
	}
	if absolute, err := filepath.Abs(source); err == nil {
		return absolute
	}
	return source
}

// install stages, tells how far it is, and asks.
func (c *command) install(ctx context.Context, h *client.Client, path string, body any, how bundleAnswer) error {
	var begun api.Installation
	if err := h.Post(ctx, path, body, &begun); err != nil {
		return err
	}
	asked, err := c.follow(ctx, h, begun)
	if err != nil {
		return err
	}
	var d api.DecisionDetail
	if err := h.Get(ctx, "/v1/decisions/"+url.PathEscape(asked.Decision), nil, &d); err != nil {
		return err
	}
	for _, w := range asked.Warnings {
		c.say("note: %s %s [%s]", shown(w.Path), shown(w.Other), w.Code)
	}
	return c.answerBundle(ctx, h, d.Decision, how)
}

// follow waits until a bundle is staged. Whoever stops waiting, by Ctrl-C too, ends it.
func (c *command) follow(ctx context.Context, h *client.Client, now api.Installation) (api.Installation, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	begun, path := time.Now(), "/v1/installations/"+url.PathEscape(now.ID)
	progress := c.progress()
	defer progress.end()
	for now.State == "staging" {
		query := url.Values{"wait": {"10s"}, "after": {strconv.Itoa(now.Revision)}}
		if err := h.Get(ctx, path, query, &now); err != nil {
			if ctx.Err() != nil {
				_ = h.Post(context.WithoutCancel(ctx), path+"/cancel", nil, &now)
				err = errCancelled()
			}
			return now, err
		}
		if now.Doing != "" && time.Since(begun) > 500*time.Millisecond {
			progress.tell(fmt.Sprintf("%s … %s, %s", now.Doing, count(now.Entries, "file", "files"), size(now.Bytes)))
		}
	}
	switch {
	case now.Error != nil:
		return now, &coded.Error{Code: now.Error.Code, Sentence: now.Error.Message, Next: now.Error.Details.Next, Path: now.Error.Details.Path}
	case now.State != "asked":
		return now, errCancelled()
	}
	return now, nil
}

func errCancelled() error { return coded.New("cancelled", "it was cancelled; nothing of it is kept") }

// answerBundle shows a question about a bundle and answers it.
func (c *command) answerBundle(ctx context.Context, h *client.Client, d api.Decision, how bundleAnswer) error {
	if how.digest != "" && how.digest != d.Digest {
		_, err := c.answer(ctx, h, d.ID, api.Answer{Answer: "deny"}, toolChoice{})
		if err != nil {
			return err
		}
		return &coded.Error{Code: "digest-unexpected", Sentence: "the tree has the digest " + d.Digest + ", which is not the expected one; nothing was installed",
			Next: "get the plugin from its maker again, or compare with: sallyport digest DIR"}
	}
	if !how.yes {
		allowed, err := c.askBundle(ctx, h, d)
		if err != nil {
			return err
		}
		if !allowed {
			if _, err := c.answer(ctx, h, d.ID, api.Answer{Answer: "deny"}, toolChoice{}); err != nil {
				return err
			}
			return &coded.Error{Code: "denied", Sentence: "the answer is no; nothing was changed"}
		}
	}
	done, err := c.answer(ctx, h, d.ID, api.Answer{Answer: "allow"}, toolChoice{})
	if err != nil {
		return err
	}
	return c.print(done, func(w io.Writer) error { return printBundleDone(w, done) })
}

func (c *command) askBundle(_ context.Context, _ *client.Client, d api.Decision) (bool, error) {
	asker := c.asker()
	if asker == nil {
		return false, &coded.Error{Code: "answer-needed", Sentence: "nobody is there to answer, so nothing was changed",
			Next: "run this in a terminal, add --yes, or answer it: sallyport decisions answer " + d.ID + " allow"}
	}
	p := &page{w: c.Err}
	printBundle(p, d)
	if p.err != nil {
		return false, p.err
	}
	return askYes(c.Err, asker, "\nGo ahead? No is the default. [y/N] ")
}

// printBundle writes what there is to see about a bundle, the sentence first.
func printBundle(p *page, d api.Decision) {
	b := d.Bundle
	p.line("\n%s", b.Sentence)
	printFacts(p, b.Facts)
	p.line("")
	p.field("plugin", shown(b.Plugin)+" "+shown(b.Version))
	p.field("format", b.Format)
	p.field("from", shown(b.Source))
	p.field("signed by", signer(b.Publisher))
	p.field("servers", shown(strings.Join(b.Servers, ", ")))
	for _, name := range slices.Sorted(maps.Keys(b.Env)) {
		p.field("gets", shown(name+" from "+b.Env[name]))
	}
	if b.Files > 0 {
		p.field("files", count(b.Files, "file", "files")+", "+size(b.Bytes))
	}
	if b.Replaces != nil {
		p.field("replaces", shown(b.Replaces.Version)+" "+b.Replaces.Digest)
	}
	p.field("digest", b.Digest)
}

func printBundleDone(w io.Writer, d api.Decision) error {
	p := &page{w: w}
	name := shown(d.Bundle.Plugin)
	switch d.Action {
	case "uninstall":
		p.line("%s is removed; its approvals have ended", name)
	case "undo":
		p.line("%s is %s again", name, shown(d.Version))
	default:
		p.line("%s %s is installed; nothing of it runs yet", name, shown(d.Version))
		p.line("digest %s", d.Digest)
		if len(d.Bundle.Servers) > 0 {
			p.line("next: sallyport approve %s", shown(d.Bundle.Plugin+"/"+d.Bundle.Servers[0]))
		}
	}
	return p.err
}

// size is a number of bytes as people say it.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return count(int(n), "byte", "bytes")
	}
	value, exponent := float64(n)/unit, 0
	for value >= unit && exponent < 3 {
		value /= unit
		exponent++
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + string("KMGT"[exponent]) + "iB"
}
