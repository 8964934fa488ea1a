package clients

import (
	"strings"
	"testing"
)

// TestAnEntryIsPutIn: every row is what a file looks like before and after.
func TestAnEntryIsPutIn(t *testing.T) {
	launch := Launch{Command: "/opt/sallyport", Args: []string{"mcp", "--client", "c"}}
	for _, row := range []struct {
		what, client, before, after string
	}{
		{"into a file that is not there", "cursor", "", "{\n  \"mcpServers\": {\n    \"sallyport\": {\n      \"command\": \"/opt/sallyport\",\n      \"args\": [\"mcp\", \"--client\", \"c\"]\n    }\n  }\n}\n"},
		{"into an empty object", "cursor", "{}\n", "{\n  \"mcpServers\": {\n    \"sallyport\": {\n      \"command\": \"/opt/sallyport\",\n      \"args\": [\"mcp\", \"--client\", \"c\"]\n    }\n  }\n}\n"},
		{
			"before the others, with their indentation", "cursor", "{\n\t\"mcpServers\": { // mine\n\t\t\"a\": {\"command\": \"x\"} // last\n\t}\n}\n",
			"{\n\t\"mcpServers\": { // mine\n\t\t\"sallyport\": {\n\t\t\t\"command\": \"/opt/sallyport\",\n\t\t\t\"args\": [\"mcp\", \"--client\", \"c\"]\n\t\t},\n\t\t\"a\": {\"command\": \"x\"} // last\n\t}\n}\n",
		},
		{"on one line where all is on one", "cursor", `{"mcpServers":{"a":{"command":"x"}}}`, `{"mcpServers":{"sallyport": {"command": "/opt/sallyport", "args": ["mcp", "--client", "c"]}, "a":{"command":"x"}}}`},
		{"with the line ends of the file", "vscode", "{\r\n  \"servers\": {\r\n  }\r\n}\r\n", "{\r\n  \"servers\": {\r\n    \"sallyport\": {\r\n      \"type\": \"stdio\",\r\n      \"command\": \"/opt/sallyport\",\r\n      \"args\": [\"mcp\", \"--client\", \"c\"]\r\n    }\r\n  }\r\n}\r\n"},
		{"beside other settings", "zed", "// Zed\n{\n  \"theme\": \"x\", // dark\n}\n", "// Zed\n{\n  \"context_servers\": {\n    \"sallyport\": {\n      \"source\": \"custom\",\n      \"command\": \"/opt/sallyport\",\n      \"args\": [\"mcp\", \"--client\", \"c\"]\n    }\n  },\n  \"theme\": \"x\", // dark\n}\n"},
		{"in the place of null", "cursor", "{\n  \"mcpServers\": null\n}", "{\n  \"mcpServers\": {\n    \"sallyport\": {\n      \"command\": \"/opt/sallyport\",\n      \"args\": [\"mcp\", \"--client\", \"c\"]\n    }\n  }\n}"},
		{"in the place of an older one", "cursor", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n    \"sallyport\": {\"command\": \"/old\"}\n  }\n}\n", "{\n  \"mcpServers\": {\n    \"sallyport\": {\n      \"command\": \"/opt/sallyport\",\n      \"args\": [\"mcp\", \"--client\", \"c\"]\n    },\n    \"a\": {\"command\": \"x\"}\n  }\n}\n"},
		{"with the command in a list", "opencode", "{\n  \"mcp\": {}\n}", "{\n  \"mcp\": {\n    \"sallyport\": {\n      \"type\": \"local\",\n      \"command\": [\"/opt/sallyport\", \"mcp\", \"--client\", \"c\"],\n      \"enabled\": true\n    }\n  }\n}"},
		{"where OpenCode keeps servers now", "opencode", "{\n  \"mcp\": {\n    \"servers\": {\n    }\n  }\n}", "{\n  \"mcp\": {\n    \"servers\": {\n      \"sallyport\": {\n        \"type\": \"local\",\n        \"command\": [\"/opt/sallyport\", \"mcp\", \"--client\", \"c\"],\n        \"enabled\": true\n      }\n    }\n  }\n}"},
		{"at the end of TOML", "codex", "model = \"o4\" # mine", "model = \"o4\" # mine\n\n[mcp_servers.sallyport]\ncommand = \"/opt/sallyport\"\nargs = [\"mcp\", \"--client\", \"c\"]\n"},
		{"first in YAML's block", "goose", "a: 1\nextensions:\n  # built in\n  developer:\n    type: builtin\n", "a: 1\nextensions:\n  # built in\n  sallyport:\n    enabled: true\n    type: stdio\n    name: sallyport\n    cmd: \"/opt/sallyport\"\n    args:\n      - mcp\n      - \"--client\"\n      - c\n    timeout: 300\n  developer:\n    type: builtin\n"},
		{"in the place of YAML's {}", "goose", "extensions: {} # none\nb: 2\n", "extensions: # none\n  sallyport:\n    enabled: true\n    type: stdio\n    name: sallyport\n    cmd: \"/opt/sallyport\"\n    args:\n      - mcp\n      - \"--client\"\n      - c\n    timeout: 300\nb: 2\n"},
		{"first in YAML's list", "continue", "name: x\nmcpServers:\n- name: a\n  command: y\n", "name: x\nmcpServers:\n- name: sallyport\n  command: \"/opt/sallyport\"\n  args:\n    - mcp\n    - \"--client\"\n    - c\n- name: a\n  command: y\n"},
	} {
		client, _ := ByName(row.client)
		p := client.places[0]
		if row.client == "goose" {
			p = client.places[1]
		}
		own := insertion{name: EntryName, value: client.entry(launch)}
		got, _, err := editor{p.format, client.shapeFor(p, row.before)}.edited(row.before, &own)
		if err != nil || got != row.after {
			t.Errorf("%s: %v\n%s\nnot\n%s", row.what, err, got, row.after)
		}
	}
}

// TestAnEntryIsTakenOut, and the comments around it stay.
func TestAnEntryIsTakenOut(t *testing.T) {
	for _, row := range []struct {
		what   string
		format format
		shape  shape
		before string
		after  string
	}{
		{"the only one", isJSON, mcpServers, "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}", "{\n  \"mcpServers\": {\n  }\n}"},
		{"the first", isJSON, mcpServers, "{\"mcpServers\": {\n  \"x\": {\"a\": [1, 2]}, // about x\n  // about y\n  \"y\": {}\n}}", "{\"mcpServers\": {\n  // about x\n  // about y\n  \"y\": {}\n}}"},
		{"the last", isJSON, mcpServers, "{\"mcpServers\": {\n  \"y\": {}, // about y\n  \"x\": {}\n}}", "{\"mcpServers\": {\n  \"y\": {} // about y\n}}"},
		{"the last with a comma", isJSON, mcpServers, "{\"mcpServers\": {\n  \"y\": {},\n  \"x\": {},\n}}", "{\"mcpServers\": {\n  \"y\": {},\n}}"},
		{"one on a line of several", isJSON, mcpServers, `{"mcpServers": {"y": {}, "x": {}, "z": {}}}`, `{"mcpServers": {"y": {}, "z": {}}}`},
		{"the last on a line", isJSON, mcpServers, `{"mcpServers": {"y": {}, "x": {}}}`, `{"mcpServers": {"y": {}}}`},
		{"one with a comment before its comma", isJSON, mcpServers, `{"mcpServers": {"x": {} /* c */, "y": {}}}`, `{"mcpServers": {/* c */ "y": {}}}`},
		{"a table", isTOML, codex, "a = 1\n\n[mcp_servers.x]\ncommand = \"x\" # own\nargs = [\n  \"1\",\n]\n\n[mcp_servers.x.env]\nA = \"1\"\n\n# about y\n[mcp_servers.y]\ncommand = \"y\"\n", "a = 1\n\n# about y\n[mcp_servers.y]\ncommand = \"y\"\n"},
		{"an inline table", isTOML, codex, "[mcp_servers]\nx = {command = \"x\"}\ny = {command = \"y\"}\n", "[mcp_servers]\ny = {command = \"y\"}\n"},
		{"dotted keys", isTOML, codex, "mcp_servers.x.command = \"x\"\nmcp_servers.y.command = \"y\"\nmcp_servers.x.args = []\n", "mcp_servers.y.command = \"y\"\n"},
		{"a block", isYAML, goose, "extensions:\n  y:\n    cmd: y\n  x:\n    cmd: x\n    args:\n    - a\n\n  # about z\n  z:\n    cmd: z\n", "extensions:\n  y:\n    cmd: y\n\n  # about z\n  z:\n    cmd: z\n"},
		{"the only block", isYAML, goose, "extensions: # mine\n  x:\n    cmd: x\nb: 1\n", "extensions: {} # mine\nb: 1\n"},
		{"an item", isYAML, serverList, "mcpServers:\n  - name: x\n    command: x\n  - command: y\n    name: y\n", "mcpServers:\n  - command: y\n    name: y\n"},
		{"the only item", isYAML, serverList, "mcpServers:\n- command: x\n  name: x\n", "mcpServers: []\n"},
	} {
		got, removed, err := editor{row.format, row.shape}.edited(row.before, nil, "x")
		if err != nil || got != row.after {
			t.Errorf("%s: %v\n%s\nnot\n%s", row.what, err, got, row.after)
			continue
		}
		if removed["x"] == "" {
			if row.format != isTOML {
				t.Errorf("%s: nothing is kept of it", row.what)
			}
			continue
		}
		// What was taken out can be put back, and is then what it was.
		back, _, err := editor{row.format, row.shape}.edited(got, &insertion{name: "x", raw: removed["x"]})
		before, _ := parse(row.format, row.before)
		after, _ := parse(row.format, back)
		if err != nil || !sameNode(before, after) {
			t.Errorf("%s: put back it is %v\n%s", row.what, err, back)
		}
	}
}

// TestWhatCannotBeEditedSafelyIsRefused: with nothing guessed.
func TestWhatCannotBeEditedSafelyIsRefused(t *testing.T) {
	for _, row := range []struct {
		what, client, text string
	}{
		{"servers that are text", "cursor", `{"mcpServers": "none"}`},
		{"a list at the top", "cursor", `[]`},
		{"servers that stand twice", "cursor", `{"mcpServers": {}, "mcpServers": {}}`},
		{"an inline table", "codex", "mcp_servers = {a = {command = \"x\"}}\n"},
		{"YAML in brackets", "goose", "extensions: {a: {cmd: x}}\n"},
		{"YAML that is all in brackets", "goose", "{extensions: {a: {cmd: x}}}\n"},
		{"YAML with an end of the document", "goose", "a: 1\n...\n"},
		{"invalid JSON", "cursor", `{"mcpServers": {`},
		{"invalid TOML", "codex", "a = = 1"},
		{"invalid YAML", "goose", "a: [1\nb"},
	} {
		client, _ := ByName(row.client)
		p := client.places[0]
		if row.client == "goose" {
			p = client.places[1]
		}
		own := insertion{name: EntryName, value: client.entry(Launch{Command: "/x"})}
		if got, _, err := (editor{p.format, client.shapeFor(p, row.text)}).edited(row.text, &own); err == nil {
			t.Errorf("%s was edited:\n%s", row.what, got)
		}
	}
}

// addAndTakeBack puts an entry in and takes it out again: what is left means the
// same, and every byte of before is still there in between.
func addAndTakeBack(t *testing.T, f format, s shape, text string) {
	e := editor{f, s}
	own := insertion{name: EntryName, value: plain(Launch{Command: `C:\Program Files\"x"`, Args: []string{"mcp", "", "é\u2028"}})}
	before, err := parse(f, text)
	if err != nil || e.find(before, EntryName) != nil {
		return
	}
	with, _, err := e.edited(text, &own)
	if err != nil {
		return // refused, which is always right
	}
	if !subsequence(text, with) && !strings.Contains(text, "null") && f != isYAML {
		t.Fatalf("bytes of\n%q\nare not in\n%q", text, with)
	}
	back, _, err := e.edited(with, nil, EntryName)
	if err != nil {
		return
	}
	after, err := parse(f, back)
	if err != nil || !sameNode(stripped(before, s.path, nil), stripped(after, s.path, nil)) {
		t.Fatalf("%q became\n%q and then\n%q: %v", text, with, back, err)
	}
}

func subsequence(part, whole string) bool {
	for i := 0; i < len(whole) && part != ""; i++ {
		if whole[i] == part[0] {
			part = part[1:]
		}
	}
	return part == ""
}

func FuzzJSON(f *testing.F) {
	for _, one := range fixtures() {
		if strings.Contains(one.file+one.linux, "json") {
			f.Add(one.text)
		}
	}
	f.Add("{\"mcpServers\": { // c\n \"a\": {} /* b */ , // d\n}}")
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range Parse(System{OS: "linux", Home: "/home/u"}, "a.json", []byte(text)) {
			convertAll(found)
		}
		addAndTakeBack(t, isJSON, mcpServers, text)
		addAndTakeBack(t, isJSON, vsSettings, text)
	})
}

func FuzzTOML(f *testing.F) {
	for _, one := range fixtures() {
		if strings.Contains(one.file, "toml") {
			f.Add(one.text)
		}
	}
	f.Add("mcp_servers.a.b = 1\n[[x]]\ny.z = [1,\n#c\n2]\n[mcp_servers.c]\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range Parse(System{OS: "linux", Home: "/home/u"}, "a.toml", []byte(text)) {
			convertAll(found)
		}
		addAndTakeBack(t, isTOML, codex, text)
	})
}

func FuzzYAML(f *testing.F) {
	for _, one := range fixtures() {
		if strings.Contains(one.file+one.linux, "yaml") {
			f.Add(one.text)
		}
	}
	f.Add("extensions: # c\n  a: &x\n    cmd: |\n      y\n  b: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			return
		}
		for _, found := range Parse(System{OS: "linux", Home: "/home/u"}, "a.yaml", []byte(text)) {
			convertAll(found)
		}
		addAndTakeBack(t, isYAML, goose, text)
		addAndTakeBack(t, isYAML, serverList, text)
	})
}

func FuzzEncoding(f *testing.F) {
	f.Add([]byte("\xff\xfe{\x00}\x00"))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if text, e, err := decode(raw); err == nil && string(e.encode(text)) != string(raw) {
			t.Fatalf("%q comes back as %q", raw, e.encode(text))
		}
	})
}

func convertAll(found Found) {
	for _, e := range found.Entries {
		_, _ = found.Convert(e)
	}
}
