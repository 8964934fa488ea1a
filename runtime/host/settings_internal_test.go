package host

import (
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
	"sallyport/runtime/secrets"
)

func TestOnlyTheSettingsOfAConfigurationAreEdited(t *testing.T) {
	id := plugins.ID{Plugin: "demo", Server: "main"}
	settings := []plugins.Setting{
		{Key: "dirs", Type: "directory", Multiple: true}, {Key: "level", Type: "number"}, {Key: "loud", Type: "boolean"},
		{Key: "name", Type: "string"}, {Key: "token", Type: "string", Sensitive: true},
	}
	set := func(key string, values ...string) Choices { return Choices{Set: map[string][]string{key: values}} }
	const kept = "{\n  \"pluginFolders\" : [ \"~/x\" ],\n\n  \"connectors\": {\"other/main\": {\"env\": {\"A\": \"1\"}}, \"demo/main\": {\"maxFrame\":1048576, \"userConfig\": {\"name\": \"a\", \"level\": 1e1}}}  \n}\n\n"
	for _, row := range []struct {
		why, old string
		change   Choices
		want     string
	}{
		{"no file", "", set("name", "a"), "{\n  \"connectors\": {\n    \"demo/main\": {\n      \"userConfig\": {\n        \"name\": \"a\"\n      }\n    }\n  }\n}\n"},
		{"an empty object", "{}\n", set("name", "a"), "{\n  \"connectors\": {\n    \"demo/main\": {\n      \"userConfig\": {\n        \"name\": \"a\"\n      }\n    }\n  }\n}\n"},
		{"another value", kept, set("name", "${HOME}"), strings.Replace(kept, `"a"`, `"${HOME}"`, 1)},
		{"a number is a number", kept, set("level", "2.50"), strings.Replace(kept, `1e1`, `2.50`, 1)},
		{"a flag is a flag", kept, set("loud", "true"), strings.Replace(kept, `1e1}`, `1e1, "loud": true}`, 1)},
		{"several", kept, set("dirs", "/a", "/b"), strings.Replace(kept, `1e1}`, `1e1, "dirs": ["/a","/b"]}`, 1)},
		{"a secret", kept, Choices{Secrets: map[string][]byte{"token": []byte("x")}}, strings.Replace(kept, `1e1}`, `1e1, "token": "secret:demo.main.token"}`, 1)},
		{"taken back", kept, Choices{Unset: []string{"level"}}, strings.Replace(kept, `, "level": 1e1`, ``, 1)},
		{"taken back without being there", kept, Choices{Unset: []string{"dirs"}}, kept},
	} {
		config := &ownText{ownFile: (&Host{}).configFile(), now: []byte(row.old)}
		err := editSettings(config, id, settings, row.change)
		if got := string(config.now); err != nil || got != row.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", row.why, err, got, row.want)
		}
	}
	for _, old := range []string{`{"connectors": []}`, `{"connectors": {"demo/main": 1}}`, `{"connectors": {"demo/main": {"userConfig": "x"}}}`, `{`} {
		config := &ownText{ownFile: (&Host{}).configFile(), now: []byte(old)}
		if err := editSettings(config, id, settings, set("name", "a")); coded.Of(err) != "config-unusable" {
			t.Errorf("%s: %v", old, err)
		}
	}
}

func TestSecretsOfSettingsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for _, parts := range [][3]string{
		{"demo", "main", "token"}, {"demo.main", "token", "x"}, {"demo", "main.token", "x"}, {"demo", "main", "token.x"},
		{"demo", "數據", "token"}, {"demo", "数据", "token"}, {strings.Repeat("a", 64), strings.Repeat("b", 250), "c"}, {strings.Repeat("a", 64), strings.Repeat("b", 250), "d"},
	} {
		name := secretNameOf(plugins.ID{Plugin: parts[0], Server: parts[1]}, parts[2])
		if err := secrets.CheckName(name); err != nil {
			t.Errorf("%v: %q is no name", parts, name)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%v has the name of %s", parts, other)
		}
		seen[name] = strings.Join(parts[:], " ")
	}
	if name := secretNameOf(plugins.ID{Plugin: "demo", Server: "main"}, "api_key"); name != "demo.main.api_key" {
		t.Error(name)
	}
}
