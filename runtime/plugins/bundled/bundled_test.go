package bundled_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/runtime/plugins"
	"sallyport/runtime/plugins/bundled"
)

func unpack(t *testing.T, dir string) {
	t.Helper()
	if err := bundled.Unpack(dir); err != nil {
		t.Fatal(err)
	}
}

func TestUnpackedPluginsHaveNoProblems(t *testing.T) {
	dir := t.TempDir()
	unpack(t, dir)
	l, err := plugins.New(plugins.Config{Folders: []plugins.Folder{{Path: dir, Label: "bundled"}}}).Scan(t.Context())
	if err != nil || len(l.Plugins) == 0 || len(l.Problems) > 0 {
		t.Fatalf("got %+v, %v", l, err)
	}
	for _, p := range l.Plugins {
		if p.Invalid != nil || len(p.Problems) > 0 || len(p.Connectors) != 1 || len(p.Skills) != 1 {
			t.Errorf("%s: %v %v", p.Name, p.Invalid, p.Problems)
		}
	}
	c, ok := l.Connector(plugins.ID{Plugin: "notes", Server: "main"})
	if !ok || c.Invalid != nil || !c.Requested.AllowsTool("add_note") || c.Requested.AllowsTool("other") {
		t.Fatalf("got %+v", c)
	}
}

func TestUnpackLeavesWhatIsTheSameAlone(t *testing.T) {
	dir := t.TempDir()
	unpack(t, dir)
	path := filepath.Join(dir, "notes", "server.mjs")
	before, _ := os.Stat(path)
	unpack(t, dir)
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) {
		t.Fatalf("the file was written again (%v)", err)
	}
}

func TestUnpackRepairs(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"a changed byte": func(d string) error { return os.WriteFile(d+"/server.mjs", []byte("x"), 0o644) },
		"an added file":  func(d string) error { return os.WriteFile(d+"/extra", nil, 0o644) },
		"a missing file": func(d string) error { return os.Remove(d + "/README.md") },
		"a mode":         func(d string) error { return os.Chmod(d+"/server.mjs", 0o755) },
		"a link": func(d string) error {
			_ = os.Rename(d+"/server.mjs", d+"/../other.mjs")
			return os.Symlink("../other.mjs", d+"/server.mjs")
		},
		"a missing folder": os.RemoveAll,
		"a file for the folder": func(d string) error {
			_ = os.RemoveAll(d)
			return os.WriteFile(d, nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, fresh := t.TempDir(), t.TempDir()
			unpack(t, dir)
			if err := harm(dir + "/notes"); err != nil {
				t.Fatal(err)
			}
			unpack(t, dir)
			unpack(t, fresh)
			if got, want := tree(t, dir+"/notes"), tree(t, fresh+"/notes"); got != want {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
			if left, _ := filepath.Glob(dir + "/.unpack-*"); len(left) > 0 {
				t.Fatalf("left behind: %v", left)
			}
		})
	}
}

func tree(t *testing.T, dir string) string {
	var lines []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		data, _ := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		lines = append(lines, name+" "+info.Mode().String()+" "+string(data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// client talks to a real node process, one line each way.
type client struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan string
	cmd   *exec.Cmd
}

func start(t *testing.T, data string) *client {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("node 18 or later is needed for the example plugin: install it, or put it on PATH")
	}
	dir := t.TempDir()
	unpack(t, dir)
	c := &client{t: t, lines: make(chan string, 100)}
	c.cmd = exec.Command(node, filepath.Join(dir, "notes", "server.mjs"))
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PLUGIN_DATA=" + data, "SystemRoot=" + os.Getenv("SystemRoot")}
	c.cmd.Stderr = os.Stderr
	c.in, _ = c.cmd.StdinPipe()
	out, _ := c.cmd.StdoutPipe()
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			c.lines <- scanner.Text()
		}
		close(c.lines)
	}()
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.in.Close() })
	return c
}

func (c *client) send(line string) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) next() map[string]any {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		var message map[string]any
		if err := json.Unmarshal([]byte(line), &message); !ok || err != nil || message["jsonrpc"] != "2.0" {
			c.t.Fatalf("got %q, %v", line, err)
		}
		return message
	case <-time.After(20 * time.Second):
		c.t.Fatal("no answer in 20 s")
	}
	return nil
}

// call returns the result of a tool call and how many progress messages came.
func (c *client) call(tool, args string) (result map[string]any, progress int) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `,"_meta":{"progressToken":7}}}`)
	for {
		message := c.next()
		if message["method"] == "notifications/progress" {
			progress++
			continue
		}
		if message["id"] != "x" || message["result"] == nil {
			c.t.Fatalf("got %v", message)
		}
		return message["result"].(map[string]any), progress
	}
}

// end closes stdin and expects a clean exit.
func (c *client) end() {
	c.t.Helper()
	_ = c.in.Close()
	for range c.lines {
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("the server did not end cleanly: %v", err)
	}
}

func TestNotesServerKeepsNotes(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	c := start(t, data)
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if got := c.next()["result"].(map[string]any)["protocolVersion"]; got != "2025-11-25" {
		t.Fatalf("version %v", got)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send(`{"jsonrpc":"2.0","id":-5,"method":"tools/list"}`)
	list := c.next()
	if list["id"] != -5.0 || len(list["result"].(map[string]any)["tools"].([]any)) != 4 {
		t.Fatalf("got %v", list)
	}
	added, _ := c.call("add_note", `{"text":"buy Milk","tags":["home"]}`)
	id := added["structuredContent"].(map[string]any)["id"].(string)
	found, progress := c.call("search_notes", `{"query":"milk"}`)
	if found["structuredContent"].(map[string]any)["total"] != 1.0 || progress == 0 {
		t.Fatalf("got %v, %d progress messages", found, progress)
	}
	c.end()

	c = start(t, data)
	if listed, _ := c.call("list_notes", `{}`); listed["structuredContent"].(map[string]any)["total"] != 1.0 {
		t.Fatalf("after a restart: %v", listed)
	}
	if gone, _ := c.call("delete_note", `{"id":"`+id+`"}`); gone["isError"] != false {
		t.Fatalf("got %v", gone)
	}
	if again, _ := c.call("delete_note", `{"id":"`+id+`"}`); again["isError"] != true {
		t.Fatalf("deleted twice: %v", again)
	}
	c.end()
}

func TestNotesServerRefuses(t *testing.T) {
	c := start(t, t.TempDir())
	for _, args := range []string{`{}`, `{"text":""}`, `{"text":1}`, `{"text":"a","more":1}`, `{"text":"a","tags":"b"}`, `{"text":"a","tags":[1]}`, `[]`, `{"text":"a","constructor":1}`} {
		if result, _ := c.call("add_note", args); result["isError"] != true {
			t.Errorf("add_note took %s", args)
		}
	}
	for request, code := range map[string]float64{
		`{"jsonrpc":"2.0","id":1,"method":"toString"}`:                                   -32601,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"constructor"}}`: -32602,
		`{`: -32700,
	} {
		c.send(request)
		if got := c.next()["error"].(map[string]any)["code"]; got != code {
			t.Errorf("%s gives %v", request, got)
		}
	}
	c.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	if got := c.next(); got["id"] != 9.0 || got["result"] == nil {
		t.Fatalf("ping gives %v", got)
	}
	c.end()
}
