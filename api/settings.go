package api

import (
	"net/http"
	"runtime"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/host"
	"sallyport/runtime/plugins"
	"sallyport/runtime/store"
)

// Settings are what holds for the whole installation.
type Settings struct {
	// AnswerOnlyInWindow is true where answers of the command line, the API and a
	// browser are refused.
	AnswerOnlyInWindow bool `json:"answerOnlyInWindow"`
	// ConsoleInBrowser is true where a browser and other programs may open a console.
	ConsoleInBrowser bool `json:"consoleInBrowser"`
	// Folders are where plugins are looked for, in order: of two with one name the
	// earlier counts. Sources are the same, and say which of them the operator added.
	Folders   []string  `json:"folders"`
	Sources   []Source  `json:"sources"`
	Retention Retention `json:"retention"`
	Defaults  Defaults  `json:"defaults"`
	Versions  Versions  `json:"versions"`
}

// Source is a folder that plugins are looked for in.
type Source struct {
	Label string `json:"label"`
	// Folder is what config.json says, where the operator added it; "" otherwise.
	Folder string `json:"folder"`
}

// Retention is how much of the audit is kept, and how much there is.
type Retention struct {
	// Days and Records are what may be kept at most; 0 where that cannot be told now, and
	// nothing is removed. Says is why.
	Days    int        `json:"days"`
	Records int        `json:"records"`
	Says    string     `json:"says,omitempty"`
	Has     uint64     `json:"has"`             // records that there are
	Since   *time.Time `json:"since,omitempty"` // of the oldest
}

// Defaults are what holds for everything that says nothing else. The first two can be
// changed here.
type Defaults struct {
	QuestionSeconds int            `json:"questionSeconds"` // how long a question waits
	IdleSeconds     int            `json:"idleSeconds"`     // after which a server that nobody uses is stopped; 0 never
	AnswerSeconds   int            `json:"answerSeconds"`   // how long the answer "8 hours" holds
	Budget          plugins.Budget `json:"budget"`
}

// Versions are what a report of a fault begins with.
type Versions struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Go      string `json:"go"`
	System  string `json:"system"`
	Schema  int    `json:"schema"` // of the database
}

// SettingsChange sets what is given.
type SettingsChange struct {
	AnswerOnlyInWindow *bool            `json:"answerOnlyInWindow,omitempty"`
	ConsoleInBrowser   *bool            `json:"consoleInBrowser,omitempty"`
	Retention          *RetentionChange `json:"retention,omitempty"`
	Times              *TimesChange     `json:"times,omitempty"`
}

// TimesChange sets what is given, in whole minutes; a negative number goes back to what
// holds where nobody chose, and 0 for idle is never.
type TimesChange struct {
	QuestionMinutes *int `json:"questionMinutes,omitempty"`
	IdleMinutes     *int `json:"idleMinutes,omitempty"`
}

// RetentionChange is how much of the audit is to be kept.
type RetentionChange struct {
	Days    int `json:"days"`
	Records int `json:"records"`
}

// SourceChange names a folder, by the whole path or from ~/.
type SourceChange struct {
	Folder string `json:"folder"`
	// At is its place among those that the operator added; without one it is the last.
	At *int `json:"at,omitempty"`
}

// SourceRemoved says where the folder stood, for putting it back.
type SourceRemoved struct {
	At      int      `json:"at"`
	Sources []Source `json:"sources"`
}

var settingsRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/settings", Access: Watcher,
	Summary: "What holds for the whole installation: who may answer, where plugins are looked for, how much is kept, versions.", Answer: Settings{}, Serve: (*Server).showSettings,
}, {
	Method: http.MethodPost, Path: "/v1/settings", Access: Operator,
	Summary: "Says whether only the window may answer (only the window may say it), whether a browser may open a console, how much of the audit is kept, or how long questions wait and unused servers run.",
	Body:    SettingsChange{}, Answer: Settings{}, Serve: (*Server).changeSettings,
}, {
	Method: http.MethodPost, Path: "/v1/sources", Access: Operator,
	Summary: "Has plugins looked for in one more folder. Nothing of what is found there runs by that.",
	Body:    SourceChange{}, Answer: Settings{}, Serve: (*Server).addSource,
}, {
	Method: http.MethodPost, Path: "/v1/sources/remove", Access: Operator,
	Summary: "Has plugins looked for there no longer, and says where it stood.",
	Body:    SourceChange{}, Answer: SourceRemoved{}, Serve: (*Server).removeSource,
}}

func (s *Server) showSettings(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	return s.settings(r)
}

func (s *Server) changeSettings(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var change SettingsChange
	if err := read(r, &change); err != nil {
		return nil, err
	}
	if err := s.changeSetting(c, r, change); err != nil {
		return nil, err
	}
	return s.settings(r)
}

// changeSetting changes the one setting that is named: of two, half might be refused.
func (s *Server) changeSetting(c Caller, r *http.Request, change SettingsChange) error {
	named := 0
	for _, is := range []bool{change.AnswerOnlyInWindow != nil, change.ConsoleInBrowser != nil, change.Retention != nil, change.Times != nil} {
		if is {
			named++
		}
	}
	switch {
	case named != 1:
		return coded.New("bad-request", "one of answerOnlyInWindow, consoleInBrowser, retention and times is given")
	case change.AnswerOnlyInWindow != nil:
		return s.host.Gate.SetAnswerOnlyInGUI(r.Context(), *change.AnswerOnlyInWindow, s.by(c))
	case change.ConsoleInBrowser != nil:
		return s.host.Gate.SetConsoleInBrowser(r.Context(), *change.ConsoleInBrowser, s.by(c))
	case change.Times != nil:
		return s.host.SetTimes(r.Context(), host.ConfiguredTimes(*change.Times), s.by(c))
	}
	return s.host.SetAuditKeeping(r.Context(), approvals.Keeping{Days: change.Retention.Days, Records: change.Retention.Records}, s.by(c))
}

func (s *Server) addSource(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var change SourceChange
	if err := read(r, &change); err != nil {
		return nil, err
	}
	at := host.LastSource
	if change.At != nil {
		at = *change.At
	}
	if err := s.host.AddSource(r.Context(), change.Folder, at, s.by(c)); err != nil {
		return nil, err
	}
	return s.settings(r)
}

func (s *Server) removeSource(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var change SourceChange
	if err := read(r, &change); err != nil {
		return nil, err
	}
	at, err := s.host.RemoveSource(r.Context(), change.Folder, s.by(c))
	if err != nil {
		return nil, err
	}
	return SourceRemoved{At: at, Sources: s.sources()}, nil
}

func (s *Server) settings(r *http.Request) (Settings, error) {
	retention, err := s.retention(r)
	if err != nil {
		return Settings{}, err
	}
	return Settings{
		AnswerOnlyInWindow: s.host.Gate.AnswerOnlyInGUI(), ConsoleInBrowser: s.host.Gate.ConsoleInBrowser(), Folders: s.host.PluginFolders(), Sources: s.sources(), Retention: retention,
		Defaults: Defaults{QuestionSeconds: int(s.host.Times().Question.Seconds()), IdleSeconds: int(s.host.Times().Idle.Seconds()),
			AnswerSeconds: int(approvals.StandingTime.Seconds()), Budget: plugins.Budget{}.Effective()},
		Versions: s.versions(),
	}, nil
}

func (s *Server) versions() Versions {
	return Versions{Version: s.host.Version, Commit: s.host.Commit, Date: s.host.Date, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Schema: store.Version()}
}

func (s *Server) sources() []Source {
	sources := []Source{}
	for _, one := range s.host.Sources() {
		sources = append(sources, Source(one))
	}
	return sources
}

// retention waits for no keyring: what cannot be verified now is said so.
func (s *Server) retention(r *http.Request) (Retention, error) {
	has, since, err := s.host.Audit.Extent(r.Context())
	if err != nil {
		return Retention{}, err
	}
	answer := Retention{Has: has}
	if !since.IsZero() {
		answer.Since = &since
	}
	keeping, err := s.host.Gate.AuditKeeping()
	if err != nil {
		_, said := errorBody(err)
		answer.Says = said.Message
		return answer, nil
	}
	answer.Days, answer.Records = keeping.Days, keeping.Records
	return answer, nil
}
