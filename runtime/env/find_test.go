//go:build !windows

package env

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/coded"
)

// tree makes files in a new folder; a value that begins with "→" is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, link := strings.CutPrefix(content, "→"); link {
			err = os.Symlink(strings.ReplaceAll(target, "ROOT", root), path)
		} else {
			mode := os.FileMode(0o755)
			if strings.HasSuffix(name, ".txt") {
				mode = 0o644
			}
			err = os.WriteFile(path, []byte(strings.ReplaceAll(content, "ROOT", root)), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestFindSearchesOnlyWhereItMay(t *testing.T) {
	root := tree(t, map[string]string{
		"home/bin/node": "old", "opt/bin/node": "new", "opt/bin/data.txt": "x", "opt/bin/folder/x": "x", "cwd/tool": "evil",
		"plugin/server": "in", "plugin/bin/deep": "in", "plugin/out": "→ROOT/opt/bin/node", "opt/bin/link": "→node",
	})
	t.Chdir(filepath.Join(root, "cwd"))
	at := func(names ...string) string {
		for i, name := range names {
			names[i] = filepath.Join(root, name)
		}
		return strings.Join(names, ":")
	}
	for _, row := range []struct {
		what, command, path string
		found, code, says   string
	}{
		{"the first folder wins", "node", at("home/bin", "opt/bin"), "home/bin/node", "", ""},
		{"a folder is not a program", "folder", at("opt/bin"), "", "exec-not-found", `"folder"`},
		{"a file that is not executable says so", "data.txt", at("opt/bin"), "", "exec-not-found", "not executable"},
		{"the current folder is never searched", "tool", ":.:" + at("opt/bin"), "", "exec-not-found", "opt/bin"},
		{"home is shown as ~", "tool", at("home/bin"), "", "exec-not-found", "searched: ~/bin"},
		{"an empty PATH says so", "tool", "", "", "exec-not-found", "PATH is empty"},
		{"a file of the plugin", "./server", at("opt/bin"), "plugin/server", "", ""},
		{"a file below", "bin/deep", "", "plugin/bin/deep", "", ""},
		{"out of the plugin by words", "./../cwd/tool", "", "", "exec-outside", "leads out"},
		{"out of the plugin by a link", "./out", "", "", "exec-outside", "leads out"},
		{"missing in the plugin", "./gone", "", "", "exec-not-found", `"./gone" is not there`},
		{"a link is found as it is", "link", at("opt/bin"), "opt/bin/link", "", ""},
		{"an absolute path", at("opt/bin/node"), "", "opt/bin/node", "", ""},
		{"an absolute path that is missing", at("home/gone"), "", "", "exec-not-found", `"~/gone"`},
		{"nothing", "", at("opt/bin"), "", "exec-not-found", "empty"},
		{"NUL", "no\x00de", at("opt/bin"), "", "exec-not-found", "NUL"},
	} {
		t.Run(row.what, func(t *testing.T) {
			x, err := Find(context.Background(), Search{Command: row.command, Path: row.path, Root: filepath.Join(root, "plugin"), Home: filepath.Join(root, "home")})
			if coded.Of(err) != row.code {
				t.Fatalf("got %v, want code %q", err, row.code)
			}
			if err != nil {
				if !strings.Contains(err.Error(), row.says) {
					t.Errorf("%q does not say %q", err, row.says)
				}
				if strings.Contains(err.Error(), filepath.Join(root, "home")) {
					t.Errorf("%q shows the user's home", err)
				}
				return
			}
			if x.Found != filepath.Join(root, row.found) {
				t.Errorf("found %q, want %q", x.Found, row.found)
			}
		})
	}
	if _, err := Find(context.Background(), Search{Command: "./server"}); coded.Of(err) != "exec-outside" {
		t.Errorf("a relative command without a bundle: %v", err)
	}
}

func TestFindHashesWhatNothingElseCovers(t *testing.T) {
	root := tree(t, map[string]string{"bin/real": "program", "bin/link": "→real", "plugin/server": "in"})
	bin := filepath.Join(root, "bin")
	x, err := Find(context.Background(), Search{Command: "link", Path: bin})
	want := Executable{Command: "link", Found: filepath.Join(bin, "link"), Real: filepath.Join(bin, "real"), SHA256: hashOf("program")}
	if err != nil || !equalExecutable(x, want) {
		t.Errorf("got %+v %v, want %+v", x, err, want)
	}
	x, err = Find(context.Background(), Search{Command: "./server", Root: filepath.Join(root, "plugin")})
	if err != nil || !x.InBundle || x.SHA256 != "" {
		t.Errorf("in the bundle: %+v %v", x, err)
	}
	x, err = Find(context.Background(), Search{Command: "/bin/sh"})
	if err != nil || x.Protected != (os.Geteuid() != 0) || (x.SHA256 == "") != x.Protected {
		t.Errorf("/bin/sh as uid %d: %+v %v", os.Geteuid(), x, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = Find(ctx, Search{Command: "real", Path: bin}); err != context.Canceled {
		t.Errorf("a cancelled search: %v", err)
	}
}

func equalExecutable(a, b Executable) bool {
	return a.Command == b.Command && a.Found == b.Found && a.Real == b.Real && a.SHA256 == b.SHA256 && a.Protected == b.Protected && a.Shim == b.Shim
}

func TestInterpreterChain(t *testing.T) {
	root := tree(t, map[string]string{
		"bin/env": "binary env", "bin/node": "binary node", "bin/sh": "#! ROOT/bin/node --sh\n", "lib/elsewhere": "x",
		"direct":    "#!ROOT/bin/node\n",
		"byEnv":     "#!ROOT/bin/env node\r\n",
		"split":     "#!ROOT/bin/env -S A=b node --flag x\n",
		"splitLong": "#!ROOT/bin/env --split-string=node --flag\n",
		"nested":    "#!ROOT/bin/sh -e\n",
		"relative":  "#!bin/node\n",
		"option":    "#!ROOT/bin/env -i\n",
		"quoted":    "#!ROOT/bin/env -S \"node\"\n",
		"newPath":   "#!ROOT/bin/env -S PATH=/x node\n",
		"slash":     "#!ROOT/bin/env ./node\n",
		"missing":   "#!ROOT/bin/env deno\n",
		"loop":      "#!ROOT/loop\n",
		"binary":    "\x7fELF",
		"empty":     "",
	})
	for _, row := range []struct{ command, chain, code string }{
		{"direct", "node", ""},
		{"byEnv", "env node", ""},
		{"split", "env node", ""},
		{"splitLong", "env node", ""},
		{"nested", "sh node", ""},
		{"binary", "", ""},
		{"empty", "", ""},
		{"relative", "", "interpreter-unknown"},
		{"option", "", "interpreter-unknown"},
		{"quoted", "", "interpreter-unknown"},
		{"newPath", "", "interpreter-unknown"},
		{"slash", "", "interpreter-unknown"},
		{"missing", "", "exec-not-found"},
		{"loop", "", "interpreter-depth"},
	} {
		t.Run(row.command, func(t *testing.T) {
			x, err := Find(context.Background(), Search{Command: row.command, Path: root + ":" + filepath.Join(root, "bin")})
			if coded.Of(err) != row.code {
				t.Fatalf("got %v, want code %q", err, row.code)
			}
			var chain []string
			for _, i := range x.Interpreters {
				chain = append(chain, filepath.Base(i.Found))
				content, _ := os.ReadFile(i.Real)
				if i.SHA256 != hashOf(string(content)) {
					t.Errorf("%s has no hash of its own", i.Found)
				}
			}
			if err == nil && strings.Join(chain, " ") != row.chain {
				t.Errorf("chain %q, want %q", chain, row.chain)
			}
		})
	}
}

func TestShimsOfVersionManagers(t *testing.T) {
	for _, row := range []struct{ found, real, manager string }{
		{"/home/u/.asdf/shims/node", "", "asdf"},
		{"/home/u/.local/share/mise/shims/npx", "/usr/bin/mise", "mise"},
		{"/usr/local/bin/node", "/usr/local/bin/mise", "mise"},
		{"/home/u/.volta/bin/node", "/home/u/.volta/bin/volta-shim", "volta"},
		{"/home/u/.pyenv/shims/python", "", "pyenv"},
		{"/home/u/.rbenv/shims/ruby", "", "rbenv"},
		{"/run/user/1/fnm_multishells/1_2/bin/node", "/home/u/.fnm/node-versions/v22/bin/node", "fnm"},
		{`C:\Users\u\AppData\Roaming\nvm\nodejs\node.exe`, "", "nvm"},
		{"/home/u/.nvm/versions/node/v22.0.0/bin/node", "", ""},
		{"/usr/bin/mise", "/usr/bin/mise", ""},
		{"/usr/bin/node", "/usr/bin/node", ""},
	} {
		if got := shimOf(row.found, row.real); got != row.manager {
			t.Errorf("%s: got %q, want %q", row.found, got, row.manager)
		}
	}
}

func TestWindowsSearchRules(t *testing.T) {
	got := inFolders("windows", "npx", `C:\Windows;;.;relative;"C:\Program Files\nodejs\";\\server\share`)
	want := []string{`C:\Windows\npx`, `C:\Program Files\nodejs\npx`, `\\server\share\npx`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, row := range []struct {
		candidate, pathExt string
		want               []string
	}{
		{`C:\n\npx`, "", []string{`C:\n\npx.com`, `C:\n\npx.exe`, `C:\n\npx.bat`, `C:\n\npx.cmd`}},
		{`C:\n\npx`, ".EXE;.CMD", []string{`C:\n\npx.exe`, `C:\n\npx.cmd`}},
		{`C:\n\npx.Cmd`, ".EXE;.CMD", []string{`C:\n\npx.Cmd`}},
		{`C:\n\a.b`, ".EXE;;bad;.", []string{`C:\n\a.b.exe`}},
	} {
		if got := withExtensions(row.candidate, row.pathExt); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q, want %q", row.candidate, got, row.want)
		}
	}
}

func TestBatchFilesGetNothingToReinterpret(t *testing.T) {
	for _, row := range []struct {
		executable, arg string
		refused         bool
	}{
		{`C:\Program Files\nodejs\npx.cmd`, `C:\Users\x\My Vault\`, false},
		{"npx.cmd", "trailing ", false},
		{"npx.cmd", "", false},
		{"npx.cmd", "--flag=a,b;c", false},
		{"npx.cmd", "a&calc", true},
		{"npx.cmd", "a & calc", true},
		{"npx.cmd", `say "hi"`, true},
		{"npx.cmd", "%PATH%", true},
		{"npx.cmd", "!x!", true},
		{"npx.cmd", "a^b", true},
		{"npx.cmd", "a|b", true},
		{"npx.cmd", "a>b", true},
		{"npx.cmd", "a\nb", true},
		{"npx.cmd", "f(x)", true},
		{"npx.cmd", `C:\Program Files (x86)\x`, false},
		{"NPX.BAT", "a&b", true},
		{"npx.cmd. ", "a&b", true},
		{"node.exe", "a&b %PATH%", false},
	} {
		err := CheckBatch(row.executable, []string{"ok", row.arg})
		if want := map[bool]string{true: "batch-argument"}[row.refused]; coded.Of(err) != want {
			t.Errorf("%s %q: got %v", row.executable, row.arg, err)
		}
	}
}

func FuzzInterpreterLine(f *testing.F) {
	f.Add("#!/usr/bin/env -S node --x\nrest")
	f.Fuzz(func(t *testing.T, head string) {
		line := interpreterLine([]byte(head))
		if strings.Contains(line, "\n") || line != "" && !strings.HasPrefix(head, "#!") {
			t.Fatalf("%q", line)
		}
		for _, system := range []string{"linux", "darwin"} {
			if name, err := envTarget(system, line); err == nil && (name == "" || strings.HasPrefix(name, "-")) {
				t.Fatalf("%q gives %q", line, name)
			}
		}
	})
}
