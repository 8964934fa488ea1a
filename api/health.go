package api

import (
	"net/http"

	"sallyport/runtime/health"
)

var healthRoutes = []Route{{
	Method: http.MethodGet, Path: health.DesktopPath, Access: Anyone,
	Summary: "Whether this installation is healthy, for scripts; ?nonce= asks for a proof. HEAD works.",
	Query:   []string{"nonce"}, Answer: health.Reply{}, Also: []int{http.StatusServiceUnavailable},
	Stream: func(s *Server, _ Caller, w http.ResponseWriter, r *http.Request) { s.health.ServeHTTP(w, r) },
}}
