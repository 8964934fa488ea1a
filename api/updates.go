package api

import (
	"net/http"
	"time"

	"sallyport/runtime/updates"
)

// Updates says whether this build knows where updates are announced. Nothing is asked
// there before somebody wants it.
type Updates struct {
	Version string `json:"version"` // of this program
	From    string `json:"from"`    // the machine that is asked; "" where none is known
}

// UpdateCheck may name a manifest and the key that signs it, for a mirror of one's own.
type UpdateCheck struct {
	Manifest string `json:"manifest,omitempty"`
	Key      string `json:"key,omitempty"` // the base64 of a public key of Ed25519
}

// UpdateFound is what a check found. Nothing of it was downloaded.
type UpdateFound struct {
	State   updates.State `json:"state"`   // "newest", "newer", or "unknown" where this program has no version
	Running string        `json:"running"` // the version of this program
	Version string        `json:"version"` // the newest that was announced
	Date    time.Time     `json:"date"`
	Notes   string        `json:"notes"`
	Files   []UpdateFile  `json:"files"` // for this system; none where there is nothing newer
}

// UpdateFile is a file that a person may download.
type UpdateFile struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kind   string `json:"kind"`
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

var updateRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/updates", Access: Operator,
	Summary: "Whether this build knows where updates are announced. Asks nobody.", Answer: Updates{}, Serve: (*Server).showUpdates,
}, {
	Method: http.MethodPost, Path: "/v1/updates/check", Access: Operator,
	Summary: "Asks once whether there is a newer Sallyport, by a signed manifest. Downloads and installs nothing.",
	Body:    UpdateCheck{}, Answer: UpdateFound{}, Serve: (*Server).checkUpdates,
}}

func (s *Server) showUpdates(Caller, *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	return Updates{Version: s.host.Version, From: s.host.UpdatesFrom()}, nil
}

func (s *Server) checkUpdates(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var check UpdateCheck
	if err := read(r, &check); err != nil {
		return nil, err
	}
	found, err := s.host.CheckUpdates(r.Context(), check.Manifest, check.Key)
	if err != nil {
		return nil, err
	}
	answer := UpdateFound{State: found.State, Running: s.host.Version, Version: found.Version, Date: found.Date, Notes: found.Notes, Files: []UpdateFile{}}
	for _, f := range found.Files {
		answer.Files = append(answer.Files, UpdateFile(f))
	}
	return answer, nil
}
