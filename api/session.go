package api

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
)

const (
	// cookieName holds a browser's session. The prefix __Host- needs https, which a
	// loopback address has not.
	cookieName = "sallyport-session"
	// pageHeader is what every request of the pages has and what no foreign page can
	// send without asking first (a preflight, which is never answered).
	pageHeader = "X-Sallyport-Page"

	codeTime    = 2 * time.Minute // a one-time link
	sessionTime = 12 * time.Hour  // without a request
	maxCodes    = 16
	maxSessions = 64
)

// PageLink is a one-time address for a browser.
type PageLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// NewSession redeems the code of a one-time link.
type NewSession struct {
	Code string `json:"code"`
}

var sessionRoutes = []Route{{
	Method: http.MethodPost, Path: "/v1/pages/link", Access: Operator,
	Summary: "A one-time address that signs a browser in; it holds for two minutes.", Answer: PageLink{}, Serve: (*Server).newPageLink,
}, {
	Method: http.MethodPost, Path: "/v1/session", Access: Anyone,
	Summary: "Redeems the code of a one-time address for a cookie.", Body: NewSession{}, Answer: Done{}, Stream: (*Server).newSession,
}, {
	Method: http.MethodDelete, Path: "/v1/session", Access: Operator,
	Summary: "Signs this browser out.", Answer: Done{}, Stream: (*Server).endSession,
}}

// sessions are the browsers that are signed in, in memory only: a restart signs
// them out. Codes and session values are kept as hashes.
type sessions struct {
	now func() time.Time

	mu    sync.Mutex
	codes map[[sha256.Size]byte]time.Time // until when
	kept  map[[sha256.Size]byte]time.Time // last use
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, codes: map[[sha256.Size]byte]time.Time{}, kept: map[[sha256.Size]byte]time.Time{}}
}

// newCode makes a code that signs one browser in, once.
func (s *sessions) newCode() (code string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if len(s.codes) >= maxCodes {
		clear(s.codes) // somebody asks for links and uses none
	}
	code, until = rand.Text(), s.now().Add(codeTime)
	s.codes[sha256.Sum256([]byte(code))] = until
	return code, until
}

// redeem takes a code and returns a session's value. A code is gone with its first
// try.
func (s *sessions) redeem(code string) (value string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	sum := sha256.Sum256([]byte(code))
	if _, known := s.codes[sum]; !known {
		return "", false
	}
	delete(s.codes, sum)
	if len(s.kept) >= maxSessions {
		s.dropOldest()
	}
	value = rand.Text() + rand.Text()
	s.kept[sha256.Sum256([]byte(value))] = s.now()
	return value, true
}

func (s *sessions) dropOldest() {
	var oldest [sha256.Size]byte
	var at time.Time
	for sum, used := range s.kept {
		if at.IsZero() || used.Before(at) {
			oldest, at = sum, used
		}
	}
	delete(s.kept, oldest)
}

// valid reports whether a value is a session's, and notes its use.
func (s *sessions) valid(value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	sum := sha256.Sum256([]byte(value))
	if _, known := s.kept[sum]; !known || value == "" {
		return false
	}
	s.kept[sum] = s.now()
	return true
}

func (s *sessions) end(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, sha256.Sum256([]byte(value)))
}

// forget drops what is over. s.mu is held.
func (s *sessions) forget() {
	now := s.now()
	for sum, until := range s.codes {
		if !now.Before(until) {
			delete(s.codes, sum)
		}
	}
	for sum, used := range s.kept {
		if !now.Before(used.Add(sessionTime)) {
			delete(s.kept, sum)
		}
	}
}

// browser says whether r comes from a page of ours in a browser that is signed in.
// The cookie alone is not enough: the header shows that the page itself asks.
func (s *Server) browser(r *http.Request) (Caller, bool) {
	cookie, err := r.Cookie(cookieName)
	if err != nil || r.Header.Get(pageHeader) == "" || !s.sessions.valid(cookie.Value) {
		return Caller{}, false
	}
	return Caller{Kind: "operator", Via: approvals.ViaBrowser}, true
}

func (s *Server) newPageLink(_ Caller, _ *http.Request) (any, error) {
	code, until := s.sessions.newCode()
	return PageLink{URL: s.address + "/#/open?code=" + code, ExpiresAt: until.UTC()}, nil
}

func (s *Server) newSession(_ Caller, w http.ResponseWriter, r *http.Request) {
	var asked NewSession
	if err := read(r, &asked); err != nil {
		writeError(w, err)
		return
	}
	value, ok := s.sessions.redeem(strings.TrimSpace(asked.Code))
	if !ok {
		writeError(w, &coded.Error{Code: "link-over", Sentence: "this link was used already, or its time is over", Next: "get a new one: sallyport open"})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	writeJSON(w, http.StatusOK, Done{OK: true})
}

func (s *Server) endSession(_ Caller, w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		s.sessions.end(cookie.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	writeJSON(w, http.StatusOK, Done{OK: true})
}
