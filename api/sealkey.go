package api

import (
	"net/http"

	"sallyport/runtime/approvals"
)

// SealKey says where the key is that seals the approvals.
type SealKey struct {
	In approvals.KeyPlace `json:"in"` // "keyring", "file", or "" before there is one
	// Waiting is true while the keyring is asked for it: no approval counts before.
	Waiting bool   `json:"waiting"`
	Says    string `json:"says,omitempty"`
	Next    string `json:"next,omitempty"`
}

// MoveSealKey names the place that the seal key moves to.
type MoveSealKey struct {
	To approvals.KeyPlace `json:"to"`
}

var sealKeyRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/seal-key", Access: Watcher,
	Summary: "Where the key is that seals the approvals. Never the key.", Answer: SealKey{}, Serve: (*Server).showSealKey,
}, {
	Method: http.MethodPost, Path: "/v1/seal-key/move", Access: Operator,
	Summary: "Moves the key into the keyring or into a file. Approvals stay as they are.",
	Body:    MoveSealKey{}, Answer: SealKey{}, Serve: (*Server).moveSealKey,
}, {
	Method: http.MethodPost, Path: "/v1/seal-key/accept-loss", Access: Operator,
	Summary: "Gives up a key that the keyring does not give: a new one is made and every connector has to be approved again.",
	Answer:  SealKey{}, Serve: (*Server).acceptKeyLoss,
}}

func (s *Server) showSealKey(Caller, *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	return s.sealKey(), nil
}

func (s *Server) sealKey() SealKey {
	key := SealKey{In: s.host.Gate.KeyPlace()}
	if why := s.host.Gate.Waiting(); why != nil {
		key.Waiting, key.Says, key.Next = true, why.Sentence, why.Next
	}
	return key
}

func (s *Server) moveSealKey(c Caller, r *http.Request) (any, error) {
	var asked MoveSealKey
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	if err := s.host.Gate.MoveKey(r.Context(), asked.To, s.by(c)); err != nil {
		return nil, err
	}
	s.host.ReportSealKey()
	return s.sealKey(), nil
}

func (s *Server) acceptKeyLoss(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	if err := s.host.Gate.AcceptRollback(r.Context(), true, s.by(c)); err != nil {
		return nil, err
	}
	s.host.ReportSealKey()
	return s.sealKey(), nil
}
