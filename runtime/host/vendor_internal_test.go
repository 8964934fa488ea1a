package host

import (
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

func TestWhatCanBeVendored(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		args    []string
		url     bool
		want    string // package, program and arguments, or a code
	}{
		"npx":                    {"npx", []string{"-y", "@scope/pkg@1.2.3", "--port", "1"}, false, "@scope/pkg@1.2.3 [--port 1]"},
		"a program of a package": {"npx", []string{"-p", "pkg", "tool", "x"}, false, "pkg@ tool[x]"},
		"behind a shell":         {"sh", []string{"-c", "npx pkg dir"}, false, "pkg@ [dir]"},
		"two packages":           {"npx", []string{"-p", "a", "-p", "b", "tool"}, false, "vendor-unsupported"},
		"Python":                 {"uvx", []string{"pkg"}, false, "vendor-unsupported"},
		"a container":            {"docker", []string{"run", "img"}, false, "vendor-unsupported"},
		"a git address":          {"npx", []string{"github:a/b"}, false, "vendor-unsupported"},
		"nothing fetched":        {"node", []string{"server.js"}, false, "vendor-not-needed"},
		"a remote server":        {"", nil, true, "vendor-not-needed"},
	} {
		t.Run(name, func(t *testing.T) {
			connector := plugins.Connector{Transport: plugins.Stdio, Launch: plugins.Launch{Command: c.command, Args: c.args}}
			if c.url {
				connector.Transport = plugins.StreamableHTTP
			}
			fetch, err := vendored(connector)
			got := coded.Of(err)
			if err == nil {
				got = fetch.Package + "@" + fetch.Version + " " + fetch.Bin + bracketed(fetch.Args)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func bracketed(words []string) string {
	text := "["
	for i, word := range words {
		if i > 0 {
			text += " "
		}
		text += word
	}
	return text + "]"
}

// A package may set what is written out; what refers to the operator's own stays the
// operator's.
func TestReferencesStayTheOperators(t *testing.T) {
	literal, references := splitEnv([]plugins.Value{
		{Name: "LEVEL", Value: "debug", FromOperator: true},
		{Name: "TOKEN", Value: "secret:TOKEN", FromOperator: true},
		{Name: "HOST", Value: "env:HOST", FromOperator: true},
		{Name: "URL", Value: "https://${HOST}/x", FromOperator: true},
		{Name: "CONFIG", Value: "~/x.json", FromOperator: true},
		{Name: "OWN", Value: "secret:not-a-reference"},
	})
	if len(literal) != 2 || literal["LEVEL"] != "debug" || literal["OWN"] == "" {
		t.Errorf("written out are %v", literal)
	}
	if len(references) != 4 || references["TOKEN"] != "secret:TOKEN" {
		t.Errorf("references are %v", references)
	}
}

func TestTheNameOfAVendoredPlugin(t *testing.T) {
	for server, want := range map[string]string{"everything": "everything", "My Server": "my-server", "a__b": "a-b", "-x-": "x", "数据库": ""} {
		if got := vendorName(plugins.ID{Plugin: plugins.ByHand, Server: server}); got != want {
			t.Errorf("%q becomes %q, want %q", server, got, want)
		}
	}
	if got := vendorName(plugins.ID{Plugin: "other", Server: "main"}); got != "" {
		t.Errorf("a plugin's server becomes %q: the package names it", got)
	}
}

// What is written out would lie in the bundle's files and snapshot for good.
func TestACredentialThatIsWrittenOutIsNotVendored(t *testing.T) {
	const token = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
	value := func(name, value string) []plugins.Value {
		return []plugins.Value{{Name: name, Value: value, FromOperator: true}}
	}
	for name, c := range map[string]struct {
		launch plugins.Launch
		exempt []string
		want   string
	}{
		"in a variable":              {plugins.Launch{Env: value("GITHUB_TOKEN", token)}, nil, "literal-secret"},
		"in an argument":             {plugins.Launch{Args: []string{"pkg", "--token=" + token}}, nil, "literal-secret"},
		"a reference":                {plugins.Launch{Env: value("GITHUB_TOKEN", "secret:GITHUB_TOKEN")}, nil, ""},
		"an ordinary value":          {plugins.Launch{Env: value("LEVEL", "debug")}, nil, ""},
		"what is said to be no such": {plugins.Launch{Env: value("GITHUB_TOKEN", token)}, []string{"GITHUB_TOKEN"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := nothingWritten(plugins.Connector{Transport: plugins.Stdio, Launch: c.launch, Options: plugins.Options{NotSecret: c.exempt}})
			if coded.Of(err) != c.want || err != nil && strings.Contains(err.Error(), token) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
