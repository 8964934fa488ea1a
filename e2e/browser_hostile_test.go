//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNothingOfAPluginIsMarkupInABrowser: a plugin whose every string tries markup,
// other directions, terminal escapes, characters that nobody sees or a megabyte: in its
// manifest, its file names and files, its arguments, its skills, its tools, their
// schemas, its answers and its error output. On every page it is text.
func TestNothingOfAPluginIsMarkupInABrowser(t *testing.T) {
	t.Parallel()
	f := newFort(t)
	const (
		markup = `<img src=x onerror="window.__hit=1"><script>window.__hit=1</script>`
		unseen = "\u202eevil\u2066\u200b\u00ad\ufeff\u0007\x1b[2J\x1b]8;;https://x.example\x07link"
		all    = markup + unseen
	)
	server, err := os.ReadFile(filepath.Join("testdata", "hostile", "server.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	f.write("hostile", "server.mjs", server, 0o644)
	f.write("hostile", "notice.txt", []byte("first "+all+"\n"), 0o644)
	for _, name := range []string{`<img src=x onerror=window.__hit=1>.js`, "\u202esj.evil", "bell\a\x1b[31m.sh", strings.Repeat("n", 200) + ".txt"} {
		f.write("hostile", filepath.Join("files", name), []byte(all+"\n"), 0o755)
	}
	f.write("hostile", "skills/first/SKILL.md", []byte("---\nname: first\ndescription: \"<img src=x onerror=window.__hit=1> \\u202Eevil\"\n---\n# "+markup+"\n"), 0o644)
	f.declare("hostile", object{"version": "1.0.0", "description": all + strings.Repeat("long ", 5000),
		"author": object{"name": all}, "license": "MIT"})
	f.declareServer("hostile", object{"type": "stdio", "command": "node", "args": []string{"${PLUGIN_ROOT}/server.mjs", markup, "\u202eevil\u200b", strings.Repeat("a", 3000)},
		"env": object{"NOTE": all}})
	s := f.serve()
	token := f.addClient("claude")
	p := f.sitDown(t, "hostile.mjs")

	p.says("approved")
	ended := s.sdkOverHTTP(t, token, "").start(t, "hostile__main__say", map[string]any{"text": all, markup: all})
	f.openCall()
	p.goOn()
	p.says("answered")
	if got := <-ended; got.err != nil {
		t.Errorf("the call that was allowed: %v", got.err)
	}
	p.goOn()
	p.says("change")
	f.write("hostile", "notice.txt", []byte("second "+all+"\n"), 0o644)
	f.write("hostile", filepath.Join("files", "new\u202e"+`<b>.txt`), []byte(all+"\n"), 0o755)
	waitFor(t, "the change is noticed", 30*time.Second, func() bool { return f.connector("hostile/main").Reason == "artifact-changed" })
	p.goOn()
	p.says("done")
	s.stop()
}
