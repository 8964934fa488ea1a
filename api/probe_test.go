package api_test

import (
	"net/http"
	"strconv"
	"testing"

	"sallyport/api"
)

// TestAFirstTryByTheAPI: while a plugin is tried, who watches sees how far it is and what
// it writes; the operator cancels it, and whoever allowed it hears so.
func TestAFirstTryByTheAPI(t *testing.T) {
	r := newRig(t)
	r.plugin("slow", map[string][]string{"main": {"never-ready"}})
	r.into(nil, "POST", "/v1/plugins/scan", "")
	var asked api.Decision
	r.into(&asked, "POST", "/v1/plugins/slow/main/ask", "")
	path := "/v1/decisions/" + asked.ID
	if got := r.send(request{method: "GET", path: path + "/probe", as: "operator"}); r.refused(t, "before anybody allowed it", got) != "no-probe" {
		t.Errorf("before anybody allowed it: %d %s", got.status, got.body)
	}
	answered := make(chan answer, 1)
	go func() {
		answered <- r.send(request{method: "POST", path: path + "/answer", as: "operator", body: `{"answer":"allow"}`})
	}()
	var now api.Probe
	for begun := false; !begun; begun = len(now.Stderr) > 0 {
		got := r.send(request{method: "GET", path: path + "/probe?wait=10s&after=" + strconv.Itoa(now.Revision), as: "companion"})
		if got.status == http.StatusConflict {
			continue // the answer is on its way
		}
		for _, route := range api.Routes() {
			if route.Path == "/v1/decisions/{id}/probe" {
				fits(t, route, got)
			}
		}
		r.into(&now, "GET", path+"/probe", "")
	}
	if now.State != "running" || now.Decision != asked.ID || now.Steps[len(now.Steps)-1].Doing != "handshake" {
		t.Errorf("it tells of %+v", now)
	}
	if got := r.send(request{method: "POST", path: path + "/cancel", as: "companion"}); got.status != http.StatusForbidden {
		t.Errorf("who only watches cancels it: %d %s", got.status, got.body)
	}
	r.into(nil, "POST", path+"/cancel", "")
	if code := r.refused(t, "the answer", <-answered); code != "probe-cancelled" {
		t.Errorf("whoever allowed it hears %s", code)
	}
}
