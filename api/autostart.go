package api

import (
	"net/http"

	"sallyport/internal/coded"
	"sallyport/internal/loginitem"
)

// Autostart says whether Sallyport is started when its user logs in. Paths are as people
// write them.
type Autostart struct {
	// State is "off" or "on"; "other" (it starts another program), "broken" (the program is
	// gone), "paused" (the system's settings turned it off) or "foreign" (not ours).
	State   loginitem.State `json:"state"`
	How     string          `json:"how"`     // "LaunchAgent", "XDG autostart", "registry"
	Where   string          `json:"where"`   // the place that the system reads
	Program string          `json:"program"` // that is started; "" for none
	Unit    string          `json:"unit"`    // a systemd user unit that starts it as well; "" for none
}

// AutostartChange turns it on or off.
type AutostartChange struct {
	On *bool `json:"on"`
}

var autostartRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/autostart", Access: Operator,
	Summary: "Whether Sallyport starts when its user logs in.", Answer: Autostart{}, Serve: (*Server).showAutostart,
}, {
	Method: http.MethodPost, Path: "/v1/autostart", Access: Operator,
	Summary: "Has this program started at login, or no longer.", Body: AutostartChange{}, Answer: Autostart{}, Serve: (*Server).changeAutostart,
}}

func (s *Server) showAutostart(Caller, *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	status, err := s.host.Autostart()
	return Autostart(status), err
}

func (s *Server) changeAutostart(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var change AutostartChange
	if err := read(r, &change); err != nil {
		return nil, err
	}
	if change.On == nil {
		return nil, coded.New("bad-request", "on is missing")
	}
	if err := s.host.SetAutostart(r.Context(), *change.On, s.by(c)); err != nil {
		return nil, err
	}
	status, err := s.host.Autostart()
	return Autostart(status), err
}
