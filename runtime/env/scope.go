package env

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

const placeHome = plugins.PlaceHome

// scope is what the texts of one connector may refer to.
type scope struct {
	dialect  plugins.Dialect
	places   map[plugins.Place]string
	settings map[string]plugins.Setting
	env      map[string]bool // names that env: may take
	inherit  map[string]bool // those of them that are no secrets
	secrets  map[string]bool // names that secret: may take
	id       string          // of the connector, for the command that a refusal names
	fold     bool            // names compare without case
	// connector is its id, for the entry that a refusal names; may be "".
	connector string
}

func newScope(r Request) scope {
	s := scope{
		id: r.Exempt.Connector, dialect: r.Dialect, places: placesOf(r), settings: map[string]plugins.Setting{},
		env: map[string]bool{}, inherit: map[string]bool{}, secrets: map[string]bool{}, fold: r.Parent.windows(),
		connector: r.Exempt.Connector,
	}
	if s.dialect.Places == nil {
		s.dialect = plugins.DialectOf(plugins.AgentPlugins)
	}
	for _, setting := range r.Settings {
		s.settings[setting.Key] = setting
	}
	for _, name := range r.Secrets {
		s.secrets[name] = true
		s.env[s.key(name)] = true
	}
	for _, name := range expandInherit(r.Inherit) {
		s.env[s.key(name)] = true
		s.inherit[s.key(name)] = true
	}
	return s
}

// placesOf gives the places their values; "" is one that this connector does not
// have.
func placesOf(r Request) map[plugins.Place]string {
	places := map[plugins.Place]string{
		plugins.PlaceRoot: r.Root, plugins.PlaceData: r.Data, plugins.PlaceSeparator: string(filepath.Separator),
	}
	home, _ := r.Parent.Lookup("HOME")
	if profile, ok := r.Parent.Lookup("USERPROFILE"); ok && r.Parent.windows() {
		home = profile
	}
	if home == "" {
		return places
	}
	places[plugins.PlaceHome] = home
	for place, name := range map[plugins.Place]string{
		plugins.PlaceDesktop: "Desktop", plugins.PlaceDocuments: "Documents", plugins.PlaceDownloads: "Downloads",
	} {
		places[place] = filepath.Join(home, name)
	}
	return places
}

func (s scope) key(name string) string {
	if s.fold {
		return strings.ToUpper(name)
	}
	return name
}

func (s scope) place(d Declared, word string, place plugins.Place) (string, error) {
	if value := s.places[place]; value != "" {
		return value, nil
	}
	return "", invalidReference(d.Name, "uses "+word+", which this connector does not have")
}

// setting reads one value that the plugin asks its user for. What the operator gave
// is never expanded, but for a value that is secret:NAME as a whole.
func (s scope) setting(d Declared, key string) (template, error) {
	setting, known := s.settings[key]
	if !known {
		return nil, unknownPlaceholder(d.Name, s.dialect.Settings+key)
	}
	values := make([]template, 0, max(len(setting.Value), len(setting.Default)))
	for _, text := range setting.Value {
		t, err := s.given(d, setting, text)
		if err != nil {
			return nil, err
		}
		values = append(values, t)
	}
	if setting.Value == nil {
		plain := scope{dialect: plugins.Dialect{Places: s.dialect.Places, Strict: true}, places: s.places, fold: s.fold}
		for _, text := range setting.Default {
			t, err := plain.parse(Declared{Name: key, Value: text})
			if err != nil {
				return nil, err
			}
			values = append(values, t)
		}
	}
	values = slices.DeleteFunc(values, template.empty)
	switch {
	case len(values) == 0 && setting.Required:
		return nil, &coded.Error{
			Code:     "setting-missing",
			Sentence: fmt.Sprintf("%q needs the setting %q, which has no value", d.Name, key),
			Next:     "give it a value: sallyport config PLUGIN/SERVER KEY=VALUE",
		}
	case len(values) == 0:
		return template{{kind: isBlank, name: key}}, nil
	case len(values) == 1:
		return values[0], nil
	}
	return template{{kind: isMany, name: key, many: values}}, nil
}

// given is one value that the operator gave for a setting.
func (s scope) given(d Declared, setting plugins.Setting, text string) (template, error) {
	if name, ok := strings.CutPrefix(text, "secret:"); ok {
		p, err := s.reference(d, "secret", name)
		return template{p}, err
	}
	if setting.Sensitive && text != "" {
		return nil, &coded.Error{
			Code:     "literal-secret",
			Sentence: fmt.Sprintf("the setting %q is sensitive and its value is written out", setting.Key),
			Next:     fmt.Sprintf("move it to the keyring: sallyport secrets move %s %s", quotedID(s.id), Quote(SettingName(setting.Key))),
		}
	}
	return literal(text), nil
}
