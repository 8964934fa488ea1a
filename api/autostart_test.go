package api_test

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/api"
	"sallyport/runtime/audit"
)

// TestStartAtLoginIsTheOperatorsAndOnRecord: off at first, on and off by the operator,
// each once on record; a refusal changes nothing.
func TestStartAtLoginIsTheOperatorsAndOnRecord(t *testing.T) {
	r := newRig(t)
	t.Setenv("HOME", filepath.Join(r.dir, "home"))
	var now api.Autostart
	for _, want := range []struct{ method, body, state string }{
		{"GET", "", "off"}, {"POST", `{"on":true}`, "on"}, {"POST", `{"on":true}`, "on"}, {"GET", "", "on"}, {"POST", `{"on":false}`, "off"}, {"POST", `{"on":false}`, "off"},
	} {
		if r.into(&now, want.method, "/v1/autostart", want.body); string(now.State) != want.state {
			t.Errorf("%s %s: it is %+v", want.method, want.body, now)
		}
	}
	if err := os.Remove(r.program); err != nil {
		t.Fatal(err)
	}
	if got := r.send(request{method: "POST", path: "/v1/autostart", as: "operator", body: `{"on":true}`}); r.refused(t, "without a program", got) != "autostart-place-refused" {
		t.Errorf("without a program: %s", got.body)
	}
	if got := r.send(request{method: "POST", path: "/v1/autostart", as: "operator", body: `{}`}); r.refused(t, "without a word", got) != "bad-request" {
		t.Errorf("without a word: %s", got.body)
	}
	page, err := r.host.Audit.Query(t.Context(), audit.Filter{Action: audit.Setting})
	if err != nil || len(page.Records) != 2 || page.Records[0].Target != "autostart off" || page.Records[1].Target != "autostart on" {
		t.Errorf("on record is %+v (%v)", page.Records, err)
	}
}
