package host

import (
	"context"

	"sallyport/runtime/approvals"
	"sallyport/runtime/install"
	"sallyport/runtime/mcp/gateway"
)

// BackendOf is the host as its gateway sees it.
func BackendOf(h *Host) gateway.Backend { return (*backend)(h) }

// InstallWith is Install of a bundle that the operator had written something about.
func InstallWith(h *Host, source install.Source, env map[string]string, inherit []string, by approvals.By) Installation {
	return h.stage(by, carried{env, inherit}, func(ctx context.Context, progress func(install.Step)) (*install.Staged, error) {
		return h.Installer.Stage(ctx, source, progress)
	})
}
