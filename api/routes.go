package api

import "net/http"

// Route is one line of the contract.
type Route struct {
	Method string
	Path   string // as http.ServeMux takes it
	Access Access
	// Summary is what the route does, in one line, for the OpenAPI document.
	Summary string
	// Query names the query parameters it reads.
	Query []string
	// Body and Answer are zero values of the types that go in and come out.
	Body, Answer any
	// Media names the content types of a Stream besides JSON, Upgrade what its
	// connection becomes, and Also further statuses with an answer.
	Media   []string
	Upgrade string
	Also    []int
	// Serve answers with JSON; Stream answers by itself. One of the two is set.
	Serve  func(s *Server, c Caller, r *http.Request) (any, error)
	Stream func(s *Server, c Caller, w http.ResponseWriter, r *http.Request)
}

// Routes returns the whole contract. A connector's own addresses are below
// /v1/plugins/PLUGIN/SERVER, as its ID is PLUGIN/SERVER.
func Routes() []Route {
	var all []Route
	for _, resource := range [][]Route{
		healthRoutes, statusRoutes, pluginRoutes, installationRoutes, handRoutes, decisionRoutes, policyRoutes, clientRoutes,
		loginRoutes, runningRoutes,
		auditRoutes, sessionRoutes, secretRoutes, configRoutes, sealKeyRoutes, keyringRoutes, settingsRoutes, eventRoutes, mcpRoutes,
		importRoutes, connectRoutes, consoleRoutes, autostartRoutes, updateRoutes, diagnosticsRoutes,
	} {
		all = append(all, resource...)
	}
	return all
}
