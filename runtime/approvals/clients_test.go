package approvals_test

import (
	"strings"
	"testing"

	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/plugins"
)

func TestAClientsTokenAndScope(t *testing.T) {
	r := approvalstest.New(t)
	other := plugins.ID{Plugin: "other", Server: "main"}
	token, err := r.Gate.AddClient(t.Context(), "Claude Code", approvals.Scope{Only: []string{"demo/main:read_notes"}}, operator)
	if err != nil || !strings.HasPrefix(token, "sp_") {
		t.Fatal(token, err)
	}
	r.Reopen()
	c, ok := r.Gate.ClientByToken(token)
	if !ok || c.Name != "Claude Code" || c.By != operator {
		t.Fatalf("got %+v %v", c, ok)
	}
	for _, wrong := range []string{"", token + "x", token[:len(token)-1], "sp_"} {
		if _, ok := r.Gate.ClientByToken(wrong); ok {
			t.Fatalf("%q is taken for a token", wrong)
		}
	}
	if !r.Gate.Visible(c.Name, r.ID) || r.Gate.Visible(c.Name, other) || r.Gate.Visible("stranger", r.ID) {
		t.Fatal("the scope shows too much or too little")
	}
	if !r.Gate.MayCall(c.Name, r.ID, "read_notes") || r.Gate.MayCall(c.Name, r.ID, "delete_notes") || r.Gate.MayCall(c.Name, other, "read_notes") {
		t.Fatal("the scope covers too much or too little")
	}
	r.Approve(offer, "read_notes", "delete_notes")
	grant := r.Grant()
	r.Gate.Live(grant, offer)
	if _, err := r.Gate.CallGrant(t.Context(), grant, "read_notes", c.Name); err != nil {
		t.Fatal(err)
	}
	_, err = r.Gate.CallGrant(t.Context(), grant, "delete_notes", c.Name)
	wantCode(t, err, "permission-denied")
	hidden := err.Error()
	_, err = r.Gate.CallGrant(t.Context(), grant, "no_such_tool", c.Name)
	if err.Error() != hidden {
		t.Fatal("a client can tell a tool that it may not see from one that is not there")
	}
	if err := r.Gate.SetClientScope(t.Context(), c.Name, approvals.Scope{Only: []string{"demo/main"}, OriginalNames: true}, operator); err != nil {
		t.Fatal(err)
	}
	if !r.Gate.MayCall(c.Name, r.ID, "delete_notes") || !r.Gate.OriginalNames(c.Name) {
		t.Fatal("the new scope does not count")
	}
}

func TestALineOfAScopeHasOneReading(t *testing.T) {
	r := approvalstest.New(t)
	server := plugins.ID{Plugin: "demo", Server: "main:read_notes"}
	for _, row := range []struct {
		what                    string
		scope                   approvals.Scope
		id                      plugins.ID
		tool                    string
		visible, mayCall, whole bool
	}{
		{"all", approvals.Scope{All: true}, r.ID, "x", true, true, true},
		{"a connector", approvals.Scope{Only: []string{"demo/main"}}, r.ID, "x", true, true, true},
		{"a tool", approvals.Scope{Only: []string{"demo/main:read_notes"}}, r.ID, "read_notes", true, true, false},
		{"another tool", approvals.Scope{Only: []string{"demo/main:read_notes"}}, r.ID, "x", true, false, false},
		{"a tool with a colon", approvals.Scope{Only: []string{"demo/main:a:b"}}, r.ID, "a:b", true, true, false},
		{"a server that is named as that tool is written", approvals.Scope{Only: []string{"demo/main:read_notes"}}, server, "x", false, false, false},
		{"that server with the scope of everything", approvals.Scope{All: true}, server, "x", true, true, true},
		{"a connector whose name begins alike", approvals.Scope{Only: []string{"demo/main"}}, plugins.ID{Plugin: "demo", Server: "main2"}, "x", false, false, false},
		{"nothing", approvals.Scope{}, r.ID, "x", false, false, false},
	} {
		if err := r.Gate.SetClientScope(t.Context(), approvalstest.Client, row.scope, operator); err != nil {
			t.Fatal(row.what, err)
		}
		visible, mayCall := r.Gate.Visible(approvalstest.Client, row.id), r.Gate.MayCall(approvalstest.Client, row.id, row.tool)
		if whole := r.Gate.Whole(approvalstest.Client, row.id); visible != row.visible || mayCall != row.mayCall || whole != row.whole {
			t.Errorf("%s: visible %v, may call %v, whole %v", row.what, visible, mayCall, whole)
		}
	}
}

func TestSessionTokensEndWithTheirClient(t *testing.T) {
	r := approvalstest.New(t)
	token, release, err := r.Gate.NewSessionToken(approvalstest.Client)
	if err != nil {
		t.Fatal(err)
	}
	again, _, _ := r.Gate.NewSessionToken(approvalstest.Client)
	if c, ok := r.Gate.ClientByToken(token); !ok || c.Name != approvalstest.Client {
		t.Fatal("a session token is not taken")
	}
	release()
	if _, ok := r.Gate.ClientByToken(token); ok {
		t.Fatal("a released token is taken")
	}
	if err := r.Gate.RemoveClient(t.Context(), approvalstest.Client, operator); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Gate.ClientByToken(again); ok {
		t.Fatal("the token outlives its client")
	}
	_, _, err = r.Gate.NewSessionToken(approvalstest.Client)
	wantCode(t, err, "client-unknown")
	if r.Gate.MayCall(approvalstest.Client, r.ID, "read_notes") {
		t.Fatal("a removed client may call")
	}
}

func TestClientsThatCannotBeAdded(t *testing.T) {
	r := approvalstest.New(t)
	all := approvals.Scope{All: true}
	for _, row := range []struct {
		code, name string
		scope      approvals.Scope
		by         approvals.By
	}{
		{"client-exists", approvalstest.Client, all, operator},
		{"client-name-invalid", "", all, operator},
		{"client-name-invalid", "Operator", all, operator},
		{"client-name-invalid", "a\u200bb", all, operator},
		{"client-name-invalid", strings.Repeat("x", 65), all, operator},
		{"scope-invalid", "a", approvals.Scope{Only: []string{"demo"}}, operator},
		{"scope-invalid", "a", approvals.Scope{All: true, Only: []string{"demo/main"}}, operator},
		{"scope-invalid", "a", approvals.Scope{All: true, OriginalNames: true}, operator},
		{"scope-invalid", "a", approvals.Scope{Only: []string{"a/b", "c/d"}, OriginalNames: true}, operator},
		{"answer-not-allowed", "a", all, approvals.By{User: "x", Via: approvals.ViaAgent}},
	} {
		_, err := r.Gate.AddClient(t.Context(), row.name, row.scope, row.by)
		wantCode(t, err, row.code)
	}
	if token, err := r.Gate.AddClient(t.Context(), "nothing", approvals.Scope{}, operator); err != nil || r.Gate.Visible("nothing", r.ID) {
		t.Fatal(token, err, "the zero scope sees something")
	}
}

func TestATamperedClientIsNoClient(t *testing.T) {
	r := approvalstest.New(t)
	token, err := r.Gate.AddClient(t.Context(), "narrow", approvals.Scope{Only: []string{"demo/main:read_notes"}}, operator)
	if err != nil {
		t.Fatal(err)
	}
	edit(t, r, `UPDATE sealed SET body = CAST(replace(CAST(body AS TEXT), '"all":false', '"all":true') AS BLOB) WHERE kind = 'client' AND id = 'narrow'`)
	r.Reopen()
	if _, ok := r.Gate.ClientByToken(token); ok {
		t.Fatal("a client whose scope was edited counts")
	}
	if _, ok := r.Gate.ClientByToken(token); ok || len(r.Gate.Problems()) != 1 {
		t.Fatal("no problem is told")
	}
	if err := r.Gate.RemoveClient(t.Context(), "narrow", operator); err != nil {
		t.Fatal(err)
	}
	if len(r.Gate.Problems()) != 0 {
		t.Fatal("the problem stays")
	}
}
