package permissions

import (
	"encoding/json"
	"strings"
	"unicode"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The verbs that a tool's name is read by. A word in two lists would be a
// mistake; a word in none says nothing.
const (
	readVerbs = "get list read search find fetch show describe view count check status lookup query " +
		"inspect summarize explain compare diff preview validate ping info help browse glob grep stat head tail"
	writeVerbs = "add create set update write edit append insert put post save send upload move rename copy " +
		"patch modify change assign merge commit push publish upsert import register enable disable start stop " +
		"open close mark label comment reply invite share subscribe schedule generate build install sync store " +
		"log book order click type fill navigate scroll select press toggle increment make new reopen resolve"
	destructiveVerbs = "delete remove drop destroy purge clear wipe erase kill reset overwrite truncate revoke " +
		"format prune uninstall terminate cancel exec execute run eval shell bash sudo rollback restore forget " +
		"deploy transfer pay buy sell replace archive discard empty unlink rm"
	// Parameters with these names take code or a switch that a name does not show.
	codeParameters  = "command cmd script code sql shell expression program eval statement"
	forceParameters = "force overwrite recursive purge"
)

// Suggest reads a risk class from the tool's name and its definition (the whole
// tool object of tools/list). It is a suggestion: until the operator confirms
// it the class is Unknown. The server's own hints can only raise the care
// taken (spec/approval.md 2.4).
func Suggest(name string, definition json.RawMessage) Class {
	var tool struct {
		InputSchema struct {
			Properties map[string]jsontext.Value `json:"properties"`
		} `json:"inputSchema"`
		Annotations struct {
			ReadOnly    *bool `json:"readOnlyHint"`
			Destructive *bool `json:"destructiveHint"`
		} `json:"annotations"`
	}
	if jsonv2.Unmarshal(definition, &tool) != nil {
		return Unknown
	}
	class := byName(name)
	for parameter := range tool.InputSchema.Properties {
		for _, word := range wordsOf(parameter) {
			if has(codeParameters, word) {
				class = careful(class, Unknown)
			}
			if has(forceParameters, word) {
				class = careful(class, Destructive)
			}
		}
	}
	if hint := tool.Annotations.ReadOnly; hint != nil && !*hint {
		class = careful(class, Write)
	}
	if hint := tool.Annotations.Destructive; hint != nil && *hint {
		class = careful(class, Destructive)
	}
	return class
}

// byName lets any risky word decide, and a harmless one only in first place:
// "search_and_replace" is no search, and "note_list" may be a list to write.
func byName(name string) Class {
	words := wordsOf(name)
	class := Unknown
	if len(words) > 0 && has(readVerbs, words[0]) {
		class = Read
	}
	for _, word := range words {
		if has(destructiveVerbs, word) {
			return Destructive
		}
		if has(writeVerbs, word) {
			class = Write
		}
	}
	return class
}

// careful returns the class that asks for more care.
func careful(a, b Class) Class {
	if care(b) > care(a) {
		return b
	}
	return a
}

func care(c Class) int {
	switch c {
	case Read:
		return 0
	case Write:
		return 1
	case Destructive:
		return 2
	case Unknown:
		return 3
	}
	return 3
}

// wordsOf splits snake_case, kebab-case, dotted and camelCase names.
func wordsOf(name string) []string {
	var spaced strings.Builder
	previous := ' '
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			spaced.WriteByte(' ')
		case unicode.IsUpper(r) && unicode.IsLower(previous):
			spaced.WriteByte(' ')
			spaced.WriteRune(unicode.ToLower(r))
		default:
			spaced.WriteRune(unicode.ToLower(r))
		}
		previous = r
	}
	return strings.Fields(spaced.String())
}

func has(list, word string) bool {
	for entry := range strings.FieldsSeq(list) {
		if entry == word {
			return true
		}
	}
	return false
}
