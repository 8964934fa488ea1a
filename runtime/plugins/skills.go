package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

const (
	skillsDir = "skills"
	skillFile = "SKILL.md"
	maxSkill  = 256 << 10 // bytes
	maxSkills = 256       // entries in skills/
	// The YAML reader needs time in the square of what it is given (measured:
	// 130 ms for 8 KiB of opening brackets), so it is given little.
	maxFrontMatter = 8 << 10 // bytes
	maxBrackets    = 64      // open at once
	// Limits of the Agent Skills specification, in characters.
	maxSkillName   = 64
	maxSkillText   = 1024
	maxSkillCompat = 500
)

// readSkills lists the immediate children of a folder that hold a SKILL.md. One
// that does not conform is skipped and reported (Agent Plugins 1.0.0 §7.1).
func (b *bundle) readSkills(folder string) (skills []Skill, problems []Problem) {
	problem := func(path, code, sentence string) {
		problems = append(problems, Problem{Code: code, Path: path, Sentence: sentence})
	}
	entries, err := b.list(folder, maxSkills)
	switch {
	case isMissing(err):
		return nil, nil
	case errors.Is(err, errLarge):
		problem(folder, "skills-invalid", fmt.Sprintf("%s holds more than %d entries", folder, maxSkills))
		return nil, problems
	case err != nil:
		problem(folder, "skills-invalid", folder+" "+reason(err))
		return nil, problems
	}
	for _, entry := range entries {
		dir := folder + "/" + entry.Name()
		path := dir + "/" + skillFile
		_, info, err := b.resolve(dir)
		if errors.Is(err, errOutside) {
			problem(path, "skill-invalid", "the skill's folder "+reason(err))
			continue
		}
		if err != nil || !info.IsDir() || !b.hasExactly(dir, skillFile) {
			continue
		}
		data, err := b.read(path, maxSkill)
		switch {
		case isMissing(err), errors.Is(err, errKind):
			// Not a skill: nothing, or no regular file, has that name.
			continue
		case err != nil:
			problem(path, "skill-invalid", "the skill "+reason(err))
			continue
		}
		skill, sentence := parseSkill(data, entry.Name())
		if sentence != "" {
			problem(path, "skill-invalid", sentence)
			continue
		}
		skill.Path = path
		skills = append(skills, skill)
	}
	return skills, problems
}

// hasExactly reports whether the directory has an entry of exactly that name,
// where the file system would also find it in another case.
func (b *bundle) hasExactly(dir, name string) bool {
	if !foldsCase {
		return true
	}
	entries, err := b.list(dir, 1<<16)
	return err != nil || containsName(entries, name)
}

func containsName(entries []fs.DirEntry, name string) bool {
	for _, entry := range entries {
		if entry.Name() == name {
			return true
		}
	}
	return false
}

// parseSkill reads the front matter of a SKILL.md. The sentence says what does
// not conform to the Agent Skills specification; fields that it does not know
// are left alone.
func parseSkill(data []byte, folder string) (Skill, string) {
	if !utf8.Valid(data) {
		return Skill{}, "the skill is not valid UTF-8"
	}
	matter, ok := frontMatter(data)
	if !ok {
		return Skill{}, "the skill has no front matter between two lines of ---"
	}
	if sentence := tooComplex(matter); sentence != "" {
		return Skill{}, sentence
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal(matter, &fields); err != nil {
		return Skill{}, "the front matter is not valid YAML with unique names"
	}
	name, sentence := skillText(fields, "name", true, maxSkillName)
	if sentence != "" {
		return Skill{}, sentence
	}
	description, sentence := skillText(fields, "description", true, maxSkillText)
	if sentence != "" {
		return Skill{}, sentence
	}
	switch {
	case !isSkillName(name):
		return Skill{}, "name is not lower-case letters, digits and single '-', with a letter or digit at both ends"
	case name != folder:
		return Skill{}, "name is not the name of the skill's folder"
	}
	for field, limit := range map[string]int{"license": maxSkill, "compatibility": maxSkillCompat, "allowed-tools": maxSkill} {
		if _, sentence := skillText(fields, field, false, limit); sentence != "" {
			return Skill{}, sentence
		}
	}
	if metadata, found := fields["metadata"]; found {
		if _, ok := metadata.(map[string]any); !ok {
			return Skill{}, "metadata is not a map"
		}
	}
	return Skill{Name: name, Description: description}, ""
}

// frontMatter returns what stands between a first line of --- and the next.
func frontMatter(data []byte) ([]byte, bool) {
	text := bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(text, []byte("---\n"))
	if !ok {
		return nil, false
	}
	var matter []byte
	for line := range bytes.Lines(rest) {
		if string(bytes.TrimRight(line, " \t\n")) == "---" {
			return matter, true
		}
		matter = append(matter, line...)
	}
	return nil, false
}

// tooComplex refuses a front matter that is no description of a skill but work
// for the YAML reader.
func tooComplex(matter []byte) string {
	if len(matter) > maxFrontMatter {
		return fmt.Sprintf("the front matter is longer than %d bytes", maxFrontMatter)
	}
	open := 0
	for _, c := range matter {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(open-1, 0)
		}
		if open > maxBrackets {
			return "the front matter is nested too deeply"
		}
	}
	return ""
}

func skillText(fields map[string]any, name string, required bool, limit int) (value, sentence string) {
	raw, found := fields[name]
	if !found && !required {
		return "", ""
	}
	if !found {
		return "", "the required field " + name + " is missing"
	}
	value, ok := raw.(string)
	switch {
	case !ok:
		return "", name + " is not text"
	case required && strings.TrimSpace(value) == "":
		return "", name + " is empty"
	case utf8.RuneCountInString(value) > limit:
		return "", fmt.Sprintf("%s is longer than %d characters", name, limit)
	}
	return value, ""
}

func isSkillName(name string) bool {
	return isPluginName(name) && !strings.Contains(name, ".")
}
