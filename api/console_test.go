//go:build !windows

package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"sallyport/api"
	"sallyport/runtime/audit"
)

// ways are the headers by which somebody comes in with the operator's right.
func (r *rig) ways() map[string]map[string]string {
	operator := map[string]string{"Authorization": "Bearer " + r.host.Tokens.Operator}
	return map[string]map[string]string{
		"gui":             {"Authorization": "Bearer " + windowToken},
		"window-attached": with(maps.Clone(operator), "X-Sallyport-Via", "window-attached"),
		"cli":             with(maps.Clone(operator), "X-Sallyport-Via", "cli"),
		"api":             operator,
		"browser":         r.signIn(r.code()),
	}
}

// prints reads a console until it prints a text, or ends.
func (r *rig) prints(way map[string]string, id, want string) (text string, end api.ConsoleOutput) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		got := r.send(request{method: "GET", path: fmt.Sprintf("/v1/consoles/%s/output?after=%d&wait=5s", id, end.Next), header: way})
		end = api.ConsoleOutput{Next: end.Next}
		if err := json.Unmarshal([]byte(got.body), &end); got.status != 200 || err != nil {
			r.t.Fatalf("%d %s", got.status, got.body)
		}
		text += string(end.Data)
		if want != "" && strings.Contains(text, want) || end.Ended {
			return text, end
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%q is not printed but %q", want, text)
		}
	}
}

func typed(text string) string {
	body, _ := json.Marshal(api.ConsoleInput{Data: []byte(text)})
	return string(body)
}

const openAt80 = `{"cols":80,"rows":24}`

// Every route of consoles, one way in at a time: the window and the command line have
// them, a browser and a program only where the operator said so, and nobody else.
func TestWhoHasAConsole(t *testing.T) {
	r := newRig(t)
	r.approve("echo")
	ways := r.ways()
	open := func(way string) (code string, opened api.Console) {
		got := r.send(request{method: "POST", path: "/v1/plugins/fake/main/console", header: ways[way], body: openAt80})
		if got.status != 200 {
			return r.refused(t, way, got), opened
		}
		if err := json.Unmarshal([]byte(got.body), &opened); err != nil {
			t.Fatal(err)
		}
		return "", opened
	}
	_, first := open("gui")
	for _, row := range []struct {
		setting string
		here    map[string]bool
	}{
		{``, map[string]bool{"gui": true, "window-attached": true, "cli": true}},
		{`{"consoleInBrowser":true}`, map[string]bool{"gui": true, "window-attached": true, "cli": true, "api": true, "browser": true}},
		{`{"answerOnlyInWindow":true}`, map[string]bool{"gui": true}},
	} {
		if row.setting != "" {
			if got := r.send(request{method: "POST", path: "/v1/settings", header: ways["gui"], body: row.setting}); got.status != 200 {
				t.Fatal(got.body)
			}
		}
		for way := range ways {
			what := way + " after " + row.setting
			var list api.ConsoleList
			got := r.send(request{method: "GET", path: "/v1/consoles", header: ways[way]})
			if err := json.Unmarshal([]byte(got.body), &list); err != nil || (list.Refused == nil) != row.here[way] {
				t.Errorf("%s: the list says %s", what, got.body)
			}
			code, opened := open(way)
			if (code == "") != row.here[way] || code != "" && code != "console-only-in-window" {
				t.Errorf("%s: opening says %q", what, code)
			}
			for _, q := range []request{
				{method: "GET", path: "/v1/consoles/" + first.ID + "/output"},
				{method: "POST", path: "/v1/consoles/" + first.ID + "/input", body: typed(" ")},
				{method: "POST", path: "/v1/consoles/" + first.ID + "/size", body: `{"cols":81,"rows":25}`},
			} {
				q.header = ways[way]
				got := r.send(q)
				if row.here[way] && got.status != 200 {
					t.Errorf("%s: %s is %d %s", what, q.path, got.status, got.body)
				}
				if !row.here[way] && r.refused(t, what, got) != "console-only-in-window" {
					t.Errorf("%s: %s is %d %s", what, q.path, got.status, got.body)
				}
			}
			closed := first.ID
			if row.here[way] {
				closed = opened.ID
			}
			if got := r.send(request{method: "DELETE", path: "/v1/consoles/" + closed, header: ways[way]}); (got.status == 200) != row.here[way] {
				t.Errorf("%s: closing is %d %s", what, got.status, got.body)
			}
		}
	}
	for _, as := range []string{"anyone", "companion", "agent", "garbage", "removed client"} {
		if got := r.send(request{method: "POST", path: "/v1/plugins/fake/main/console", as: as, body: openAt80, header: map[string]string{"X-Sallyport-Via": "cli"}}); got.status != 401 && got.status != 403 {
			t.Errorf("%s: %d %s", as, got.status, got.body)
		}
	}
}

func TestAConsoleOverTheAPI(t *testing.T) {
	r := newRig(t)
	way := r.ways()["cli"]
	do := func(method, path, body string) answer {
		got := r.send(request{method: method, path: path, header: way, body: body})
		for _, route := range api.Routes() {
			if strings.Contains(route.Path, "console") && route.Method == method && strings.HasSuffix(strings.Split(path, "?")[0], route.Path[strings.LastIndex(route.Path, "/"):]) && got.status == 200 {
				fits(t, route, got)
			}
		}
		return got
	}
	if got := do("POST", "/v1/plugins/fake/main/console", openAt80); r.refused(t, "before it is approved", got) != "never-approved" {
		t.Error(got.body)
	}
	r.approve("echo")
	for body, code := range map[string]string{`{"cols":0,"rows":24}`: "console-size", `{"cols":80,"rows":70000}`: "console-size", `{"cols":80,"rows":24,"term":"a b"}`: "console-term", `{"cols":80,"rows":24,"path":"/bin/sh"}`: "bad-request"} {
		if got := do("POST", "/v1/plugins/fake/main/console", body); got.status != 400 || r.refused(t, body, got) != code {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	var opened api.Console
	got := do("POST", "/v1/plugins/fake/main/console", `{"cols":90,"rows":30,"term":"screen-256color"}`)
	if err := json.Unmarshal([]byte(got.body), &opened); got.status != 200 || err != nil || opened.Connector != "fake/main" || opened.Via != "cli" || opened.Cols != 90 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	at := "/v1/consoles/" + opened.ID
	if got := do("POST", at+"/input", typed("stty size; echo $TERM, $PLUGIN_DATA; env | grep -c AWS; echo typed-in-secret >/dev/null\n")); got.status != 200 {
		t.Fatal(got.body)
	}
	if text, _ := r.prints(way, opened.ID, "\n0\r"); !strings.Contains(text, "30 90") || !strings.Contains(text, "screen-256color, ") {
		t.Errorf("it prints %q", text)
	}
	if got := do("GET", at+"/output?after=x", ""); got.status != 400 {
		t.Error(got.status, got.body)
	}
	if got := do("GET", at+"/output?wait=x", ""); got.status != 400 {
		t.Error(got.status, got.body)
	}
	do("POST", at+"/input", typed("exit 3\n"))
	_, end := r.prints(way, opened.ID, "")
	if !end.Ended || end.Console.Exit != "exit status 3" || end.Console.Reason != "" {
		t.Errorf("it ended as %+v", end.Console)
	}
	if got := do("POST", at+"/input", typed("x")); r.refused(t, "typing into the ended", got) != "console-ended" {
		t.Error(got.body)
	}
	records, err := r.host.Audit.Query(t.Context(), audit.Filter{Action: audit.Console})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, one := range records.Records {
		said = append(said, strings.Join([]string{one.Via, one.Target, one.Result, one.Reason}, " "))
		if raw, _ := json.Marshal(one); strings.Contains(string(raw), "typed-in-secret") {
			t.Errorf("what was typed is on record: %s", raw)
		}
	}
	want := fmt.Sprintf("cli close exit=3 bytes=%d ok |cli open ok |cli open refused never-approved", end.Console.Printed)
	if got := strings.Join(said, "|"); got != want {
		t.Errorf("on record is %q, not %q", got, want)
	}
}

func TestARevokedApprovalClosesItsConsole(t *testing.T) {
	r := newRig(t)
	r.approve("echo")
	way := r.ways()["gui"]
	var opened api.Console
	if err := json.Unmarshal([]byte(r.send(request{method: "POST", path: "/v1/plugins/fake/main/console", header: way, body: openAt80}).body), &opened); err != nil {
		t.Fatal(err)
	}
	r.into(nil, "POST", "/v1/plugins/fake/main/revoke", "")
	if _, end := r.prints(way, opened.ID, ""); end.Console.Reason != "revoked" || end.Console.Sentence == "" {
		t.Errorf("it ended as %+v", end.Console)
	}
}

// stacks tells where every goroutine is.
func stacks() string {
	all := make([]byte, 4<<20)
	return string(all[:runtime.Stack(all, true)])
}

// A browser that waits for what the window's console prints gets nothing of it once it
// may have no console.
func TestAWaitingReaderThatMayNoLongerRead(t *testing.T) {
	r := newRig(t)
	r.approve("echo")
	ways := r.ways()
	r.send(request{method: "POST", path: "/v1/settings", header: ways["gui"], body: `{"consoleInBrowser":true}`})
	var opened api.Console
	if err := json.Unmarshal([]byte(r.send(request{method: "POST", path: "/v1/plugins/fake/main/console", header: ways["gui"], body: openAt80}).body), &opened); err != nil {
		t.Fatal(err)
	}
	at := "/v1/consoles/" + opened.ID
	read, reads, refused := "", make(chan struct{}), make(chan string, 1)
	go func() {
		defer close(refused)
		for next := uint64(0); ; {
			got := r.send(request{method: "GET", path: fmt.Sprintf("%s/output?after=%d&wait=20s", at, next), header: ways["browser"]})
			var out api.ConsoleOutput
			if got.status != 200 || json.Unmarshal([]byte(got.body), &out) != nil || out.Ended {
				refused <- got.body
				return
			}
			before := strings.Contains(read, "while-allowed")
			if read, next = read+string(out.Data), out.Next; !before && strings.Contains(read, "while-allowed") {
				close(reads)
			}
		}
	}()
	r.send(request{method: "POST", path: at + "/input", header: ways["gui"], body: typed("echo while-allowed\n")})
	select {
	case <-reads:
	case body := <-refused:
		t.Fatal(body)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(stacks(), "runtime/console.(*console).output("); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits for the console's output")
		}
	}
	r.into(nil, "POST", "/v1/settings", `{"consoleInBrowser":false}`)
	r.send(request{method: "POST", path: at + "/input", header: ways["gui"], body: typed("echo after-that\n")})
	if body := <-refused; !strings.Contains(body, "console-only-in-window") || strings.Contains(read, "after-that") {
		t.Errorf("it read %q and then got %s", read, body)
	}
}
