package api

import (
	"net/http"

	"sallyport/internal/coded"
)

// Settings are what holds for the whole installation.
type Settings struct {
	// AnswerOnlyInWindow is true where answers of the command line, the API and a
	// browser are refused.
	AnswerOnlyInWindow bool `json:"answerOnlyInWindow"`
	// Folders are where plugins are looked for, in order: of two with one name the
	// earlier counts.
	Folders []string `json:"folders"`
}

// SettingsChange sets what is given.
type SettingsChange struct {
	AnswerOnlyInWindow *bool `json:"answerOnlyInWindow"`
}

var settingsRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/settings", Access: Watcher,
	Summary: "What holds for the whole installation: who may answer, and where plugins are looked for.", Answer: Settings{}, Serve: (*Server).showSettings,
}, {
	Method: http.MethodPost, Path: "/v1/settings", Access: Operator,
	Summary: "Says whether only the window may answer. Only the window may say it.",
	Body:    SettingsChange{}, Answer: Settings{}, Serve: (*Server).changeSettings,
}}

func (s *Server) showSettings(Caller, *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	return s.settings(), nil
}

func (s *Server) changeSettings(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var change SettingsChange
	if err := read(r, &change); err != nil {
		return nil, err
	}
	if change.AnswerOnlyInWindow == nil {
		return nil, coded.New("bad-request", "answerOnlyInWindow is missing")
	}
	if err := s.host.Gate.SetAnswerOnlyInGUI(r.Context(), *change.AnswerOnlyInWindow, s.by(c)); err != nil {
		return nil, err
	}
	return s.settings(), nil
}

func (s *Server) settings() Settings {
	return Settings{AnswerOnlyInWindow: s.host.Gate.AnswerOnlyInGUI(), Folders: s.host.PluginFolders()}
}
