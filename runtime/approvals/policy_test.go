package approvals

import (
	"testing"
	"time"

	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// TestVerdict reads: with these lines in the policy, a call of notes/main:add by
// claude, of this class, under the approval d-1, is …
func TestVerdict(t *testing.T) {
	const tool = "notes/main:add"
	now := time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	rule := func(class permissions.Class, tool, client string, v Verdict) Rule {
		return Rule{Class: class, Tool: tool, Client: client, Verdict: v}
	}
	answer := func(lasting Lasting, approval string, until time.Time) Standing {
		return Standing{Tool: tool, Client: "claude", For: lasting, Approval: approval, Until: until, At: now}
	}
	for _, row := range []struct {
		name     string
		class    permissions.Class
		always   bool
		rules    []Rule
		standing []Standing
		session  []Standing
		doubtful bool
		want     Verdict
	}{
		{name: "read is allowed by default", class: "read", want: MayCall},
		{name: "write is asked by default", class: "write", want: MustAsk},
		{name: "destructive is asked by default", class: "destructive", want: MustAsk},
		{name: "unknown is asked by default", class: "unknown", want: MustAsk},
		{name: "a class that is absent is unknown", want: MustAsk},
		{name: "a class from the future is asked", class: "harmless", want: MustAsk},
		{name: "the class's rule comes before the default", class: "read", rules: []Rule{rule("read", "", "", NotAtAll)}, want: NotAtAll},
		{name: "a rule of another class says nothing", class: "write", rules: []Rule{rule("read", "", "", NotAtAll)}, want: MustAsk},
		{name: "the rule of unknown covers an absent class", rules: []Rule{rule("unknown", "", "", MayCall)}, want: MayCall},
		{name: "client and class come before the class", class: "write",
			rules: []Rule{rule("write", "", "", MayCall), rule("write", "", "claude", NotAtAll)}, want: NotAtAll},
		{name: "a rule of another client says nothing", class: "write", rules: []Rule{rule("write", "", "cursor", MayCall)}, want: MustAsk},
		{name: "the approval's own answer comes before client and class", class: "write", always: true,
			rules: []Rule{rule("write", "", "claude", NotAtAll)}, want: MayCall},
		{name: "the tool's rule comes before the approval's answer", always: true, rules: []Rule{rule("", tool, "", MustAsk)}, want: MustAsk},
		{name: "the tool's rule comes before client and class", class: "write",
			rules: []Rule{rule("write", "", "claude", MayCall), rule("", tool, "", NotAtAll)}, want: NotAtAll},
		{name: "client and tool come before the tool",
			rules: []Rule{rule("", tool, "", MayCall), rule("", tool, "claude", NotAtAll)}, want: NotAtAll},
		{name: "another tool's rule says nothing", rules: []Rule{rule("", tool+"2", "claude", MayCall)}, want: MustAsk},
		{name: "a standing answer comes before client and tool",
			rules: []Rule{rule("", tool, "claude", NotAtAll)}, standing: []Standing{answer(ForAlways, "d-1", time.Time{})}, want: MayCall},
		{name: "until I quit counts as well", session: []Standing{answer(ForSession, "d-1", time.Time{})}, want: MayCall},
		{name: "8 hours count until their end", standing: []Standing{answer(ForHours, "d-1", now.Add(time.Second))}, want: MayCall},
		{name: "and not at their end", standing: []Standing{answer(ForHours, "d-1", now)}, want: MustAsk},
		{name: "an answer under another approval does not count", standing: []Standing{answer(ForAlways, "d-0", time.Time{})}, want: MustAsk},
		{name: "an answer for once is none that stands", standing: []Standing{answer(ForOnce, "d-1", time.Time{})}, want: MustAsk},
		{name: "a policy that does not verify asks about everything", class: "read", always: true, doubtful: true, want: MustAsk},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := &policy{policyDocument: policyDocument{Rules: row.rules, Standing: row.standing}, session: row.session, doubtful: row.doubtful}
			got := p.verdict(callFacts{id: plugins.ID{Plugin: "notes", Server: "main"}, tool: "add", client: "claude",
				class: row.class, always: row.always, approval: "d-1", now: now})
			if got != row.want {
				t.Errorf("it is %q, want %q", got, row.want)
			}
		})
	}
}

func TestArgumentsText(t *testing.T) {
	for _, row := range []struct{ name, params, want string }{
		{"only the arguments", `{"name":"add","arguments":{"text":"hi"},"_meta":{"progressToken":1}}`, "{\n  \"text\": \"hi\"\n}"},
		{"no arguments", `{"name":"add"}`, "{}"},
		{"numbers as they were written", `{"arguments":{"n":10000000000000000001,"m":1e400}}`, "{\n  \"n\": 10000000000000000001,\n  \"m\": 1e400\n}"},
		{"secrets by their name, at any depth", `{"arguments":{"a":[{"API_Key":"s3","access-token":{"x":"s3"}}],"note":"n"}}`,
			"{\n  \"a\": [\n    {\n      \"API_Key\": \"(masked)\",\n      \"access-token\": \"(masked)\"\n    }\n  ],\n  \"note\": \"n\"\n}"},
		{"what hides is shown", `{"arguments":{"a":"x\u202ey\u001b[2J\u00a0"}}`, "{\n  \"a\": \"x\\u{202E}y\\u001b[2J\\u{00A0}\"\n}"},
		{"also in a name", `{"arguments":{"pass\u200bword":"x"}}`, "{\n  \"pass\\u{200B}word\": \"x\"\n}"},
		{"the same name twice is shown twice", `{"arguments":{"a":1,"a":2}}`, "{\n  \"a\": 1,\n  \"a\": 2\n}"},
		{"arguments twice are shown twice", `{"arguments":{"a":1},"arguments":{"a":2}}`,
			"{\n  \"arguments\": {\n    \"a\": 1\n  },\n  \"arguments\": {\n    \"a\": 2\n  }\n}"},
		{"what is sent besides is shown", `{"arguments":{},"requestState":"s"}`, "{\n  \"arguments\": {},\n  \"requestState\": \"s\"\n}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got, leftOut := argumentsText([]byte(row.params)); got != row.want || leftOut {
				t.Errorf("got (left out: %v)\n%s\nwant\n%s", leftOut, got, row.want)
			}
		})
	}
}

func FuzzArgumentsText(f *testing.F) {
	f.Add([]byte(`{"name":"add","arguments":{"token":"t","text":"hi"}}`))
	f.Add([]byte(`{"arguments":[[[`))
	f.Fuzz(func(t *testing.T, params []byte) {
		text, _ := argumentsText(params)
		if len(text) > maxArguments {
			t.Errorf("%d bytes", len(text))
		}
	})
}
