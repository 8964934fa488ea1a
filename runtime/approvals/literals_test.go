package approvals_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/plugins"
)

// aToken has the shape of a credential and is none.
const aToken = "gh" + "p_0123456789abcdefghijklmnopqrstuvwxyz"

// spec/child-environment.md 5: a credential is refused wherever it is written, in
// every format, before anything is asked; and what is refused is named, not shown.
func TestALiteralIsRefusedWhereverItStands(t *testing.T) {
	r := approvalstest.New(t)
	formats := []string{plugins.AgentPlugins, plugins.ClaudeCode, plugins.Codex, plugins.MCPB, plugins.ByHand}
	for _, row := range []struct {
		what   string
		edit   func(c *plugins.Connector)
		code   string
		says   string
		mended string
	}{
		{"a variable by its name", func(c *plugins.Connector) { c.Launch.Env = []plugins.Value{{Name: "API_KEY", Value: "hunter2"}} },
			"literal-secret", `"API_KEY"`, "sallyport secrets move demo/main API_KEY"},
		{"a variable by its shape", func(c *plugins.Connector) { c.Launch.Env = []plugins.Value{{Name: "MODE", Value: aToken}} },
			"literal-secret", `"MODE" looks like a GitHub token`, "sallyport secrets move demo/main MODE"},
		{"a variable of the operator's", func(c *plugins.Connector) {
			c.Launch.Env = []plugins.Value{{Name: "API_KEY", Value: "hunter2", FromOperator: true}}
		}, "literal-secret", `"API_KEY"`, "sallyport secrets move demo/main API_KEY"},
		{"a placeholder", func(c *plugins.Connector) {
			c.Launch.Env = []plugins.Value{{Name: "API_KEY", Value: "your-api-key-here"}}
		}, "literal-placeholder", `"API_KEY" is a placeholder`, "sallyport secrets set API_KEY"},
		{"an argument", func(c *plugins.Connector) { c.Launch.Args = []string{"server.js", "--api-key=hunter2"} },
			"literal-secret", "args[1]", "not-secret demo/main 'args[1]'"},
		{"an argument behind its option", func(c *plugins.Connector) { c.Launch.Args = []string{"server.js", "--token", "hunter2"} },
			"literal-secret", "args[2]", "not-secret demo/main 'args[2]'"},
		{"a header", func(c *plugins.Connector) {
			c.Transport, c.Launch = plugins.StreamableHTTP, plugins.Launch{URL: "https://api.example.com/mcp",
				Headers: []plugins.Value{{Name: "Authorization", Value: "Bearer " + aToken}}}
		}, "literal-secret", `the header "Authorization" looks like a GitHub token`, "sallyport secrets move demo/main Authorization"},
		{"a header of the operator's", func(c *plugins.Connector) {
			c.Transport, c.Launch = plugins.StreamableHTTP, plugins.Launch{URL: "https://api.example.com/mcp",
				Headers: []plugins.Value{{Name: "X-Api-Key", Value: "hunter2", FromOperator: true}}}
		}, "literal-secret", `the header "X-Api-Key"`, "sallyport secrets move demo/main X-Api-Key"},
		{"an address", func(c *plugins.Connector) {
			c.Transport, c.Launch = plugins.StreamableHTTP, plugins.Launch{URL: "https://api.example.com/mcp?apiKey=hunter2"}
		}, "literal-secret", "the address", "not-secret demo/main url"},
	} {
		for _, format := range formats {
			r.Edit(func(c *plugins.Connector) {
				*c, _ = bare(r)
				c.Format = format
				row.edit(c)
			})
			_, err := r.Gate.Ask(t.Context(), r.ID, approvalstest.Operator)
			refusal := refusalIn(err)
			if refusal == nil || refusal.Code != row.code || !strings.Contains(refusal.Sentence, row.says) || !strings.Contains(refusal.Next, row.mended) {
				t.Errorf("%s in %s: %v, next: %+v", row.what, format, err, refusal)
			}
			status, _ := json.Marshal(r.Gate.Status(t.Context(), r.ID))
			if said := string(status) + err.Error(); strings.Contains(said, "hunter2") || strings.Contains(said, aToken) {
				t.Errorf("%s in %s: the value is in %s", row.what, format, said)
			}
		}
	}
}

// bare is the connector without the edits.
func bare(r *approvalstest.Rig) (plugins.Connector, bool) {
	return plugins.Connector{ID: r.ID, Version: "1.4.0", Format: plugins.AgentPlugins, Source: "demo", Root: r.Root, Transport: plugins.Stdio,
		Launch: plugins.Launch{Command: "node", Args: []string{"server.js"}}}, true
}

func refusalIn(err error) *coded.Error {
	refusal, _ := err.(*coded.Error)
	return refusal
}

func factsWith(v approvals.Review, code string) (facts []approvals.Fact) {
	return slices.DeleteFunc(slices.Clone(v.Facts), func(f approvals.Fact) bool { return f.Code != code })
}

// A false alarm is approved by name: it is said in the review, is part of what is
// approved, and ends with the word.
func TestAFalseAlarmIsApprovedByName(t *testing.T) {
	r := approvalstest.New(t)
	r.Edit(func(c *plugins.Connector) { c.Launch.Env = []plugins.Value{{Name: "STORE_API_KEY", Value: "hunter2"}} })
	if _, err := r.Gate.Ask(t.Context(), r.ID, approvalstest.Operator); coded.Of(err) != "literal-secret" {
		t.Fatalf("without a word: %v", err)
	}
	r.Edit(func(c *plugins.Connector) { c.Options.NotSecret = []string{"STORE_API_KEY"} })
	r.Ask()
	facts := factsWith(review(t, r), approvals.FactNotSecret)
	if len(facts) != 1 || facts[0].Red || facts[0].Sentence != "you said that this is no secret: STORE_API_KEY" {
		t.Errorf("the review says %+v", facts)
	}
	r.Approve(offer, "read_notes")
	r.Grant()
	r.Edit(func(c *plugins.Connector) { c.Options.NotSecret = []string{"OTHER", "STORE_API_KEY"} })
	if _, err := r.Gate.Grant(t.Context(), r.ID); coded.Of(err) != "options-changed" {
		t.Errorf("with one word more: %v", err)
	}
	r.Edit(func(c *plugins.Connector) { c.Options.NotSecret = nil })
	if _, err := r.Gate.Grant(t.Context(), r.ID); coded.Of(err) != "literal-secret" {
		t.Errorf("with the word taken back: %v", err)
	}
}

// What is certainly a credential is a warning whatever was said, and is not shown.
func TestACertainShapeStaysAWarning(t *testing.T) {
	r := approvalstest.New(t)
	r.Edit(func(c *plugins.Connector) {
		c.Launch.Env = []plugins.Value{{Name: "MODE", Value: aToken}}
		c.Launch.Args = append(slices.Clone(c.Launch.Args), "--mode="+aToken, "--api-key=visible")
		c.Options.NotSecret = []string{"MODE", "args[1]", "args[2]"}
	})
	r.Ask()
	v := review(t, r)
	facts := factsWith(v, approvals.FactNotSecret)
	if len(facts) != 3 || !facts[0].Red || !facts[1].Red || facts[2].Red ||
		facts[0].Sentence != "MODE looks like a GitHub token, and you said that it is no secret" ||
		facts[2].Sentence != "you said that this is no secret: args[2]" {
		t.Errorf("the review says %+v", facts)
	}
	if got := strings.Join(v.Runs.Args[1:], " "); got != "--mode=(hidden) --api-key=visible" || v.Literals[0].Value != "(hidden)" {
		t.Errorf("the review shows %s and %+v", got, v.Literals)
	}
	said, _ := json.Marshal(v)
	if strings.Contains(string(said), aToken) {
		t.Errorf("the review holds the value: %s", said)
	}
}

// What the operator sets takes the place of a package's literal, which is still said
// to be there.
func TestAPackagesLiteralIsReplaced(t *testing.T) {
	r := approvalstest.New(t)
	r.Edit(func(c *plugins.Connector) {
		c.Launch.Replaced = []plugins.Value{{Name: "TOKEN", Value: aToken}, {Name: "API_KEY", Value: "your-api-key-here"}, {Name: "MODE", Value: "fast"}}
		c.Launch.Env = []plugins.Value{{Name: "TOKEN", Value: "secret:NOTES", FromOperator: true}}
		c.Requested.Secrets = []string{"NOTES"}
	})
	r.Write("mcp.note", "token: "+aToken+"\n", 0o644)
	r.Approve(offer, "read_notes")
	facts := factsWith(review(t, r), approvals.FactLeftIn)
	if len(facts) != 1 || facts[0].Red || facts[0].Sentence != "the package still holds a GitHub token in TOKEN; what you set is used in its place" {
		t.Errorf("the review says %+v", facts)
	}
	r.Write("mcp.note", "more\ntoken: "+aToken+"\n", 0o644)
	diff, err := r.Gate.Diff(t.Context(), r.ID)
	said, _ := json.Marshal(diff)
	if err != nil || !strings.Contains(string(said), "token: (hidden)") || strings.Contains(string(said), aToken) {
		t.Errorf("the difference of a file shows it: %s, %v", said, err)
	}
}

// An approval from a time that did not know a shape is compared without showing it.
func TestADifferenceShowsNoCredential(t *testing.T) {
	old := approvals.Fields{
		Args:    []approvals.Text{{Declared: "--token=hunter2", Expanded: "--token=hunter2"}},
		Env:     []approvals.Entry{{Name: "API_KEY", Value: "hunter2"}, {Name: "MODE", Value: "fast"}},
		URL:     approvals.Text{Declared: "https://x.example/?apiKey=hunter2", Expanded: "https://x.example/?apiKey=hunter2"},
		Headers: []approvals.Entry{{Name: "X-Api-Key", Value: "hunter2"}},
	}
	now := approvals.Fields{
		Args: []approvals.Text{{Declared: "--token=hunter3", Expanded: "--token=hunter3"}},
		Env:  []approvals.Entry{{Name: "API_KEY", Value: "secret:A", Operator: true}, {Name: "MODE", Value: "slow"}},
		URL:  approvals.Text{Declared: "https://x.example/?apiKey=hunter3", Expanded: "https://x.example/?apiKey=hunter3"},
	}
	changes := approvals.Changes(old, now)
	said, _ := json.Marshal(changes)
	if strings.Contains(string(said), "hunter") || len(changes) != 5 {
		t.Errorf("%d changes: %s", len(changes), said)
	}
	for _, want := range []string{`"old":"(hidden)","new":"secret:A (yours)"`, `"old":"fast","new":"slow"`} {
		if !strings.Contains(string(said), want) {
			t.Errorf("%s is not in %s", want, said)
		}
	}
}
