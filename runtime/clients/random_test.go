package clients

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writer makes random documents that mean the same servers, in every style that a
// person's file may have.
type writer struct {
	*rand.Rand
	eol      string
	comments int
}

func (w *writer) pick(of ...string) string { return of[w.IntN(len(of))] }

// comment counts what it writes, so that a test can tell that none was lost.
func (w *writer) comment(form string) string {
	w.comments++
	return fmt.Sprintf(form, fmt.Sprintf("note%d,{}[]\"", w.comments))
}

func (w *writer) extra() string {
	switch w.IntN(8) {
	case 0:
		return " " + w.comment("/* %s */") + " "
	case 1:
		return " " + w.comment("// %s") + w.eol + "\t"
	case 2:
		return w.eol + "    "
	case 3:
		return " "
	}
	return ""
}

func (w *writer) json(names []string) string {
	var servers strings.Builder
	for i, name := range names {
		fmt.Fprintf(&servers, "%s%q%s:%s{%s\"command\"%s: \"x\", \"args\": [\"a,}\", \"//\"]%s}%s", w.extra(), name, w.extra(), w.extra(), w.extra(), w.extra(), w.extra(), w.extra())
		if i < len(names)-1 || w.IntN(2) == 0 {
			servers.WriteString(",")
		}
	}
	holder := `"mcpServers"` + w.extra() + ":" + w.extra() + "{" + servers.String() + w.extra() + "}"
	other := `"other": {"mcpServers": {"x": 1}, "n": 1.50, "t": "a\u00e9"}`
	if w.IntN(2) == 0 {
		holder, other = other, holder
	}
	return w.extra() + "{" + w.extra() + holder + w.extra() + "," + w.extra() + other + w.extra() + w.pick("", ",") + w.extra() + "}" + w.extra()
}

func (w *writer) toml(names []string) string {
	var out strings.Builder
	line := func(format string, args ...any) {
		out.WriteString(fmt.Sprintf(format, args...) + w.pick("", " "+w.comment("# %s")) + w.eol)
		if w.IntN(3) == 0 {
			out.WriteString(w.pick("", "\t") + w.comment("# %s") + w.eol)
		}
		if w.IntN(3) == 0 {
			out.WriteString(w.eol)
		}
	}
	line("top = 1")
	for _, name := range names {
		switch w.IntN(3) {
		case 0:
			line("[mcp_servers.%q]", name)
			line("command = 'x'")
			line("args = [%s  \"a\", %s]", w.eol, w.eol)
			line("[mcp_servers.%q.env]", name)
			line("A = \"1\"")
		case 1:
			line("[ mcp_servers . %q ]", name)
			line("command = \"\"\"x%s# no note\"\"\"", w.eol)
		default:
			line("[mcp_servers.%q]", name)
			line("env = { A = \"1\", B = \"2\" }")
			line("command = \"x\"")
		}
		if w.IntN(2) == 0 {
			line("[other.t%d]", out.Len())
			line("k = [1, 2]")
		}
	}
	return strings.TrimSuffix(out.String(), w.pick("", w.eol))
}

func (w *writer) yaml(names []string) string {
	var out strings.Builder
	indent := strings.Repeat(" ", 1+w.IntN(4))
	line := func(format string, args ...any) {
		out.WriteString(fmt.Sprintf(format, args...) + w.pick("", " "+w.comment("# %s")) + w.eol)
		if w.IntN(4) == 0 {
			out.WriteString(w.pick("", indent) + w.comment("# %s") + w.eol)
		}
		if w.IntN(4) == 0 {
			out.WriteString(w.eol)
		}
	}
	line("before: 1")
	line("extensions:")
	for _, name := range names {
		line("%s%q:", indent, name)
		line("%s%senabled: true", indent, indent)
		line("%s%stype: stdio", indent, indent)
		line("%s%scmd: x", indent, indent)
		if w.IntN(2) == 0 {
			line("%s%sargs:", indent, indent)
			line("%s%s- a", indent, indent)
		}
	}
	line("after: {a: [1, 2]}")
	return out.String()
}

// TestRandomDocuments: whatever a file looks like, connecting changes the entries that
// it says and nothing else, keeps every comment, and is undone byte for byte.
func TestRandomDocuments(t *testing.T) {
	const rounds = 120
	for _, format := range []struct {
		client, file string
		write        func(*writer, []string) string
	}{
		{"cursor", ".cursor/mcp.json", (*writer).json},
		{"codex", ".codex/config.toml", (*writer).toml},
		{"goose", ".config/goose/config.yaml", (*writer).yaml},
	} {
		refused := 0
		for seed := range uint64(rounds) {
			w := &writer{Rand: rand.New(rand.NewPCG(seed, 1)), eol: "\n"}
			if seed%3 == 0 {
				w.eol = "\r\n"
			}
			names := []string{"a", "b c", "d"}[:1+w.IntN(3)]
			text := format.write(w, names)
			if !tryDocument(t, format.client, format.file, text, names, w) {
				refused++
			}
			if t.Failed() {
				t.Fatalf("%s, seed %d:\n%s", format.client, seed, text)
			}
		}
		if refused > rounds/20 {
			t.Errorf("%s: %d of %d documents could not be edited", format.client, refused, rounds)
		}
	}
}

func tryDocument(t *testing.T, name, file, text string, names []string, w *writer) bool {
	t.Helper()
	home, backups := t.TempDir(), t.TempDir()
	path := filepath.Join(home, file)
	put(t, path, []byte(text))
	client, _ := ByName(name)
	system := System{OS: "linux", Home: home}
	without := names[:w.IntN(len(names)+1)]
	change, err := client.Plan(system, "", testLaunch, without...)
	if err != nil {
		return false
	}
	record, err := change.Apply(backups, time.Now(), func(Record) error { return nil })
	if err != nil {
		t.Error(err)
	}
	now, _ := os.ReadFile(path)
	left := map[string]bool{}
	for _, e := range Read(system)[0].Entries {
		left[e.Name] = true
	}
	for i, n := range names {
		if left[n] == (i < len(without)) {
			t.Errorf("%q is there: %v", n, left[n])
		}
	}
	if !left[EntryName] {
		t.Error("the entry is not there")
	}
	if len(without) == 0 {
		for i := range w.comments {
			if note := fmt.Sprintf("note%d,", i+1); strings.Contains(text, note) && !strings.Contains(string(now), note) {
				t.Errorf("%s is lost:\n%s", note, now)
			}
		}
	}
	undo, err := PlanUndo(record, backups)
	if err != nil {
		t.Fatal(err)
	}
	if err := undo.Apply(); err != nil {
		t.Error(err)
	}
	if back, _ := os.ReadFile(path); string(back) != text {
		t.Errorf("undone it is\n%s", back)
	}
	return true
}
