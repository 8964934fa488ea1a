package env

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// sentinels are what no child may see unless it was approved by name.
var sentinels = map[string]string{
	"SENTINEL_SECRET": "SENTINEL-7f3a", "AWS_SECRET_ACCESS_KEY": "SENTINEL-aws", "AWS_SESSION_TOKEN": "SENTINEL-aws2",
	"GOOGLE_APPLICATION_CREDENTIALS": "/SENTINEL/gcp.json", "AZURE_CLIENT_SECRET": "SENTINEL-az", "OPENAI_API_KEY": "SENTINEL-oai",
	"ANTHROPIC_API_KEY": "SENTINEL-ant", "GITHUB_TOKEN": "SENTINEL-gh", "NPM_TOKEN": "SENTINEL-npm", "SSH_AUTH_SOCK": "/SENTINEL/agent",
	"DATABASE_URL": "postgres://SENTINEL", "LD_PRELOAD": "/SENTINEL.so", "DYLD_INSERT_LIBRARIES": "/SENTINEL.dylib",
	"NODE_OPTIONS": "--require SENTINEL", "PYTHONPATH": "/SENTINEL", "BASH_ENV": "/SENTINEL", "HTTP_PROXY": "http://u:SENTINEL@proxy:1",
	"PLUGIN_ROOT": "/SENTINEL", "LC_BAD-NAME": "SENTINEL", "XLC_ALL": "SENTINEL", "BASH_FUNC_ls%%": "() { SENTINEL; }",
}

func parentWith(system string, vars map[string]string) Parent {
	p := Parent{System: system, Vars: map[string]string{}}
	for name, value := range sentinels {
		p.Vars[name] = value
	}
	for name, value := range vars {
		p.Vars[name] = value
	}
	return p
}

func TestEachSystemGivesItsBaseListAndNothingElse(t *testing.T) {
	windows := map[string]string{}
	for _, name := range baseWindows {
		windows[strings.ToLower(name)] = "v"
	}
	windows["path"] = `C:\Windows;.;relative`
	posix := map[string]string{"PATH": "/usr/bin::.:rel:/bin", "HOME": "/home/u", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "LANGUAGE": "de", "LC_ALL": "C", "LC_TIME": "C", "TZ": "UTC", "Path": "no", "home": "no"}
	posixWant := []string{"HOME=/home/u", "LANG=C.UTF-8", "LANGUAGE=de", "LC_ALL=C", "LC_TIME=C", "PATH=/usr/bin:/bin",
		"PLUGIN_DATA=/data", "PLUGIN_ROOT=/root", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "TMPDIR=/tmp", "TZ=UTC"}
	windowsWant := []string{"PLUGIN_DATA=/data", "PLUGIN_ROOT=/root", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "PYTHONUTF8=1", `path=C:\Windows`}
	for _, name := range baseWindows {
		if name != "PATH" {
			windowsWant = append(windowsWant, strings.ToLower(name)+"=v")
		}
	}
	for _, row := range []struct {
		system string
		vars   map[string]string
		want   []string
	}{{"linux", posix, posixWant}, {"darwin", posix, posixWant}, {"windows", windows, windowsWant}} {
		t.Run(row.system, func(t *testing.T) {
			got := environ(t, Request{Parent: parentWith(row.system, row.vars), Root: "/root", Data: "/data"})
			slices.Sort(row.want)
			slices.Sort(got)
			if !slices.Equal(got, row.want) {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
			if strings.Contains(strings.Join(got, "\n"), "SENTINEL") {
				t.Error("a sentinel reached the child")
			}
		})
	}
}

func environ(t *testing.T, r Request) []string {
	t.Helper()
	plan, err := Build(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := plan.Environ(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestLaterSourcesWin(t *testing.T) {
	for _, row := range []struct {
		what    string
		request Request
		want    string
		not     string
	}{
		{"declared wins over the parent", Request{Declared: []Declared{{Name: "HOME", Value: "/else"}}}, "HOME=/else", "HOME=/home/u"},
		{"the user's PATH replaces the inherited one", Request{Path: "/mine"}, "PATH=/mine", "PATH=/usr/bin"},
		{"a declared PATH wins over the user's", Request{Path: "/mine", Declared: []Declared{{Name: "PATH", Value: "/its"}}}, "PATH=/its", "PATH=/mine"},
		{"PLUGIN_ROOT is not the connector's to say", Request{Root: "/r", Declared: []Declared{{Name: "PLUGIN_ROOT", Value: "/else"}}}, "PLUGIN_ROOT=/r", "PLUGIN_ROOT=/else"},
		{"without a bundle there is no PLUGIN_ROOT at all", Request{Declared: []Declared{{Name: "PLUGIN_ROOT", Value: "/else"}}}, "HOME=/home/u", "PLUGIN_ROOT=/else"},
		{"CLAUDE_PLUGIN_DATA is not either", Request{Data: "/d", Dialect: plugins.DialectOf(plugins.ClaudeCode), Declared: []Declared{{Name: "CLAUDE_PLUGIN_DATA", Value: "/else"}}}, "CLAUDE_PLUGIN_DATA=/d", "CLAUDE_PLUGIN_DATA=/else"},
		{"the Python values yield", Request{Declared: []Declared{{Name: "PYTHONUNBUFFERED", Value: "0"}}}, "PYTHONUNBUFFERED=0", "PYTHONUNBUFFERED=1"},
		{"the later of two declared ones wins", Request{Declared: []Declared{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}}, "A=2", "A=1"},
		{"an inherited name arrives", Request{Inherit: []string{"SSH_AUTH_SOCK"}}, "SSH_AUTH_SOCK=/SENTINEL/agent", "GITHUB_TOKEN"},
		{"an inherited name that is unset is absent", Request{Inherit: []string{"NOT_SET"}}, "HOME=/home/u", "NOT_SET"},
		{"a package's text keeps its dollars", Request{Root: "/r", Declared: []Declared{{Name: "A", Value: "${HOME} $HOME secret:X ${PLUGIN_ROOT}/x ${PLUGIN_ROOT ${env:HOME}"}}}, "A=${HOME} $HOME secret:X /r/x ${PLUGIN_ROOT ${env:HOME}", ""},
	} {
		t.Run(row.what, func(t *testing.T) {
			row.request.Parent = parentWith("linux", map[string]string{"HOME": "/home/u", "PATH": "/usr/bin"})
			got := environ(t, row.request)
			if !slices.Contains(got, row.want) {
				t.Errorf("%q misses %q", got, row.want)
			}
			for _, entry := range got {
				if row.not != "" && strings.HasPrefix(entry, row.not) {
					t.Errorf("%q is there", entry)
				}
			}
		})
	}
}

func TestWindowsNamesReplaceWithoutCase(t *testing.T) {
	got := environ(t, Request{
		Parent:   Parent{System: "windows", Vars: map[string]string{"Path": `C:\a`, "SystemRoot": `C:\W`}},
		Path:     `C:\mine`,
		Declared: []Declared{{Name: "PATH", Value: `C:\b`}, {Name: "systemroot", Value: `D:\W`}, {Name: "pythonutf8", Value: "0"}},
	})
	want := []string{`PATH=C:\b`, "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "pythonutf8=0", `systemroot=D:\W`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestProxyIsPassedOnWithLoopbackLeftOut(t *testing.T) {
	for _, row := range []struct {
		what, noProxy, want string
	}{
		{"unset", "", "localhost,127.0.0.1,::1"},
		{"a network", "127.0.0.0/8", "127.0.0.0/8,localhost,127.0.0.1,::1"},
		{"partly there", "localhost, .corp", "localhost,.corp,127.0.0.1,::1"},
		{"everything", "*", "*"},
	} {
		t.Run(row.what, func(t *testing.T) {
			vars := map[string]string{"HTTP_PROXY": "http://10.0.0.1:3128", "SSL_CERT_FILE": "/ca.pem"}
			if row.noProxy != "" {
				vars["no_proxy"] = row.noProxy
			}
			got := environ(t, Request{Parent: parentWith("linux", vars), Inherit: []string{"network"}})
			for _, want := range []string{"NO_PROXY=" + row.want, "no_proxy=" + row.want, "HTTP_PROXY=http://10.0.0.1:3128", "SSL_CERT_FILE=/ca.pem"} {
				if !slices.Contains(got, want) {
					t.Errorf("%q misses %q", got, want)
				}
			}
		})
	}
	if got := environ(t, Request{Parent: Parent{System: "linux"}, Inherit: []string{"network"}}); len(got) != 2 {
		t.Errorf("NO_PROXY without a proxy: %q", got)
	}
}

func TestRefusalsNameTheVariable(t *testing.T) {
	op := func(value string) Request {
		return Request{Declared: []Declared{{Name: "VAR", Value: value, References: true}}}
	}
	for _, row := range []struct {
		what    string
		request Request
		code    string
		names   string
	}{
		{"an empty name", Request{Declared: []Declared{{Value: "x"}}}, "env-invalid", "empty name"},
		{"a name with =", Request{Declared: []Declared{{Name: "A=B"}}}, "env-invalid", `"A=B"`},
		{"a name with NUL", Request{Declared: []Declared{{Name: "A\x00"}}}, "env-nul", `"A\x00"`},
		{"a value with NUL", Request{Declared: []Declared{{Name: "VAR", Value: "a\x00b"}}}, "env-nul", `"VAR"`},
		{"inherit all", Request{Inherit: []string{"*"}}, "env-invalid", `"*"`},
		{"inherit a pattern", Request{Inherit: []string{"AWS_*"}}, "env-invalid", `"AWS_*"`},
		{"inherit nothing", Request{Inherit: []string{""}}, "env-invalid", `""`},
		{"a secret that is not listed", op("secret:OTHER"), "reference-not-allowed", `"VAR"`},
		{"a variable that is not listed", op("${GITHUB_TOKEN}"), "reference-not-allowed", `"GITHUB_TOKEN"`},
		{"a variable by its scheme", op("env:GITHUB_TOKEN"), "reference-not-allowed", `"GITHUB_TOKEN"`},
		{"an open brace", op("${OPEN"), "reference-invalid", `"VAR"`},
		{"an unknown scheme", op("${file:/etc/passwd}"), "reference-invalid", `"file"`},
		{"a name that is none", op("env:not a name"), "reference-invalid", `"VAR"`},
		{"a placeholder without its folder", op("${PLUGIN_ROOT}/x"), "reference-invalid", "${PLUGIN_ROOT}"},
		{"a literal credential by name", Request{Declared: []Declared{{Name: "MY_API_KEY", Value: "hunter2"}}}, "literal-secret", `"MY_API_KEY"`},
		{"a literal credential by shape", Request{Declared: []Declared{{Name: "VAR", Value: "ghp_0123456789abcdefghijklmnopqrstuvwxyz"}}}, "literal-secret", `"VAR"`},
		{"a password in an address", Request{Declared: []Declared{{Name: "VAR", Value: "postgres://me:hunter2@db/x"}}}, "literal-secret", `"VAR"`},
	} {
		t.Run(row.what, func(t *testing.T) {
			row.request.Parent = parentWith("linux", nil)
			_, err := Build(row.request)
			if coded.Of(err) != row.code || !strings.Contains(err.Error(), row.names) {
				t.Fatalf("got %q %v, want %s naming %s", coded.Of(err), err, row.code, row.names)
			}
			for _, secret := range []string{"hunter2", "SENTINEL", "0123456789"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error shows a value: %v", err)
				}
			}
		})
	}
}

type vault map[string]string

func (v vault) Secret(_ context.Context, name string) (string, error) {
	value, ok := v[name]
	if !ok {
		return "", errors.New("SENTINEL of the keyring")
	}
	return value, nil
}

func TestReferencesResolveAtTheStart(t *testing.T) {
	parent := parentWith("linux", map[string]string{"EDITOR": "vi", "LOOP": "${EDITOR} secret:S", "EMPTY": ""})
	ask := func(value string) Request {
		return Request{Parent: parent, Secrets: []string{"S", "GONE"}, Inherit: []string{"EDITOR", "LOOP", "EMPTY", "NOPE"}, Root: "/r",
			Declared: []Declared{{Name: "VAR", Value: value, References: true}}}
	}
	for _, row := range []struct{ value, want, code string }{
		{"secret:S", "s3cr3t${EDITOR}", ""},
		{"Bearer ${secret:S}", "Bearer s3cr3t${EDITOR}", ""},
		{"env:EDITOR", "vi", ""},
		{"${EDITOR}-${env:EDITOR}", "vi-vi", ""},
		{"${LOOP}", "${EDITOR} secret:S", ""},
		{"${NOPE:-nano ${EDITOR}", "nano ${EDITOR", ""},
		{"${NOPE:-}", "", ""},
		{"${EMPTY:-d}", "d", ""},
		{"${EMPTY}", "", ""},
		{"${PLUGIN_ROOT}/$HOME", "/r/$HOME", ""},
		{"${NOPE}", "", "env-unset"},
		{"secret:GONE", "", "secret-unavailable"},
	} {
		t.Run(row.value, func(t *testing.T) {
			plan, err := Build(ask(row.value))
			if err != nil {
				t.Fatal(err)
			}
			got, err := plan.Environ(context.Background(), vault{"S": "s3cr3t${EDITOR}"})
			if coded.Of(err) != row.code {
				t.Fatalf("got %v, want code %q", err, row.code)
			}
			if err != nil {
				if !strings.Contains(err.Error(), `"VAR"`) || strings.Contains(err.Error(), "SENTINEL") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if !slices.Contains(got, "VAR="+row.want) {
				t.Errorf("%q misses %q", got, row.want)
			}
		})
	}
	plan, _ := Build(ask("secret:S"))
	if _, err := plan.Environ(context.Background(), nil); coded.Of(err) != "secret-unavailable" {
		t.Errorf("without a keyring: %v", err)
	}
}

func TestMaskedShowsNamesAndSourcesOnly(t *testing.T) {
	plan, err := Build(Request{
		Parent: parentWith("linux", map[string]string{"HOME": "/home/SENTINEL", "HTTPS_PROXY": "http://u:p%40SENTINEL@proxy"}), Secrets: []string{"S"},
		Inherit: []string{"HTTPS_PROXY"}, Path: "/SENTINEL/bin", Root: "/SENTINEL/root",
		Declared: []Declared{{Name: "A", Value: "SENTINEL"}, {Name: "B", Value: "x-${secret:S}", References: true}, {Name: "C", Value: "SENTINEL", References: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Shown{}
	for _, s := range plan.Masked() {
		if strings.Contains(s.Value, "SENTINEL") {
			t.Errorf("%s shows its value", s.Name)
		}
		got[s.Name] = s
	}
	for _, want := range []Shown{{"A", FromDeclared, Hidden}, {"B", FromReference, "secret:S"}, {"C", FromOperator, Hidden}, {"HOME", FromParent, Hidden},
		{"PATH", FromPath, Hidden}, {"HTTPS_PROXY", FromInherited, Hidden}, {"PLUGIN_ROOT", FromSallyport, Hidden}, {"PYTHONUNBUFFERED", FromSallyport, "1"}} {
		if got[want.Name] != want {
			t.Errorf("got %v, want %v", got[want.Name], want)
		}
	}
	secrets, err := plan.SecretValues(context.Background(), vault{"S": "s3cr3t"})
	if want := []string{"s3cr3t", "p@SENTINEL", "p%40SENTINEL"}; err != nil || !slices.Equal(secrets, want) {
		t.Errorf("secret values %q %v, want %q", secrets, err, want)
	}
}

func TestHeaderResolvesByTheSameRules(t *testing.T) {
	plan, _ := Build(Request{Parent: Parent{System: "linux"}, Secrets: []string{"S"}})
	for _, row := range []struct{ value, secret, want, code string }{
		{"Bearer ${secret:S}", "x", "Bearer x", ""},
		{"secret:S", "x\r\nEvil: 1", "", "header-invalid"},
		{"secret:T", "x", "", "reference-not-allowed"},
	} {
		got, err := plan.Header(context.Background(), vault{"S": row.secret}, Declared{Name: "Authorization", Value: row.value, References: true})
		if got != row.want || coded.Of(err) != row.code {
			t.Errorf("%s: got %q %v", row.value, got, err)
		}
	}
	if err := plan.CheckHeader(Declared{Name: "X-Api-Key", Value: "hunter2"}); coded.Of(err) != "literal-secret" {
		t.Errorf("a literal key in a header: %v", err)
	}
}

func TestSecretsAndNULHaveNoPlaceOnACommandLine(t *testing.T) {
	for _, row := range []struct {
		what string
		err  error
		code string
	}{
		{"a whole argument", CheckArguments("node", []string{"a", "secret:X"}, ""), "secret-in-args"},
		{"behind a flag", CheckArguments("node", []string{"--key=secret:X"}, ""), "secret-in-args"},
		{"inside an address", CheckNoSecret("address", "https://x/?k=${secret:X}"), "secret-in-args"},
		{"the folder", CheckArguments("node", nil, "secret:X"), "secret-in-args"},
		{"NUL in an argument", CheckArguments("node", []string{"a\x00"}, ""), "argument-nul"},
		{"NUL in the command", CheckArguments("no\x00de", nil, ""), "argument-nul"},
		{"the word alone is fine", CheckArguments("node", []string{"the secret: a cake", `{"a":"\u0000"}`}, ""), ""},
	} {
		if coded.Of(row.err) != row.code {
			t.Errorf("%s: got %v, want %q", row.what, row.err, row.code)
		}
	}
}

func TestOrdinaryLiteralsAreNotCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"MAX_TOKENS": "4096", "TOKEN_FILE": "/run/token", "API_KEY": "", "USE_TOKEN": "true", "URL": "https://example.com/a:b@c",
		"NODE_ENV": "production", "PORT": "3000", "GREETING": "sk-it", "KEYBOARD": "qwerty",
	} {
		if err := CheckLiteral(name, value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Agent Plugins 1.0.0 §9.2.
func TestWordsOfAnAgentPlugin(t *testing.T) {
	words := WordsOf(Request{Root: "/r/${PLUGIN_DATA}", Data: "/d", Parent: Parent{System: "linux", Vars: map[string]string{"HOME": "/h"}}})
	for _, row := range []struct{ what, text, want string }{
		{"in the midst of text", "--x=${PLUGIN_ROOT}/a:${PLUGIN_DATA}:${HOME}:${CLAUDE_PLUGIN_ROOT}", "--x=/r/${PLUGIN_DATA}/a:/d:${HOME}:${CLAUDE_PLUGIN_ROOT}"},
		{"what is put in is not scanned again", "${PLUGIN_ROOT}", "/r/${PLUGIN_DATA}"},
		{"more than once", "a${PLUGIN_DATA}b${PLUGIN_DATA}", "a/db/d"},
		{"what comes of it is no placeholder", "${PLUGIN_${PLUGIN_DATA}}", "${PLUGIN_/d}"},
		{"anything else stays", "$PLUGIN_ROOT ${plugin_root} ${HOME} ${PLUGIN_ROOT:-x} $${PLUGIN_DATA}", "$PLUGIN_ROOT ${plugin_root} ${HOME} ${PLUGIN_ROOT:-x} $/d"},
		{"one that does not end", "${PLUGIN_DATA} ${PLUGIN_DATA", "/d ${PLUGIN_DATA"},
	} {
		if got, err := words.One("command", row.text); got != row.want || err != nil {
			t.Errorf("%s: got %q %v, want %q", row.what, got, err, row.want)
		}
	}
	if _, err := WordsOf(Request{}).One("command", "${PLUGIN_ROOT}"); coded.Of(err) != "reference-invalid" {
		t.Errorf("no folder: %v", err)
	}
}

func FuzzTemplateIsOnePass(f *testing.F) {
	f.Add("a${V}b${V:-x}", "${V}")
	f.Add("secret:S", "env:V")
	f.Fuzz(func(t *testing.T, text, value string) {
		plan, err := Build(Request{Parent: Parent{System: "linux", Vars: map[string]string{"V": value}}, Inherit: []string{"V"}, Secrets: []string{"S"},
			Declared: []Declared{{Name: "X", Value: text, References: true}}})
		if err != nil {
			if coded.Of(err) == "" {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		got, err := plan.Environ(context.Background(), vault{"S": value})
		if err != nil {
			return
		}
		marker := "\x01"
		if strings.Contains(text, marker) || strings.Contains(value, marker) {
			return
		}
		plan.parent.Vars["V"] = marker
		marked, _ := plan.Environ(context.Background(), vault{"S": marker})
		if value != "" && strings.ReplaceAll(entry(marked, "X"), marker, value) != entry(got, "X") {
			t.Fatalf("%q with %q was scanned twice: %q", text, value, entry(got, "X"))
		}
	})
}

func entry(environ []string, name string) string {
	for _, e := range environ {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
