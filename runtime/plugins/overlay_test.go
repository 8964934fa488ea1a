package plugins

import (
	"slices"
	"strings"
	"testing"

	"sallyport/runtime/permissions"
)

// What the operator's own values name is asked for; a package's own text asks for
// nothing by looking like a reference.
func TestOperatorsReferencesAskForTheirSecrets(t *testing.T) {
	for _, row := range []struct {
		name  string
		value string
		want  []string
	}{
		{"a whole value", "secret:NOTES_TOKEN", []string{"NOTES_TOKEN"}},
		{"inside a value", "Bearer ${secret:NOTES_TOKEN}", []string{"NOTES_TOKEN"}},
		{"two in one value", "${secret:A}:${secret:B}", []string{"A", "B"}},
		{"text that only begins alike", "secret:NOTES TOKEN", nil},
		{"another reference", "env:HOME", nil},
		{"a literal", "plain", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := Connector{ID: ID{"p", "s"}, Transport: Stdio}
			got := Overlay{Env: map[string]string{"TOKEN": row.value}}.apply(c)
			if got.Invalid != nil {
				t.Fatal(got.Invalid)
			}
			if !slices.Equal(got.Requested.Secrets, row.want) {
				t.Errorf("asked for %q, want %q", got.Requested.Secrets, row.want)
			}
		})
	}
	packaged := Connector{ID: ID{"p", "s"}, Transport: Stdio, Launch: Launch{Env: []Value{{Name: "TOKEN", Value: "secret:NOTES_TOKEN"}}}}
	if got := (Overlay{}).apply(packaged); got.Requested.Secrets != nil {
		t.Errorf("a package's own text asked for %q", got.Requested.Secrets)
	}
}

// A host that the operator asks for is added to what the package requests, whatever
// else was narrowed; nothing of it is taken for the package's own.
func TestTheOperatorAsksForHosts(t *testing.T) {
	for _, row := range []struct {
		name                                    string
		declared, narrowed, permit, want, asked []string
		transport                               Transport
		refused                                 string
	}{
		{name: "a package that declares none", permit: []string{"10.0.0.5:8443", "Login.Example.com"},
			want: []string{"10.0.0.5:8443", "login.example.com:443"}, asked: []string{"10.0.0.5:8443", "login.example.com:443"}},
		{name: "beside what the package requests", declared: []string{"api.example.com:443"}, permit: []string{"login.example.com"},
			want: []string{"api.example.com:443", "login.example.com:443"}, asked: []string{"login.example.com:443"}},
		{name: "what the package requests anyway", declared: []string{"api.example.com:443"}, permit: []string{"api.example.com"},
			want: []string{"api.example.com:443"}},
		{name: "after narrowing", declared: []string{"api.example.com:443"}, narrowed: []string{}, permit: []string{"login.example.com"},
			want: []string{"login.example.com:443"}, asked: []string{"login.example.com:443"}},
		{name: "a host that is none", permit: []string{"https://x"}, refused: "permit: permissions.net"},
		{name: "a server that is started", permit: []string{"api.example.com"}, transport: Stdio, refused: "permit.net is for servers that Sallyport connects to"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := Connector{ID: ID{"p", "s"}, Transport: StreamableHTTP, Requested: permissions.Set{Net: row.declared}}
			if row.transport != "" {
				c.Transport = row.transport
			}
			o := Overlay{Permit: Permit{Net: row.permit}}
			if row.narrowed != nil {
				o.Permissions = &permissions.Set{Net: row.narrowed}
			}
			got := o.apply(c)
			if row.refused != "" {
				if got.Invalid == nil || got.Invalid.Code != "overlay-invalid" || !strings.Contains(got.Invalid.Sentence, row.refused) {
					t.Fatalf("got %v", got.Invalid)
				}
				return
			}
			if got.Invalid != nil || !slices.Equal(got.Requested.Net, row.want) || !slices.Equal(got.AskedNet, row.asked) {
				t.Errorf("%v: allowed %q, asked %q", got.Invalid, got.Requested.Net, got.AskedNet)
			}
			said := strings.Contains(strings.Join(got.Words(), "\n"), "your own configuration asks for")
			if said != (len(row.asked) > 0) {
				t.Errorf("it says %q", got.Words())
			}
		})
	}
	overlays, err := ParseOverlays([]byte(`{"a/b":{"permit":{"net":["10.0.0.5:8443"]}},"a/c":{"permit":{"secrets":["A"]}},"a/d":{"permit":["x"]}}`))
	if fs := (Overlay{Permit: Permit{FS: []string{"workspace-read"}}}).apply(Connector{Transport: Stdio}); !slices.Equal(fs.Requested.FS, []string{"workspace-read"}) || fs.Invalid != nil {
		t.Errorf("what of the workspace it may be told: %q %v", fs.Requested.FS, fs.Invalid)
	}
	if fs := (Overlay{Permit: Permit{FS: []string{"/etc"}}}).apply(Connector{Transport: Stdio}); fs.Invalid == nil {
		t.Error("a path is taken for a word")
	}
	if err != nil || overlays["a/b"].Err != nil || overlays["a/c"].Err == nil || overlays["a/d"].Err == nil {
		t.Fatalf("%+v, %v", overlays, err)
	}
}

// spec/child-environment.md 5: only the operator says what is no secret, and what a
// value of the operator's replaces is remembered.
func TestWhatTheOperatorSaysAboutLiterals(t *testing.T) {
	packaged := Connector{ID: ID{"p", "s"}, Transport: Stdio, Launch: Launch{Env: []Value{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}}}
	got := Overlay{Env: map[string]string{"A": "secret:A", "C": "3"}, NotSecret: []string{"args[2]", "B", "B"}}.apply(packaged)
	if got.Invalid != nil || !slices.Equal(got.Options.NotSecret, []string{"B", "args[2]"}) {
		t.Errorf("%v: %q", got.Invalid, got.Options.NotSecret)
	}
	if !slices.Equal(got.Launch.Replaced, []Value{{Name: "A", Value: "1"}}) {
		t.Errorf("replaced: %+v", got.Launch.Replaced)
	}
	remote := Connector{ID: ID{"p", "s"}, Transport: StreamableHTTP, Launch: Launch{Headers: []Value{{Name: "X-Api-Key", Value: "1"}}}}
	got = Overlay{Headers: map[string]string{"x-api-key": "secret:A"}}.apply(remote)
	if got.Invalid != nil || len(got.Launch.Headers) != 1 || !slices.Equal(got.Launch.Replaced, []Value{{Name: "X-Api-Key", Value: "1"}}) {
		t.Errorf("%v: %+v", got.Invalid, got.Launch)
	}
	for _, name := range []string{"", "a\nb", strings.Repeat("x", maxServerName+1)} {
		if got := (Overlay{NotSecret: []string{name}}).apply(packaged); got.Invalid == nil || got.Invalid.Code != "overlay-invalid" {
			t.Errorf("%.10q is taken: %v", name, got.Invalid)
		}
	}
	if overlays, err := ParseOverlays([]byte(`{"a/b":{"notSecret":["A"]},"a/c":{"notSecret":"A"}}`)); err != nil || overlays["a/b"].Err != nil || overlays["a/c"].Err == nil {
		t.Errorf("%+v, %v", overlays, err)
	}
}
