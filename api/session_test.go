package api_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"sallyport/api"
)

const windowToken = "the-window-of-this-test"

func pagesForTests() fs.FS {
	return fstest.MapFS{
		"index.html":      {Data: []byte("<!doctype html><title>Sallyport</title>")},
		"icon.svg":        {Data: []byte("<svg/>")},
		"assets/a-1.js":   {Data: []byte("1")},
		"assets/a-1.css":  {Data: []byte("a{}")},
		"secret/file.txt": {Data: []byte("not linked")},
	}
}

// code asks for a one-time address and returns the code in it.
func (r *rig) code() string {
	r.t.Helper()
	var link api.PageLink
	r.into(&link, "POST", "/v1/pages/link", "")
	prefix, code, ok := strings.Cut(link.URL, "/#/open?code=")
	if !ok || !strings.HasPrefix(prefix, "http://127.0.0.1:") || code == "" {
		r.t.Fatalf("the address is %q", link.URL)
	}
	return code
}

// signIn redeems a code and returns what the page then sends with every request.
func (r *rig) signIn(code string) map[string]string {
	r.t.Helper()
	body, _ := json.Marshal(api.NewSession{Code: code})
	got := r.send(request{method: "POST", path: "/v1/session", body: string(body)})
	cookies := (&http.Response{Header: got.header}).Cookies()
	if got.status != http.StatusOK || len(cookies) != 1 {
		r.t.Fatalf("signing in: %d %s", got.status, got.body)
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		r.t.Errorf("the cookie is %+v", c)
	}
	var session api.PageSession
	if err := json.Unmarshal([]byte(got.body), &session); err != nil || session.Key == "" || session.Key == cookies[0].Value {
		r.t.Fatalf("signing in answers %s (%v)", got.body, err)
	}
	return map[string]string{"Cookie": cookies[0].Name + "=" + cookies[0].Value, "X-Sallyport-Page": session.Key}
}

// A browser gets in by an address that works once and for two minutes, and stays by a
// cookie that no script reads and no other page can use (spec/local-api.md 6).
func TestABrowserSignsIn(t *testing.T) {
	r := newRig(t)
	code := r.code()
	page := r.signIn(code)
	cookie, key := page["Cookie"], page["X-Sallyport-Page"]
	other := r.signIn(r.code())
	for name, c := range map[string]struct {
		header map[string]string
		status int
	}{
		"the page itself":                      {page, 200},
		"the cookie without the page":          {map[string]string{"Cookie": cookie}, 401},
		"the page without the cookie":          {map[string]string{"X-Sallyport-Page": key}, 401},
		"the cookie and another key":           {map[string]string{"Cookie": cookie, "X-Sallyport-Page": "1"}, 401},
		"the cookie and another session's key": {map[string]string{"Cookie": cookie, "X-Sallyport-Page": other["X-Sallyport-Page"]}, 401},
		"a cookie that was made up":            {map[string]string{"Cookie": "sallyport-session=x", "X-Sallyport-Page": key}, 401},
		"an empty cookie":                      {map[string]string{"Cookie": "sallyport-session=", "X-Sallyport-Page": key}, 401},
		"a foreign page":                       {map[string]string{"Cookie": cookie, "X-Sallyport-Page": key, "Origin": "http://evil.example"}, 403},
		"another site's fetch":                 {map[string]string{"Cookie": cookie, "X-Sallyport-Page": key, "Sec-Fetch-Site": "cross-site"}, 403},
	} {
		if got := r.send(request{method: "GET", path: "/v1/status", header: c.header}); got.status != c.status {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, c.status)
		}
	}
	body, _ := json.Marshal(api.NewSession{Code: code})
	if got := r.send(request{method: "POST", path: "/v1/session", body: string(body), header: map[string]string{"Cookie": cookie}}); r.refused(t, "the code again", got) != "link-over" {
		t.Errorf("a code works twice: %d %s", got.status, got.body)
	}
	if got := r.send(request{method: "DELETE", path: "/v1/session", header: page}); got.status != 200 {
		t.Fatalf("signing out: %d %s", got.status, got.body)
	}
	if got := r.send(request{method: "GET", path: "/v1/status", header: page}); got.status != 401 {
		t.Errorf("after signing out: %d", got.status)
	}
}

func TestALinkAndASessionEndByThemselves(t *testing.T) {
	r := newRig(t)
	late := r.code()
	r.passes(3 * time.Minute)
	body, _ := json.Marshal(api.NewSession{Code: late})
	if got := r.send(request{method: "POST", path: "/v1/session", body: string(body)}); r.refused(t, "a late code", got) != "link-over" {
		t.Errorf("a code works after three minutes: %s", got.body)
	}
	page := r.signIn(r.code())
	r.passes(11 * time.Hour)
	if got := r.send(request{method: "GET", path: "/v1/status", header: page}); got.status != 200 {
		t.Errorf("a session that is used ended: %d", got.status)
	}
	r.passes(13 * time.Hour)
	if got := r.send(request{method: "GET", path: "/v1/status", header: page}); got.status != 401 {
		t.Errorf("a session that nobody used for 13 hours: %d", got.status)
	}
}

// The address goes to the browser as an argument, which other users of the computer can
// read: whoever was first, a link that two used signs nobody in.
func TestALinkThatTwoUsed(t *testing.T) {
	r := newRig(t)
	code := r.code()
	first := r.signIn(code)
	body, _ := json.Marshal(api.NewSession{Code: code})
	if got := r.send(request{method: "POST", path: "/v1/session", body: string(body)}); r.refused(t, "the second", got) != "link-over" {
		t.Errorf("the second: %d %s", got.status, got.body)
	}
	if got := r.send(request{method: "GET", path: "/v1/status", header: first}); got.status != 401 {
		t.Errorf("the first after it: %d", got.status)
	}
}

func with(header map[string]string, name, value string) map[string]string {
	header[name] = value
	return header
}

// Who answers in a browser is on record as browser, in the window as gui.
func TestTheWayInIsOnRecord(t *testing.T) {
	r := newRig(t)
	for via, header := range map[string]map[string]string{
		"browser": with(r.signIn(r.code()), "X-Sallyport-Via", "cli"),
		"gui":     {"Authorization": "Bearer " + windowToken, "X-Sallyport-Via": "cli"},
	} {
		got := r.send(request{method: "POST", path: "/v1/plugins/fake/main/deny", header: header})
		if got.status != 200 || !strings.Contains(got.body, `"via":"`+via+`"`) {
			t.Errorf("%s: %d %s", via, got.status, got.body)
		}
	}
}

// TestOnlyTheWindowSaysWhoMayAnswer: in either direction, and a yes from elsewhere is
// then refused.
func TestOnlyTheWindowSaysWhoMayAnswer(t *testing.T) {
	r := newRig(t)
	window := map[string]string{"Authorization": "Bearer " + windowToken}
	browser := r.signIn(r.code())
	say := func(header map[string]string, only string) answer {
		return r.send(request{method: "POST", path: "/v1/settings", header: header, body: `{"answerOnlyInWindow":` + only + `}`})
	}
	for _, row := range []struct{ now, other string }{{"false", "true"}, {"true", "false"}} {
		if code := r.refused(t, "a browser says "+row.other, say(browser, row.other)); code != "answer-only-in-gui" {
			t.Errorf("a browser says %s: %s", row.other, code)
		}
		if got := r.send(request{method: "GET", path: "/v1/settings", as: "operator"}); !strings.Contains(got.body, `"answerOnlyInWindow":`+row.now) {
			t.Errorf("after a refusal: %s", got.body)
		}
		if got := say(window, row.other); got.status != 200 || !strings.Contains(got.body, `"answerOnlyInWindow":`+row.other) {
			t.Errorf("the window says %s: %d %s", row.other, got.status, got.body)
		}
		got := r.send(request{method: "POST", path: "/v1/policy", header: browser, body: `{"class":"write","verdict":"ask"}`})
		if only := row.other == "true"; only != (got.status != 200) || only && r.refused(t, "a rule", got) != "answer-only-in-gui" {
			t.Errorf("a browser sets a rule while only the window answers is %s: %d %s", row.other, got.status, got.body)
		}
	}
}

func TestPagesAreServedWithTheirPolicy(t *testing.T) {
	r := newRig(t)
	for path, want := range map[string]struct {
		status int
		kind   string
	}{
		"/":                {200, "text/html; charset=utf-8"},
		"/icon.svg":        {200, "image/svg+xml"},
		"/assets/a-1.js":   {200, "text/javascript; charset=utf-8"},
		"/assets/a-1.css":  {200, "text/css; charset=utf-8"},
		"/assets/none.js":  {404, ""},
		"/secret/file.txt": {404, ""},
		"/index.html":      {404, ""},
	} {
		got := r.send(request{method: "GET", path: path})
		if got.status != want.status || want.kind != "" && got.header.Get("Content-Type") != want.kind {
			t.Errorf("%s: %d %s", path, got.status, got.header.Get("Content-Type"))
		}
		if policy := got.header.Get("Content-Security-Policy"); want.status == 200 && (!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || got.header.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
	}
	if got := r.send(request{method: "GET", path: "/", header: map[string]string{"Host": "evil.example"}}); got.status != 403 {
		t.Errorf("a page for another host: %d", got.status)
	}
	if got := r.send(request{method: "POST", path: "/"}); got.status == 200 {
		t.Error("a page takes a POST")
	}
}
