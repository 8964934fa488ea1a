package cli

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// find reads ID: PLUGIN/SERVER, or a name alone: of a plugin that has one server, or
// of a connector in connectors.json.
func find(ctx context.Context, h *client.Client, id string) (api.Connector, error) {
	var list api.PluginList
	if err := h.Get(ctx, "/v1/plugins", nil, &list); err != nil {
		return api.Connector{}, err
	}
	var found []api.Connector
	for _, c := range list.Connectors {
		if c.ID == id {
			return c, nil
		}
		if c.Server != "" && (c.Plugin == id || c.Plugin == plugins.ByHand && c.Server == id) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return api.Connector{}, &coded.Error{Code: "plugin-unknown", Sentence: "there is no plugin " + quote(id),
			Next: "see what there is: sallyport plugins list"}
	}
	var ids []string
	for _, one := range found {
		ids = append(ids, typed(one.ID))
	}
	return api.Connector{}, &coded.Error{Code: "plugin-ambiguous", Sentence: id + " stands for more than one server",
		Next: "name one: " + strings.Join(ids, ", ")}
}

// pathOf is a connector's address in the API.
func pathOf(c api.Connector, rest string) string {
	return "/v1/plugins/" + url.PathEscape(c.Plugin) + "/" + url.PathEscape(c.Server) + rest
}

// withConnector finds the connector that a command names and goes on with it.
func (c *command) withConnector(ctx context.Context, id string, do func(*client.Client, api.Connector) error) error {
	return c.withHost(ctx, func(h *client.Client) error {
		found, err := find(ctx, h, id)
		if err != nil {
			return err
		}
		if found.Server == "" {
			return &coded.Error{Code: found.Reason, Sentence: found.Sentence, Next: found.Next}
		}
		return do(h, found)
	})
}

// completeID offers the connectors' ids to the shell.
func (c *command) completeID(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, args, begun, func(one api.Connector) string { return one.ID })
}

// completePlugin offers the plugins' names to the shell.
func (c *command) completePlugin(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, args, begun, func(one api.Connector) string { return one.Plugin })
}

func (c *command) complete(cmd *cobra.Command, args []string, begun string, name func(api.Connector) string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	var ids []string
	err := c.withHost(ctx, func(h *client.Client) error {
		var list api.PluginList
		if err := h.Get(ctx, "/v1/plugins", nil, &list); err != nil {
			return err
		}
		for _, one := range list.Connectors {
			if strings.HasPrefix(name(one), begun) && !slices.Contains(ids, name(one)+"\t"+one.State) {
				ids = append(ids, name(one)+"\t"+one.State)
			}
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
