package plugins

import (
	"slices"
	"testing"
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
