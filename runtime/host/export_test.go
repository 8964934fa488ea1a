package host

import "sallyport/runtime/mcp/gateway"

// BackendOf is the host as its gateway sees it.
func BackendOf(h *Host) gateway.Backend { return (*backend)(h) }
