package env

import (
	"context"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// wordsRequest is a connector of that format, with folders that a second pass would
// betray.
func wordsRequest(format string, settings ...plugins.Setting) Request {
	return Request{
		Parent: Parent{System: "linux", Vars: map[string]string{"HOME": "/home/${X}", "LISTED": "${HOME}", "ONLY_SECRET": "s", "UNLISTED": "u"}},
		Root:   "/r/${HOME}", Data: "/d", Dialect: plugins.DialectOf(format), Settings: settings,
		Inherit: []string{"LISTED", "UNSET"}, Secrets: []string{"KEY", "ONLY_SECRET"},
	}
}

// C32: what each format defines expands, once, in every field alike; anything else
// stops with its name.
func TestEachFormatExpandsWhatItDefinesAndNothingElse(t *testing.T) {
	for _, row := range []struct{ format, text, want, code string }{
		{plugins.AgentPlugins, "${PLUGIN_ROOT}:${PLUGIN_DATA}", "/r/${HOME}:/d", ""},
		{plugins.AgentPlugins, "${CLAUDE_PLUGIN_ROOT} ${__dirname} ${HOME} ${user_config.x} ~/x", "${CLAUDE_PLUGIN_ROOT} ${__dirname} ${HOME} ${user_config.x} ~/x", ""},
		{plugins.ClaudeCode, "${CLAUDE_PLUGIN_ROOT}:${CLAUDE_PLUGIN_DATA}:${HOME}", "/r/${HOME}:/d:/home/${X}", ""},
		{plugins.ClaudeCode, "${LISTED}", "${HOME}", ""},
		{plugins.ClaudeCode, "${UNSET:-x${HOME}", "x${HOME", ""},
		{plugins.ClaudeCode, "${UNSET}", "", "env-unset"},
		{plugins.ClaudeCode, "${UNLISTED}", "", "reference-not-allowed"},
		{plugins.ClaudeCode, "${UNLISTED:-x}", "", "reference-not-allowed"},
		{plugins.ClaudeCode, "${PLUGIN_ROOT}", "", "reference-not-allowed"},
		{plugins.ClaudeCode, "${env:LISTED}", "", "placeholder-unknown"},
		{plugins.ClaudeCode, "${secret:KEY}", "", "placeholder-unknown"},
		{plugins.ClaudeCode, "${input:tok}", "", "placeholder-unknown"},
		{plugins.ClaudeCode, "secret:KEY", "secret:KEY", ""},
		{plugins.ClaudeCode, "~/x $LISTED %APPDATA%", "~/x $LISTED %APPDATA%", ""},
		{plugins.ClaudeCode, "${HOME", "", "reference-invalid"},
		{plugins.Codex, "${PLUGIN_ROOT}:${CLAUDE_PLUGIN_ROOT}:${PLUGIN_DATA}", "/r/${HOME}:/r/${HOME}:/d", ""},
		{plugins.Codex, "${HOME}", "", "reference-not-allowed"},
		{plugins.Codex, "${LISTED}", "${HOME}", ""},
		{plugins.Codex, "${user_config.x}", "", "reference-invalid"},
		{plugins.Codex, "${env:LISTED}", "", "placeholder-unknown"},
		{plugins.MCPB, "${__dirname}${/}x${pathSeparator}${HOME}", "/r/${HOME}/x//home/${X}", ""},
		{plugins.MCPB, "${DESKTOP}:${DOCUMENTS}:${DOWNLOADS}", "/home/${X}/Desktop:/home/${X}/Documents:/home/${X}/Downloads", ""},
		{plugins.MCPB, "${PLUGIN_ROOT}", "", "placeholder-unknown"},
		{plugins.MCPB, "${LISTED}", "", "placeholder-unknown"},
		{plugins.MCPB, "${user_config.nothing}", "", "placeholder-unknown"},
		{plugins.ByHand, "~/x", "/home/${X}/x", ""},
		{plugins.ByHand, "~", "/home/${X}", ""},
		{plugins.ByHand, "a~/x", "a~/x", ""},
		{plugins.ByHand, "~other/x", "~other/x", ""},
		{plugins.ByHand, "${HOME}:${LISTED}:${env:LISTED}", "/home/${X}:${HOME}:${HOME}", ""},
		{plugins.ByHand, "env:LISTED", "${HOME}", ""},
		{plugins.ByHand, "${PLUGIN_ROOT}", "", "reference-not-allowed"},
		{plugins.ByHand, "secret:KEY", "", "secret-in-args"},
		{plugins.ByHand, "--key=${secret:KEY}", "", "secret-in-args"},
		{plugins.ByHand, "${ONLY_SECRET}", "", "secret-in-args"},
	} {
		got, err := WordsOf(wordsRequest(row.format)).One("command", row.text)
		if got != row.want || coded.Of(err) != row.code {
			t.Errorf("%s %q: got %q %v, want %q %s", row.format, row.text, got, err, row.want, row.code)
		}
		if err != nil && !strings.Contains(err.Error(), `"command"`) && !strings.Contains(err.Error(), "command") {
			t.Errorf("%s %q: the error does not say where: %v", row.format, row.text, err)
		}
		words, err := WordsOf(wordsRequest(row.format)).Arguments([]string{row.text})
		if coded.Of(err) != row.code || err == nil && (len(words) != 1 || words[0] != Word{row.text, row.want}) {
			t.Errorf("%s %q as an argument: got %v %v", row.format, row.text, words, err)
		}
	}
}

func TestTheSameTextMeansTheSameInTheEnvironment(t *testing.T) {
	for _, row := range []struct{ format, text, want, code string }{
		{plugins.AgentPlugins, "${PLUGIN_ROOT}${HOME}", "/r/${HOME}${HOME}", ""},
		{plugins.ClaudeCode, "${CLAUDE_PLUGIN_ROOT}${LISTED}", "/r/${HOME}${HOME}", ""},
		{plugins.ClaudeCode, "Bearer ${ONLY_SECRET}", "Bearer s", ""},
		{plugins.ClaudeCode, "${UNLISTED}", "", "reference-not-allowed"},
		{plugins.MCPB, "${user_config.key}", "value of KEY", ""},
		{plugins.MCPB, "x${user_config.name}y", "x${HOME} secretsy", ""},
		{plugins.MCPB, "${user_config.folder}", "/home/${X}/notes", ""},
		{plugins.MCPB, "${user_config.several}", "", "setting-several"},
		{plugins.MCPB, "${user_config.needed}", "", "setting-missing"},
		{plugins.MCPB, "${user_config.open}", "", "literal-secret"},
		{plugins.ByHand, "~/x", "/home/${X}/x", ""},
		{plugins.ByHand, "secret:KEY", "value of KEY", ""},
	} {
		request := wordsRequest(row.format, settings()...)
		request.Declared = []Declared{{Name: "VAR", Value: row.text}}
		plan, err := Build(request)
		if err != nil {
			if coded.Of(err) != row.code {
				t.Errorf("%s %q: %v, want %s", row.format, row.text, err, row.code)
			}
			continue
		}
		environ, err := plan.Environ(context.Background(), vault{"KEY": "value of KEY"})
		if entry(environ, "VAR") != row.want || coded.Of(err) != row.code {
			t.Errorf("%s %q: got %q %v", row.format, row.text, entry(environ, "VAR"), err)
		}
	}
}

func settings() []plugins.Setting {
	return []plugins.Setting{
		{Key: "blank"}, {Key: "empty", Value: []string{""}, Default: []string{"unused"}},
		{Key: "folder", Default: []string{"${HOME}/notes"}},
		{Key: "key", Sensitive: true, Value: []string{"secret:KEY"}},
		{Key: "name", Value: []string{"${HOME} secrets"}},
		{Key: "needed", Required: true},
		{Key: "open", Sensitive: true, Value: []string{"written out"}},
		{Key: "several", Multiple: true, Value: []string{"/a", "/b ${HOME}"}},
	}
}

// C32: a blank optional value removes the variable or the argument, several values
// are several arguments, and a user's value is never looked at again.
func TestSettingsInArguments(t *testing.T) {
	for _, row := range []struct {
		what string
		args []string
		want string
		code string
	}{
		{"a value is not expanded", []string{"-n", "${user_config.name}"}, "-n|${HOME} secrets", ""},
		{"a default is", []string{"${user_config.folder}"}, "/home/${X}/notes", ""},
		{"without a value the argument goes", []string{"a", "${user_config.blank}", "b"}, "a|b", ""},
		{"and so does one that only holds it", []string{"a", "--x=${user_config.blank}", "b"}, "a|b", ""},
		{"a blank value is no default", []string{"a", "${user_config.empty}"}, "a", ""},
		{"several values are several arguments", []string{"-d", "${user_config.several}", "z"}, "-d|/a|/b ${HOME}|z", ""},
		{"several values in the midst of a text", []string{"--d=${user_config.several}"}, "", "setting-several"},
		{"a secret is no argument", []string{"${user_config.key}"}, "", "secret-in-args"},
		{"a required one", []string{"${user_config.needed}"}, "", "setting-missing"},
	} {
		words, err := WordsOf(wordsRequest(plugins.MCPB, settings()...)).Arguments(row.args)
		var got []string
		for _, word := range words {
			got = append(got, word.Expanded)
		}
		if strings.Join(got, "|") != row.want || coded.Of(err) != row.code {
			t.Errorf("%s: got %q %v", row.what, got, err)
		}
	}
	request := wordsRequest(plugins.MCPB, settings()...)
	request.Declared = []Declared{{Name: "OPTIONAL", Value: "${user_config.blank}"}, {Name: "KEPT", Value: ""}}
	plan, err := Build(request)
	if err != nil {
		t.Fatal(err)
	}
	environ, err := plan.Environ(context.Background(), nil)
	if text := strings.Join(environ, "\n") + "\n"; err != nil || strings.Contains(text, "OPTIONAL") || !strings.Contains(text, "KEPT=\n") {
		t.Errorf("a blank optional value removes the variable: %v %v", environ, err)
	}
}

// What an identity holds: folders as the caller's symbols, references by name.
func TestValueKeepsReferences(t *testing.T) {
	request := wordsRequest(plugins.MCPB, settings()...)
	request.Root = "${PLUGIN_ROOT}"
	for text, want := range map[string]string{
		"${__dirname}/x": "${PLUGIN_ROOT}/x", "${user_config.key}": "${secret:KEY}", "${user_config.name}": "${HOME} secrets",
	} {
		if got, ok, err := WordsOf(request).Value(Declared{Name: "V", Value: text}); got != want || !ok || err != nil {
			t.Errorf("%s: got %q %v %v", text, got, ok, err)
		}
	}
	request.Dialect = plugins.DialectOf(plugins.ClaudeCode)
	if got, _, err := WordsOf(request).Value(Declared{Name: "V", Value: "a${LISTED:-d}"}); got != "a${env:LISTED:-d}" || err != nil {
		t.Errorf("got %q %v", got, err)
	}
	request.Dialect = plugins.DialectOf(plugins.AgentPlugins)
	if got, _, err := WordsOf(request).Value(Declared{Name: "V", Value: "secret:KEY", References: true}); got != "${secret:KEY}" || err != nil {
		t.Errorf("the operator's own: got %q %v", got, err)
	}
}

func TestClaudePluginsAreToldTheirFoldersByTheirNames(t *testing.T) {
	for _, format := range []string{plugins.ClaudeCode, plugins.Codex, plugins.AgentPlugins, plugins.MCPB} {
		plan, err := Build(wordsRequest(format))
		if err != nil {
			t.Fatal(err)
		}
		environ, _ := plan.Environ(context.Background(), nil)
		want := ""
		if format == plugins.ClaudeCode || format == plugins.Codex {
			want = "/r/${HOME}"
		}
		if entry(environ, "CLAUDE_PLUGIN_ROOT") != want || entry(environ, "PLUGIN_ROOT") != "/r/${HOME}" {
			t.Errorf("%s: %v", format, environ)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, seed := range []string{"${CLAUDE_PLUGIN_ROOT}/x", "~/x", "secret:KEY", "${user_config.several}", "${A:-${B}}", "${/}${", "env:LISTED"} {
		f.Add(seed, uint8(1))
	}
	formats := []string{plugins.AgentPlugins, plugins.ClaudeCode, plugins.Codex, plugins.MCPB, plugins.ByHand}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		format := formats[int(which)%len(formats)]
		request := wordsRequest(format, settings()...)
		words, err := WordsOf(request).Arguments([]string{text})
		if err != nil {
			if coded.Of(err) == "" {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		if format != plugins.ByHand && !strings.Contains(text, "${") && (len(words) != 1 || words[0].Expanded != text) {
			t.Fatalf("%s %q became %q", format, text, words)
		}
	})
}
