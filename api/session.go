package api

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/loopback"
	"sallyport/runtime/approvals"
)

const (
	// cookieName holds a browser's session. The prefix __Host- needs https, which a
	// loopback address has not.
	cookieName = "sallyport-session"
	// pageHeader holds the session's key, which the page keeps in the storage of its own
	// origin. Browsers send a cookie of 127.0.0.1 to every port of it, so another
	// program's server may come to see the cookie; the key it never sees.
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

// PageSession is the key that the page has to show beside its cookie.
type PageSession struct {
	Key string `json:"key"`
}

// NewSession redeems the code of a one-time link.
type NewSession struct {
	Code string `json:"code"`
}

var sessionRoutes = []Route{{
	Method: http.MethodPost, Path: "/v1/pages/link", Access: Operator,
	Summary: "A one-time address that signs a browser in; it holds for two minutes. With review it opens that decision.",
	Query:   []string{"review"}, Answer: PageLink{}, Serve: (*Server).newPageLink,
}, {
	Method: http.MethodPost, Path: "/v1/session", Access: Anyone,
	Summary: "Redeems the code of a one-time address for a cookie and the key that goes with it.", Body: NewSession{}, Answer: PageSession{}, Stream: (*Server).newSession,
}, {
	Method: http.MethodDelete, Path: "/v1/session", Access: Operator,
	Summary: "Signs this browser out.", Answer: Done{}, Stream: (*Server).endSession,
}}

// sessions are the browsers that are signed in, in memory only: a restart signs
// them out. Codes and session values are kept as hashes.
type sessions struct {
	now func() time.Time

	mu    sync.Mutex
	codes map[[sha256.Size]byte]code
	kept  map[[sha256.Size]byte]*session // by the cookie's hash
}

// code is a one-time link's; once it is used it names the session that it gave.
type code struct {
	until time.Time
	used  bool
	gave  [sha256.Size]byte
}

// session is one browser.
type session struct {
	key  [sha256.Size]byte
	used time.Time
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, codes: map[[sha256.Size]byte]code{}, kept: map[[sha256.Size]byte]*session{}}
}

// newCode makes a code that signs one browser in, once.
func (s *sessions) newCode() (text string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if len(s.codes) >= maxCodes {
		clear(s.codes) // somebody asks for links and uses none
	}
	text, until = rand.Text(), s.now().Add(codeTime)
	s.codes[sha256.Sum256([]byte(text))] = code{until: until}
	return text, until
}

// redeem takes a code and returns a session's cookie and key. A code is used with its
// first try. A second one that does not come from the browser which was signed in,
// whose cookie is own, means that two have seen the code, and which of them is the
// person cannot be told: the session ends.
func (s *sessions) redeem(text, own string) (value, key string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	sum := sha256.Sum256([]byte(text))
	one, known := s.codes[sum]
	if !known {
		return "", "", false
	}
	if one.used {
		if sha256.Sum256([]byte(own)) != one.gave {
			delete(s.kept, one.gave)
		}
		return "", "", false
	}
	if len(s.kept) >= maxSessions {
		s.dropOldest()
	}
	value, key = rand.Text()+rand.Text(), rand.Text()+rand.Text()
	one.used, one.gave = true, sha256.Sum256([]byte(value))
	s.codes[sum], s.kept[one.gave] = one, &session{sha256.Sum256([]byte(key)), s.now()}
	return value, key, true
}

func (s *sessions) dropOldest() {
	var oldest [sha256.Size]byte
	var at time.Time
	for sum, one := range s.kept {
		if at.IsZero() || one.used.Before(at) {
			oldest, at = sum, one.used
		}
	}
	delete(s.kept, oldest)
}

// valid reports whether a cookie and a key are one session's, and notes its use.
func (s *sessions) valid(value, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	one, known := s.kept[sha256.Sum256([]byte(value))]
	given := sha256.Sum256([]byte(key))
	if !known || value == "" || key == "" || subtle.ConstantTimeCompare(one.key[:], given[:]) != 1 {
		return false
	}
	one.used = s.now()
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
	for sum, one := range s.codes {
		if !now.Before(one.until) {
			delete(s.codes, sum)
		}
	}
	for sum, one := range s.kept {
		if !now.Before(one.used.Add(sessionTime)) {
			delete(s.kept, sum)
		}
	}
}

// browser says whether r comes from a page of ours in a browser that is signed in.
// Neither the cookie nor the key is enough: the one no script reads, the other no other
// program's server is sent.
func (s *Server) browser(r *http.Request) (Caller, bool) {
	cookie, err := r.Cookie(cookieName)
	if err != nil || !s.sessions.valid(cookie.Value, r.Header.Get(pageHeader)) {
		return Caller{}, false
	}
	return Caller{Kind: "operator", Via: approvals.ViaBrowser}, true
}

func (s *Server) newPageLink(_ Caller, r *http.Request) (any, error) {
	review := r.FormValue("review")
	if !plainID(review) {
		return nil, coded.New("bad-request", "review is not the ID of a decision")
	}
	if review != "" {
		review = "&review=" + review
	}
	code, until := s.sessions.newCode()
	return PageLink{URL: s.address + "/#/open?code=" + code + review, ExpiresAt: until.UTC()}, nil
}

// plainID reports whether text has only the characters of decisions' IDs; no text has.
func plainID(text string) bool {
	return len(text) <= 64 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
}

func (s *Server) newSession(_ Caller, w http.ResponseWriter, r *http.Request) {
	var asked NewSession
	if err := read(r, &asked); err != nil {
		writeError(w, err)
		return
	}
	if ofAnotherUser(r) {
		writeError(w, &coded.Error{Code: "link-of-another-user", Sentence: "this link was given to another user of the computer", Next: "open it in a browser of the user who asked for it"})
		return
	}
	own := ""
	if cookie, err := r.Cookie(cookieName); err == nil {
		own = cookie.Value
	}
	value, key, ok := s.sessions.redeem(strings.TrimSpace(asked.Code), own)
	if !ok {
		writeError(w, &coded.Error{Code: "link-over", Sentence: "this link was used already, or its time is over", Next: "get a new one: sallyport open"})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	writeJSON(w, http.StatusOK, PageSession{Key: key})
}

// ofAnotherUser reports whether r certainly comes from another user's program. The
// code of a link was an argument of the browser's for a moment, which all users of
// the computer may read.
func ofAnotherUser(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	own, served := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if err != nil || !served {
		return false
	}
	uid, known := loopback.PeerUser(peer, own.AddrPort())
	return known && uid != os.Getuid()
}

func (s *Server) endSession(_ Caller, w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		s.sessions.end(cookie.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	writeJSON(w, http.StatusOK, Done{OK: true})
}
