package api_test

import (
	"net/url"
	"strings"
	"testing"

	"sallyport/api"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
)

// TestAServerIsStartedAndStoppedByThePerson: through the gate, on record, and its
// error output can be read also afterwards.
func TestAServerIsStartedAndStoppedByThePerson(t *testing.T) {
	r := newRig(t)
	got := r.send(request{method: "POST", path: "/v1/plugins/fake/main/start", as: "operator"})
	if code := r.refused(t, "a start of what nobody approved", got); code != "never-approved" || len(r.host.Pool.Running()) != 0 {
		t.Errorf("%d %s", got.status, got.body)
	}
	r.approve("echo")
	var line api.Connector
	var first, second api.Log
	r.into(&line, "POST", "/v1/plugins/fake/main/start", "")
	if !line.Running {
		t.Errorf("started: %+v", line)
	}
	r.into(&first, "GET", "/v1/plugins/fake/main/log", "")
	r.into(&line, "POST", "/v1/plugins/fake/main/restart", "")
	r.into(&second, "GET", "/v1/plugins/fake/main/log", "")
	if !line.Running || first.Run == nil || second.Run == nil || first.Run.PID == second.Run.PID {
		t.Errorf("restarted: %+v, %+v then %+v", line, first.Run, second.Run)
	}
	r.into(&line, "POST", "/v1/plugins/fake/main/stop", "")
	if line.Running || line.State != "enabled" {
		t.Errorf("stopped: %+v", line)
	}
	r.into(&line, "POST", "/v1/plugins/fake/main/stop", "") // nothing runs: it is what was asked for
	r.into(nil, "POST", "/v1/plugins/fake/main/disable", "")
	got = r.send(request{method: "POST", path: "/v1/plugins/fake/main/start", as: "operator"})
	if code := r.refused(t, "a start of what is disabled", got); code != "disabled" {
		t.Errorf("%d %s", got.status, got.body)
	}
	page, err := r.host.Audit.Query(t.Context(), audit.Filter{Action: audit.Ask})
	if err != nil {
		t.Fatal(err)
	}
	asked := ""
	for _, record := range page.Records {
		if record.Target == "start" || record.Target == "stop" {
			asked += record.Target + " "
		}
	}
	if strings.Count(asked, "start") < 3 || strings.Count(asked, "stop") < 3 {
		t.Errorf("on record is %q", asked)
	}
}

// TestTheFilesOfAConnectorOverTheAPI: the list, one text, and nothing by a path that
// the list does not have.
func TestTheFilesOfAConnectorOverTheAPI(t *testing.T) {
	r := newRig(t)
	r.write("fake/notice.txt", []byte("first\n"), 0o644)
	r.approve("echo")
	r.write("fake/notice.txt", []byte("second\n"), 0o644)
	var tree approvals.Tree
	r.into(&tree, "GET", "/v1/plugins/fake/main/files", "")
	changed := ""
	for _, e := range tree.Entries {
		if e.Change != "" {
			changed += e.Path + " " + e.Change
		}
	}
	if changed != "notice.txt modified" || tree.Digest == tree.Approved || tree.Approved == "" {
		t.Errorf("got %q of %+v", changed, tree)
	}
	var now, before approvals.TreeFile
	r.into(&now, "GET", "/v1/plugins/fake/main/file?path=notice.txt", "")
	r.into(&before, "GET", "/v1/plugins/fake/main/file?path=notice.txt&copy=approved", "")
	if now.Text != "second\n" || before.Text != "first\n" {
		t.Errorf("got %+v and %+v", now, before)
	}
	for _, path := range []string{"", "../two/plugin.json", "/etc/passwd", "bin"} {
		got := r.send(request{method: "GET", path: "/v1/plugins/fake/main/file?path=" + url.QueryEscape(path), as: "operator"})
		if code := r.refused(t, path, got); code != "file-unknown" || got.status != 404 {
			t.Errorf("%q: %d %s", path, got.status, got.body)
		}
	}
}
