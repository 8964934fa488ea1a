//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/keyringtest"
)

// guideSetups prepare what a page takes for granted, before the sidecar starts. A
// page that is not here has an empty home.
var guideSetups = map[string]func(*home){
	"remote.md":  remoteGuide,
	"secrets.md": func(h *home) { h.in(keyringtest.Unlocked(h.t)) },
	"bundles.md": func(h *home) {
		h.in(keyringtest.Unlocked(h.t))
		b := newBundles(h.t, h)
		cert, key, _ := b.keyPair("Jane Doe")
		b.copyTree(b.sign(b.greeter("1.2.3"), cert, key), filepath.Join(h.dir, "Downloads", "greeter.mcpb"))
	},
	"installing.md": func(h *home) {
		h.addFake("weather", "polite")
		if err := os.Mkdir(filepath.Join(h.dir, "Downloads"), 0o755); err != nil {
			h.t.Fatal(err)
		}
		if err := os.Rename(h.plugin("weather"), filepath.Join(h.dir, "Downloads", "weather")); err != nil {
			h.t.Fatal(err)
		}
	},
	"own-servers.md": func(h *home) {
		h.copyTree(need(h.t, built.fakeserver), filepath.Join(h.dir, "programs", "weather"))
	},
	"clients.md": func(h *home) {
		h.in(keyringtest.Unlocked(h.t))
		h.addCursor()
	},
}

// TestGuidePagesAsTheirReadersTypeThem types every ```console block of every page in
// docs/guide, from top to bottom, in one shell in a new home where the sidecar runs.
//
// A line that begins with "$ " is typed, with the "> " lines below it; a text between
// « and » is what the reader fills in, and is typed without the marks. The lines
// up to the next command have to be what it prints: "…" stands for any text within a
// line, and alone on its line for any lines. A command of which a line begins with
// "sallyport: " is a refusal and has to fail; any other has to succeed.
//
// A block "```json config.json" is what the reader writes into that file of the
// configuration folder.
func TestGuidePagesAsTheirReadersTypeThem(t *testing.T) {
	paths, err := filepath.Glob("../docs/guide/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no page was found: %v", err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			steps, err := guideSteps(string(text))
			if err != nil {
				t.Fatal(err)
			}
			h := newHomeOf(t, plainProgram(t))
			if prepare := guideSetups[name]; prepare != nil {
				prepare(h)
			}
			h.serve()
			readGuide(t, h, steps)
		})
	}
}

func readGuide(t *testing.T, h *home, steps []guideStep) {
	t.Helper()
	commands, shell := 0, guideShell(t, h)
	for _, step := range steps {
		if step.file != "" {
			if err := os.WriteFile(h.place(".config/sallyport", []string{step.file}), []byte(step.text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		commands++
		begun := time.Now()
		got, code := shell.typed(step.text)
		t.Logf("line %d: %s: $ %s", step.line, time.Since(begun).Round(time.Millisecond), step.text)
		if refusal := step.refusal(); refusal != (code != 0) {
			t.Fatalf("line %d: $ %s\nexit code %d\n%s", step.line, step.text, code, got)
		}
		if !printedAs(step.want, got) {
			t.Fatalf("line %d: $ %s\nthe page says:\n%s\nit prints:\n%s", step.line, step.text, step.want, got)
		}
	}
	if commands == 0 {
		t.Fatal("the page has no command")
	}
}

// guideStep is one command and what it prints, or one file.
type guideStep struct {
	line int
	file string // of the configuration folder; "" for a command
	text string // to type, or of the file
	want string // what is printed
}

func (s guideStep) refusal() bool {
	return strings.HasPrefix(s.want, "sallyport: ") || strings.Contains(s.want, "\nsallyport: ")
}

// guideSteps reads the blocks of a page that are to be carried out.
func guideSteps(page string) ([]guideStep, error) {
	var steps []guideStep
	open, file := "", ""
	for i, line := range strings.Split(page, "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == "":
			if open = strings.TrimSpace(info); open == "" {
				return nil, fmt.Errorf("line %d: a block says what it is: console, json config.json, text", i+1)
			}
			if _, name, named := strings.Cut(open, " "); named {
				file = name
				steps = append(steps, guideStep{line: i + 1, file: name})
			}
		case fence:
			open, file = "", ""
		case file != "":
			steps[len(steps)-1].text += line + "\n"
		case open == "console":
			var err error
			if steps, err = guideLine(steps, i+1, line); err != nil {
				return nil, err
			}
		}
	}
	if open != "" {
		return nil, fmt.Errorf("a block %q is never closed", open)
	}
	return steps, nil
}

func guideLine(steps []guideStep, n int, line string) ([]guideStep, error) {
	filled := strings.NewReplacer("«", "", "»", "")
	if command, typed := strings.CutPrefix(line, "$ "); typed {
		return append(steps, guideStep{line: n, text: filled.Replace(command)}), nil
	}
	if len(steps) == 0 || steps[len(steps)-1].file != "" {
		return nil, fmt.Errorf("line %d: a block begins with a command", n)
	}
	last := &steps[len(steps)-1]
	if more, typed := strings.CutPrefix(line, "> "); typed && last.want == "" {
		last.text += "\n" + filled.Replace(more)
		return steps, nil
	}
	last.want += line + "\n"
	return steps, nil
}

// printedAs reports whether got is what the page says. White space at the ends of
// lines does not count, and columns may be wider than shown.
func printedAs(want, got string) bool {
	var pattern strings.Builder
	for line := range strings.Lines(want) {
		line = strings.TrimRight(line, " \n")
		if line == "…" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		for i, part := range strings.Split(line, "…") {
			if i > 0 {
				pattern.WriteString(".*")
			}
			pattern.WriteString(columns.ReplaceAllString(regexp.QuoteMeta(part), "  +"))
		}
		pattern.WriteString(" *\n")
	}
	if want == "" {
		return true // a page need not show what does not matter
	}
	return regexp.MustCompile(`\A` + pattern.String() + `\z`).MatchString(got)
}

var columns = regexp.MustCompile(`   *`)

// guideTerminal is a shell that a reader types into.
type guideTerminal struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
	end func() // kills it
}

func guideShell(t *testing.T, h *home) *guideTerminal {
	t.Helper()
	bin := filepath.Join(h.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(h.bin, filepath.Join(bin, "sallyport")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "--norc", "--noprofile")
	cmd.Dir, cmd.Env = h.dir, append(h.env, "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	end := func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	t.Cleanup(func() {
		end()
		cmd.Wait()
		out.Close()
	})
	return &guideTerminal{t, in, bufio.NewReader(out), end}
}

// typed types a command, with nothing on its stdin, and returns what it printed and
// its exit code.
func (s *guideTerminal) typed(command string) (printed string, code int) {
	s.t.Helper()
	const mark = "--- typed: "
	if _, err := fmt.Fprintf(s.in, "{ %s\n} < /dev/null; printf '\\n%s%%d\\n' $?\n", command, mark); err != nil {
		s.t.Fatal(err)
	}
	late := time.AfterFunc(commandLimit, s.end)
	defer late.Stop()
	var all bytes.Buffer
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("$ %s\nended the shell, or took longer than %s: %v\n%s", command, commandLimit, err, all.String())
		}
		if number, ended := strings.CutPrefix(line, mark); ended {
			code, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil {
				s.t.Fatal(err)
			}
			printed := strings.TrimSuffix(all.String(), "\n") // the mark's own
			if printed != "" && !strings.HasSuffix(printed, "\n") {
				printed += "\n"
			}
			return printed, code
		}
		all.WriteString(line)
	}
}

func TestWhatAGuidePageSaysIsCompared(t *testing.T) {
	for _, test := range []struct {
		what, page, prints string
		want               bool
	}{
		{"the same line", "kept: A\n", "kept: A\n", true},
		{"another line", "kept: A\n", "kept: B\n", false},
		{"one line too many", "kept: A\n", "kept: A\nkept: B\n", false},
		{"any text within a line", "at …:…\n", "at 127.0.0.1:80\n", true},
		{"any lines", "first\n…\nlast\n", "first\nx\ny\nlast\n", true},
		{"no lines for any", "first\n…\n", "first\n", true},
		{"a wider column", "NAME  KEPT\n", "NAME       KEPT  \n", true},
		{"nothing shown", "", "whatever\n", true},
	} {
		if got := printedAs(test.page, test.prints); got != test.want {
			t.Errorf("%s: %v", test.what, got)
		}
	}
	steps, err := guideSteps("text\n```json config.json\n{}\n```\n```console\n$ a «b» \\\n> c\nout\n$ d\nsallyport: e: f\n```\n")
	if err != nil || len(steps) != 3 {
		t.Fatalf("%+v, %v", steps, err)
	}
	if steps[0].file != "config.json" || steps[0].text != "{}\n" || steps[1].text != "a b \\\nc" || steps[1].want != "out\n" || steps[1].refusal() || !steps[2].refusal() {
		t.Errorf("%+v", steps)
	}
	for _, wrong := range []string{"```\nx\n```\n", "```console\n$ a\n", "```console\nout\n```\n"} {
		if _, err := guideSteps(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
