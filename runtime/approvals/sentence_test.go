package approvals

import (
	"testing"

	"sallyport/runtime/plugins"
)

func TestADecisionInOneLine(t *testing.T) {
	run := func(transport plugins.Transport, action, url string) Decision {
		return Decision{Stage: StageRun, Action: action, Plugin: "notes", Server: "main",
			Fields: Fields{Version: "1.0.0", Transport: string(transport), URL: Text{Expanded: url}}}
	}
	byHand := run(plugins.Stdio, "install", "")
	byHand.Plugin, byHand.Server, byHand.Fields.Version = plugins.ByHand, "my\u202eown", ""
	for want, d := range map[string]Decision{
		"notes 1.0.0 wants to run a program on this computer.":   run(plugins.Stdio, "install", ""),
		"notes changed and waits for a new approval.":            run(plugins.Stdio, "upgrade", ""),
		"notes asks to run again as it was approved.":            run(plugins.Stdio, "reconnect", ""),
		"notes wants to connect to mcp.example.com.":             run(plugins.StreamableHTTP, "install", "https://mcp.example.com/mcp"),
		"notes wants to connect to another computer.":            run(plugins.SSE, "install", "%"),
		"notes wants to give agents skills.":                     run(plugins.Skills, "install", ""),
		`my\u{202E}own wants to run a program on this computer.`: byHand,
		"Which tools of notes may agents call?":                  {Stage: StageTools, Plugin: "notes", Server: "main"},
		"claude wants notes/main to run echo.":                   {Plugin: "notes", Server: "main", Call: &CallQuestion{Client: "claude", Tool: "echo"}},
	} {
		if got := d.Sentence(); got != want {
			t.Errorf("it says %q, and not %q", got, want)
		}
	}
}
