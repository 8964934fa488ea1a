package host

import (
	"context"
	"net/url"
	"runtime"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/mcp"
	"sallyport/runtime/permissions"
	"sallyport/runtime/updates"
)

// UpdatesFrom is the machine that is asked about updates, "" where this build knows none.
func (h *Host) UpdatesFrom() string {
	source, err := h.updateSource()
	if err != nil {
		return ""
	}
	return source.Host()
}

func (h *Host) updateSource() (updates.Source, error) {
	if h.config.Updates.URL != "" {
		return h.config.Updates, nil
	}
	return updates.Compiled()
}

// CheckUpdates asks once whether there is a newer Sallyport: at the address that this
// build knows, or at one that the operator names with the key that signs there. Nothing is
// downloaded. Only public addresses are dialled, but for a machine that was named.
func (h *Host) CheckUpdates(ctx context.Context, address, key string) (updates.Result, error) {
	source, err := h.updateSource()
	var named permissions.Set
	switch {
	case address != "" && key != "":
		if source, err = updates.NewSource(address, strings.Split(key, ",")...); err == nil {
			named.Net = []string{hostAndPort(source.URL)}
		}
	case address != "" || key != "":
		err = &coded.Error{Code: "updates-source-incomplete", Sentence: "a manifest and the key that signs it are named together", Next: "sallyport updates check --manifest URL --key KEY"}
	}
	if err != nil {
		return updates.Result{}, err
	}
	client, err := mcp.CheckedClient(source.URL, named, h.config.Network)
	if err != nil {
		return updates.Result{}, err
	}
	return updates.Checker{Client: client, Now: h.now, Version: h.Version, OS: runtime.GOOS, Arch: runtime.GOARCH}.Check(ctx, source)
}

func hostAndPort(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Port() != "" {
		return u.Host
	}
	return u.Host + ":443"
}
