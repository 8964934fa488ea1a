package plugins

import (
	"strings"
	"testing"
	"time"
)

// A front matter of a few hundred bytes must not become a billion nodes.
func TestSkillWithAliasesInAliasesIsCheap(t *testing.T) {
	var b strings.Builder
	b.WriteString("---\nname: s\ndescription: d\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	names := []string{"a0"}
	for i := 1; i < 10; i++ {
		name := "a" + string(rune('0'+i))
		last := names[len(names)-1]
		b.WriteString(name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat("*"+last+",", 10), ",") + "]\n")
		names = append(names, name)
	}
	b.WriteString("---\n")
	done := make(chan string, 1)
	go func() { _, sentence := parseSkill([]byte(b.String()), "s"); done <- sentence }()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		t.Fatal("still reading after 2 s")
	}
}

func TestSkillThatIsWorkForTheYAMLReaderIsCheap(t *testing.T) {
	for _, unit := range []string{"[", "{a: ", "- ", "? ", "!!a ", "&a ", "*a ", "|\n", "a:\n", "a: 1\n", "'", "[]"} {
		for _, size := range []int{maxFrontMatter - 100, maxSkill - 100} {
			text := "---\nname: s\ndescription: d\nx: " + strings.Repeat(unit, size/len(unit)) + "\n---\n"
			started := time.Now()
			parseSkill([]byte(text), "s")
			if took := time.Since(started); took > time.Second {
				t.Errorf("%d bytes of %q take %s", size, unit, took)
			}
		}
	}
}
