package plugins

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"sallyport/internal/coded"
)

const vectorDir = "../../spec/vectors/agent-plugins"

// minimalManifest is written where a vector has no plugin.json of its own.
const minimalManifest = `{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "demo"}`

// vector is one file of spec/vectors/agent-plugins; the README there says what
// each header key means.
type vector struct {
	requires   []string
	files      []txtar.File
	setup      []func(t *testing.T, root string)
	manifest   string
	rejected   string
	problems   []string
	connectors []string
	skills     []string
	values     []valueCheck
}

type valueCheck struct{ of, subject, want string }

// TestAgentPlugins loads each vector and compares everything that was found:
// what a vector does not name must not be there.
func TestAgentPlugins(t *testing.T) {
	for name, v := range readVectors(t) {
		t.Run(name, func(t *testing.T) {
			root := v.materialise(t)
			p, err := loadAgentPlugin(root)
			if err != nil {
				t.Fatal(err)
			}
			v.check(t, p)
		})
	}
}

// TestEveryRequirementHasATest compares the numbered list of the contract with
// the vectors: a requirement names the test that covers it where no vector can.
func TestEveryRequirementHasATest(t *testing.T) {
	text, err := os.ReadFile("../../spec/agent-plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	for _, v := range readVectors(t) {
		for _, requirement := range v.requires {
			covered[requirement] = true
		}
	}
	numbered := regexp.MustCompile(`(?m)^\*\*([0-9]+(?:\.[0-9]+)*)\*\* ((?:.+\n)+)`)
	listed := map[string]bool{}
	for _, match := range numbered.FindAllStringSubmatch(string(text), -1) {
		if listed[match[1]] {
			t.Errorf("requirement %s is listed twice", match[1])
		}
		listed[match[1]] = true
		if !covered[match[1]] && !strings.Contains(strings.Join(strings.Fields(match[2]), " "), "(tested by ") {
			t.Errorf("requirement %s has no vector and names no test", match[1])
		}
	}
	if len(listed) == 0 {
		t.Fatal("the contract lists no requirement")
	}
	for requirement := range covered {
		if !listed[requirement] {
			t.Errorf("a vector requires %s, which the contract does not list", requirement)
		}
	}
}

func readVectors(t testing.TB) map[string]vector {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(vectorDir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no vectors in %s (%v)", vectorDir, err)
	}
	vectors := map[string]vector{}
	for _, path := range paths {
		v, err := readVector(path)
		if err != nil {
			t.Fatalf("%s: %v", filepath.Base(path), err)
		}
		vectors[strings.TrimSuffix(filepath.Base(path), ".txtar")] = v
	}
	return vectors
}

func readVector(path string) (vector, error) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return vector{}, err
	}
	v := vector{files: archive.Files, manifest: minimalManifest}
	expected := false
	for line := range strings.Lines(string(archive.Comment)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, ": ")
		fields := strings.Fields(value)
		if !ok || len(fields) == 0 {
			return v, fmt.Errorf("cannot read header line %q", line)
		}
		switch key {
		case "requires":
			v.requires = fields
		case "manifest":
			v.manifest = map[string]string{"none": ""}[value]
		case "link":
			v.setup = append(v.setup, makeLink(fields[0], fields[2]))
		case "directory":
			v.setup = append(v.setup, makeDirectory(value))
		case "fifo":
			v.setup = append(v.setup, makeFIFO(value))
		case "pad":
			v.setup = append(v.setup, pad(fields[0], fields[1]))
		case "prefix":
			v.setup = append(v.setup, prefix(fields[0], fields[1]))
		case "expect":
			expected = true
			if fields[0] == "rejected" {
				v.rejected = fields[1]
			} else if value != "loaded" {
				return v, fmt.Errorf("cannot expect %q", value)
			}
		case "problem":
			v.problems = append(v.problems, value)
		case "connector":
			v.connectors = append(v.connectors, value)
		case "skill":
			v.skills = append(v.skills, value)
		case "plugin":
			v.values = append(v.values, valueCheck{key, "", value})
		case "launch", "options", "requested":
			subject, want, _ := strings.Cut(value, " ")
			v.values = append(v.values, valueCheck{key, subject, want})
		default:
			return v, fmt.Errorf("unknown header key %q", key)
		}
	}
	if !expected || len(v.requires) == 0 {
		return v, fmt.Errorf("no requires or no expect")
	}
	return v, nil
}

func (v vector) materialise(t *testing.T) string {
	root := filepath.Join(t.TempDir(), "plugin")
	write := func(name string, data []byte) {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if v.manifest != "" {
		write(manifestFile, []byte(v.manifest))
	}
	for _, file := range v.files {
		write(file.Name, file.Data)
	}
	for _, step := range v.setup {
		step(t, root)
	}
	return root
}

// loadAgentPlugin reads a plugin as a client of this one format does: manifests of
// others are nothing to it.
func loadAgentPlugin(root string) (*Plugin, error) {
	b, err := openBundle(root)
	if err != nil {
		return nil, err
	}
	defer b.close()
	p := &Plugin{Name: filepath.Base(root), Source: filepath.Base(root), Root: b.dir}
	b.load(p, formats()[:1])
	return p, nil
}

func (v vector) check(t *testing.T, p *Plugin) {
	if code := codeOf(p.Invalid); code != v.rejected {
		t.Errorf("rejected with %q, want %q; problems %v", code, v.rejected, p.Problems)
	}
	var problems []string
	for _, problem := range p.Problems {
		where := problem.Path
		if problem.Line > 0 {
			where += ":" + strconv.Itoa(problem.Line) + ":" + strconv.Itoa(problem.Column)
		}
		problems = append(problems, problem.Code+" "+where)
		if problem.Sentence == "" || strings.HasSuffix(problem.Sentence, ".") || strings.Contains(problem.Sentence, p.Root) {
			t.Errorf("the sentence %q is empty, ends in a full stop or names the root", problem.Sentence)
		}
	}
	compare(t, "problems", problems, v.problems)
	var connectors, skills []string
	for _, c := range p.Connectors {
		if c.Transport == Skills {
			continue // stands for the skills of a plugin without servers
		}
		state := "ok"
		if c.Invalid != nil {
			state = c.Invalid.Code
		}
		connectors = append(connectors, strconv.Quote(c.ID.Server)+" "+state)
	}
	compare(t, "connectors", connectors, v.connectors)
	for _, s := range p.Skills {
		skills = append(skills, s.Name)
	}
	compare(t, "skills", skills, v.skills)
	for _, check := range v.values {
		if check.of == "plugin" {
			containsJSON(t, p, check.want)
			continue
		}
		c, ok := p.Connector(ID{p.Name, check.subject})
		if !ok {
			t.Errorf("no connector %q", check.subject)
			continue
		}
		containsJSON(t, map[string]any{"launch": c.Launch, "options": c.Options, "requested": c.Requested}[check.of], check.want)
	}
}

func codeOf(e *coded.Error) string {
	if e == nil {
		return ""
	}
	return e.Code
}

func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// containsJSON compares the fields that want names.
func containsJSON(t *testing.T, value any, want string) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var got, expected map[string]any
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for name, wanted := range expected {
		if !reflect.DeepEqual(got[name], wanted) {
			t.Errorf("%s is %v, want %v", name, got[name], wanted)
		}
	}
}

func makeLink(name, target string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		path := filepath.Join(root, filepath.FromSlash(name))
		target := strings.ReplaceAll(target, "ROOT", root)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.Remove(path)
		if err := os.Symlink(filepath.FromSlash(target), path); err != nil {
			t.Fatal(err)
		}
	}
}

func makeDirectory(name string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(name)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// pad makes a file at least so many bytes long with spaces at its end.
func pad(name, size string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		path := filepath.Join(root, filepath.FromSlash(name))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(data, strings.Repeat(" ", wanted-len(data))...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// prefix puts bytes, written in hexadecimal, in front of a file.
func prefix(name, hex string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		path := filepath.Join(root, filepath.FromSlash(name))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var front []byte
		if _, err := fmt.Sscanf(hex, "%x", &front); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(front, data...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
