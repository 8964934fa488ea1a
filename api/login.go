package api

import (
	"context"
	"net/http"
	"time"

	"sallyport/runtime/host"
)

// BeginLogin says how the person is reached.
type BeginLogin struct {
	// NoBrowser leaves opening the address to whoever asks.
	NoBrowser bool `json:"noBrowser,omitempty"`
}

// Login is one attempt to sign in to a connector that is dialled. No token is ever in
// it.
type Login struct {
	Connector string `json:"connector"`
	State     string `json:"state"` // "waiting", "done" or "failed"
	// Address is what a browser has to open, while it waits. It is of this attempt only.
	Address   string    `json:"address,omitempty"`
	Opened    bool      `json:"opened"` // Sallyport has opened a browser
	ExpiresAt time.Time `json:"expiresAt"`
	// Code, Sentence and Next say why it failed or, where it is done, why the connector
	// did not come up after it.
	Code     string `json:"code,omitempty"`
	Sentence string `json:"sentence,omitempty"`
	Next     string `json:"next,omitempty"`
	// Decision is the question that follows a first sign-in: which tools may be used.
	Decision string `json:"decision,omitempty"`
}

// Logout says how many sign-ins were forgotten.
type Logout struct {
	Forgotten int `json:"forgotten"`
}

var loginRoutes = []Route{{
	Method: http.MethodPost, Path: connectorPath + "/login", Access: Operator,
	Summary: "Begins to sign in to a connector: opens the browser, or answers with the address to open.",
	Body:    BeginLogin{}, Answer: Login{}, Serve: (*Server).beginLogin,
}, {
	Method: http.MethodGet, Path: connectorPath + "/login", Access: Operator,
	Summary: "The last attempt to sign in; ?wait=30s waits until it is over.", Query: []string{"wait"},
	Answer: Login{}, Serve: (*Server).showLogin,
}, {
	Method: http.MethodDelete, Path: connectorPath + "/login", Access: Operator,
	Summary: "Cancels an attempt that waits.", Answer: Done{}, Serve: (*Server).cancelLogin,
}, {
	Method: http.MethodPost, Path: connectorPath + "/logout", Access: Operator,
	Summary: "Forgets the tokens of a connector and stops it.", Answer: Logout{}, Serve: (*Server).logout,
}}

func (s *Server) beginLogin(c Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	var asked BeginLogin
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	state, err := s.host.BeginLogin(r.Context(), id, !asked.NoBrowser, s.by(c))
	if err != nil {
		return nil, err
	}
	return loginOf(state), nil
}

func (s *Server) showLogin(_ Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	wait, err := pollTime(r.FormValue("wait"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	state, err := s.host.LoginState(ctx, id)
	if err != nil {
		return nil, err
	}
	return loginOf(state), nil
}

func (s *Server) cancelLogin(_ Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	if err := s.host.CancelLogin(r.Context(), id); err != nil {
		return nil, err
	}
	return Done{OK: true}, nil
}

func (s *Server) logout(c Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	n, err := s.host.Logout(r.Context(), id, s.by(c))
	if err != nil {
		return nil, err
	}
	return Logout{Forgotten: n}, nil
}

func loginOf(l host.Login) Login {
	return Login{Connector: l.Connector, State: l.State, Address: l.Address, Opened: l.Opened, ExpiresAt: l.ExpiresAt,
		Code: l.Code, Sentence: l.Sentence, Next: l.Next, Decision: l.Decision}
}
