package host

import (
	"os"
	"testing"

	"sallyport/internal/owneronly"
)

// A configuration is one whole JSON object of known names, or it is reported and
// nothing of it is used (C78, C79).
func TestConfigurationIsReadWholeOrNotAtAll(t *testing.T) {
	const whole = `{"pluginFolders":["~/mine"],"connectors":{}}`
	for _, row := range []struct {
		what, text string
		ok         bool
	}{
		{"whole", whole, true},
		{"white space behind it", whole + "\n\t ", true},
		{"empty", "", false},
		{"cut", whole[:len(whole)-1], false},
		{"a bracket behind its end", whole + "}", false},
		{"the end of an older, longer one behind it", whole + `]}}`, false},
		{"text behind its end", whole + `tale":true}}`, false},
		{"two documents", whole + whole, false},
		{"a name of a newer version", `{"pluginFolders":[],"version":99}`, false},
		{"a value of the wrong kind", `{"pluginFolders":"~/mine"}`, false},
	} {
		h := &Host{Places: PlacesIn(t.TempDir())}
		if err := owneronly.Folder(h.Places.Config); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(h.Places.ConfigFile(), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := h.readConfiguration()
		if (err == nil) != row.ok {
			t.Errorf("%s: %v", row.what, err)
		}
		if !row.ok && len(got.PluginFolders) > 0 {
			t.Errorf("%s: something of it is used", row.what)
		}
	}
}
