package install

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/plugins"
)

// demo is an ordinary server's package with something that it needs.
func (r *registry) demo() {
	r.publish(pack{name: "@scope/demo", version: "1.2.3", manifest: map[string]any{
		"description": "An  example\nserver", "bin": map[string]any{"demo": "./dist/cli.js"}, "dependencies": map[string]any{"dep": "^1.0.0"},
	}, files: map[string]string{"dist/cli.js": "#!/usr/bin/env node\nrequire('dep')\n", ".gitignore": "x\n"}})
	r.publish(pack{name: "dep", version: "1.0.0", files: map[string]string{"index.js": "", "bin/native*": "\x7fELF"}, manifest: map[string]any{
		"bin": "bin/native",
	}})
}

func TestAnNPMPackageBecomesAPlugin(t *testing.T) {
	r := newRegistry(t)
	r.demo()
	i := r.installer()
	steps := map[string]bool{}
	staged, err := i.Stage(t.Context(), source(t, "npm:@scope/demo@1.2.3"), func(s Step) { steps[s.Doing] = true })
	must(t, err)
	p := staged.Plugin
	if p.Name != "scope-demo" || p.Version != "1.2.3" || p.Description != "An example server" || len(p.Connectors) != 1 || len(p.Problems) != 0 {
		t.Errorf("the plugin is %+v", p)
	}
	launch := p.Connectors[0].Launch
	if launch.Command != "node" || !slices.Equal(launch.Args, []string{"${PLUGIN_ROOT}/node_modules/@scope/demo/dist/cli.js"}) {
		t.Errorf("it starts %+v", launch)
	}
	if o := staged.Origin; o.Text != "npm:@scope/demo@1.2.3" || o.Version != "1.2.3" || !strings.HasPrefix(o.Integrity, "sha512-") || !strings.HasPrefix(o.Lock, "sha256-") {
		t.Errorf("it comes from %+v", o)
	}
	for _, step := range []string{"resolving", "fetching", "checking", "digesting"} {
		if !steps[step] {
			t.Errorf("it does not tell about %s", step)
		}
	}
	for name, there := range map[string]bool{
		"node_modules/dep/index.js": true, "node_modules/.bin": false, "node_modules/.package-lock.json": false, "package-lock.json": true, ".npmrc": false,
	} {
		if _, err := os.Lstat(filepath.Join(staged.Dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, _ := os.Stat(filepath.Join(staged.Dir, "node_modules/dep/bin/native")); info.Mode().Perm() != 0o755 && !onWindows() {
		t.Errorf("the native program has %v", info.Mode())
	}
	wantEmpty(t, i.config.Info)
}

// With the lock file of the first time, the same bytes come out again, whatever
// the registry has since.
func TestTheSameLockGivesTheSameDigest(t *testing.T) {
	r := newRegistry(t)
	r.demo()
	i := r.installer()
	vendor := Vendor{Name: "@scope/demo", Version: "1.2.3", Args: []string{"--root", "${PLUGIN_DATA}"}, Env: map[string]string{"MODE": "quiet"}, Plugin: "mine"}
	first, err := i.VendorNPM(t.Context(), vendor, nil)
	must(t, err)
	if c := first.Plugin.Connectors[0]; first.Plugin.Name != "mine" || !slices.Equal(c.Launch.Args[1:], vendor.Args) || !slices.Equal(c.Launch.Env, []plugins.Value{{Name: "MODE", Value: "quiet"}}) {
		t.Errorf("it starts %+v", c.Launch)
	}
	r.publish(pack{name: "dep", version: "1.1.0", files: map[string]string{"index.js": "newer"}})
	vendor.Lock = []byte(read(t, first.Dir, "package-lock.json"))
	second, err := i.VendorNPM(t.Context(), vendor, nil)
	must(t, err)
	if second.Digest != first.Digest {
		t.Error("another digest")
	}
	vendor.Lock = nil
	third, err := i.VendorNPM(t.Context(), vendor, nil)
	must(t, err)
	if third.Digest == first.Digest {
		t.Error("the newer package is not there")
	}
	if third.Origin.Lock == first.Origin.Lock || third.Origin.Integrity != first.Origin.Integrity {
		t.Errorf("it comes from %+v and %+v", first.Origin, third.Origin)
	}
}

func TestNothingOfAPackageRuns(t *testing.T) {
	r := newRegistry(t)
	proof := filepath.Join(t.TempDir(), "ran")
	touch := "node -e \"require('fs').writeFileSync('" + filepath.ToSlash(proof) + "','')\""
	scripts := map[string]any{"preinstall": touch, "install": touch, "postinstall": touch, "prepare": touch, "dependencies": touch}
	npmrc := "ignore-scripts=false\nscript-shell=/bin/sh\nnode-options=--require " + proof + "\ngit=" + proof + "\nregistry=http://127.0.0.1:1/\n"
	r.publish(pack{name: "demo", version: "1.0.0", manifest: map[string]any{"bin": "cli.js", "scripts": scripts, "dependencies": map[string]any{"dep": "1.0.0"}},
		files: map[string]string{"cli.js": "", ".npmrc": npmrc, "binding.gyp": "{}"}})
	r.publish(pack{name: "dep", version: "1.0.0", manifest: map[string]any{"scripts": scripts}, files: map[string]string{"binding.gyp": "{}"}})
	i := r.installer()
	staged, err := i.Stage(t.Context(), source(t, "npm:demo@1.0.0"), nil)
	must(t, err)
	wantNotThere(t, proof)
	want := []Warning{{Code: "npm-scripts-not-run", Path: "node_modules/demo"}, {Code: "npm-scripts-not-run", Path: "node_modules/dep"}}
	if !slices.Equal(staged.Warnings, want) {
		t.Errorf("got %+v", staged.Warnings)
	}
}

// What a package needs from elsewhere than the registry is neither fetched nor
// asked for.
func TestOnlyTheRegistryIsAsked(t *testing.T) {
	elsewhere := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere = true }))
	defer server.Close()
	for name, needs := range map[string]string{
		"git": "git+" + server.URL + "/x.git", "a URL": server.URL + "/x.tgz", "a host": "github:a/b", "a folder": "file:../..", "a file": "file:x.tgz",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			r.publish(pack{name: "demo", version: "1.0.0", manifest: map[string]any{"bin": "cli.js", "dependencies": map[string]any{"x": needs}}, files: map[string]string{"cli.js": ""}})
			refused(t, r.installer(), source(t, "npm:demo@1.0.0"), "npm-not-from-registry")
			if elsewhere {
				t.Error("somebody else was asked")
			}
		})
	}
}

func TestPackagesThatAreRefused(t *testing.T) {
	cli := map[string]string{"cli.js": ""}
	bin := map[string]any{"bin": "cli.js"}
	tests := []struct {
		name, code string
		p          pack
	}{
		{"with other bytes than the registry says", "npm-integrity-wrong", pack{manifest: bin, files: cli, change: func(data []byte) []byte {
			data = slices.Clone(data)
			data[len(data)/2] ^= 1
			return data
		}}},
		{"without a SHA-512", "npm-integrity-missing", pack{manifest: bin, files: cli, dist: map[string]any{"integrity": nil}}},
		{"from another host", "npm-not-from-registry", pack{manifest: bin, files: cli, dist: map[string]any{"tarball": "http://127.0.0.1:9/x.tgz"}}},
		{"that is a bomb", "npm-package-invalid", pack{manifest: bin, files: map[string]string{"cli.js": "", "zeros": strings.Repeat("\x00", 8<<20)}}},
		{"without a program", "npm-no-program", pack{files: cli}},
		{"with two programs", "npm-which-program", pack{manifest: map[string]any{"bin": map[string]any{"a": "a.js", "b": "b.js"}}, files: cli}},
		{"with a program outside", "npm-package-invalid", pack{manifest: map[string]any{"bin": map[string]any{"demo": "../../../evil.js"}}, files: cli}},
		{"with a placeholder for a program", "npm-package-invalid", pack{manifest: map[string]any{"bin": map[string]any{"demo": "${PLUGIN_DATA}/evil.js"}}, files: cli}},
		{"that is a plugin with packages of its own", "npm-layout", pack{
			manifest: map[string]any{"dependencies": map[string]any{"demo": "0.9.0"}}, files: map[string]string{"plugin.json": manifestJSON},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegistry(t)
			tt.p.name, tt.p.version = "demo", "1.0.0"
			r.publish(pack{name: "demo", version: "0.9.0"})
			r.publish(tt.p)
			refused(t, r.installer(), source(t, "npm:demo@1.0.0"), tt.code)
		})
	}
}

func TestWhatNPMSaysIsSaidInWords(t *testing.T) {
	r := newRegistry(t)
	r.demo()
	i := r.installer()
	refused(t, i, source(t, "npm:missing@1.0.0"), "npm-no-package")
	refused(t, i, source(t, "npm:dep@9.9.9"), "npm-no-version")
	i.config.Environ = []string{"PATH=/nonexistent"}
	refused(t, i, source(t, "npm:dep@1.0.0"), "helper-missing")
	for said, code := range map[string]string{
		"npm error code ENOTFOUND\nnpm error x": "npm-unreachable", "npm ERR! code ECONNREFUSED\n": "npm-unreachable", "npm error code ENOSPC\n": "disk-full",
		"npm error code EINTEGRITY\n": "npm-integrity-wrong", "npm error code EWEIRD\n": "npm-failed", "whatever": "npm-failed",
	} {
		if err := npmTrouble(said, errors.New("exit 1")); coded.Of(err) != code || strings.Contains(err.Error(), "whatever") {
			t.Errorf("%q: %v", said, err)
		}
	}
}

// Whatever npm made is compared with the archives: npm could be wrong, or somebody
// could have written between.
func TestWhatNPMUnpackedIsCompared(t *testing.T) {
	r := newRegistry(t)
	r.demo()
	i := r.installer()
	made := t.TempDir()
	i.hook = func(step string) {
		if step == "fetched" {
			staging, err := filepath.Glob(filepath.Join(i.config.Staging, "*"))
			must(t, errors.Join(err, os.CopyFS(made, os.DirFS(staging[0]))))
		}
	}
	_, err := i.Stage(t.Context(), source(t, "npm:@scope/demo@1.2.3"), nil)
	must(t, err)
	raw := []byte(read(t, made, treeName, "package-lock.json"))
	lock, err := readLock(raw, i.config.Registry)
	must(t, err)
	j := &job{installer: i, progress: func(Step) {}}
	for name, change := range map[string]func(modules string) error{
		"nothing":      func(string) error { return nil },
		"another byte": func(m string) error { return os.WriteFile(filepath.Join(m, "dep", "index.js"), []byte("evil"), 0o644) },
		"a new file":   func(m string) error { return os.WriteFile(filepath.Join(m, "dep", "evil.js"), nil, 0o644) },
		"a new package": func(m string) error {
			return errors.Join(os.Mkdir(filepath.Join(m, "evil"), 0o755), os.WriteFile(filepath.Join(m, "evil", "index.js"), nil, 0o644))
		},
		"a link":        func(m string) error { return os.Symlink("index.js", filepath.Join(m, "dep", "link.js")) },
		"a hidden file": func(m string) error { return os.WriteFile(filepath.Join(m, ".evil.js"), nil, 0o644) },
		"a changed lock": func(m string) error {
			return os.WriteFile(filepath.Join(m, "..", "package-lock.json"), []byte("{}"), 0o644)
		},
		"a missing file": func(m string) error { return os.Remove(filepath.Join(m, "dep", "index.js")) },
		"a lost archive": func(m string) error { return os.RemoveAll(filepath.Join(m, "..", "..", workName, "npm-cache")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.CopyFS(dir, os.DirFS(made)))
			must(t, change(filepath.Join(dir, treeName, "node_modules")))
			j.tree, j.work = filepath.Join(dir, treeName), filepath.Join(dir, workName)
			want := "npm-integrity-wrong"
			switch name {
			case "nothing":
				want = ""
			case "a changed lock":
				want = "npm-lock-changed"
			}
			if err := j.checkPackages(t.Context(), lock, raw); coded.Of(err) != want {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// What a package's archive holds besides files is left out by npm, and never
// written anywhere else.
func TestLinksAndStepsOutOfAPackage(t *testing.T) {
	r := newRegistry(t)
	r.publish(pack{name: "demo", version: "1.0.0", manifest: map[string]any{"bin": "cli.js"}, files: map[string]string{"cli.js": ""}, entries: []tar.Header{
		{Name: "package/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd", Mode: 0o777},
		{Name: "package/../../../evil", Linkname: "x", Mode: 0o644},
	}})
	i := r.installer()
	staged, err := i.Stage(t.Context(), source(t, "npm:demo@1.0.0"), nil)
	if err != nil {
		wantRefusal(t, i, err, "npm-integrity-wrong")
		return
	}
	wantNotThere(t, filepath.Join(staged.Dir, "node_modules", "demo", "link"))
	for _, dir := range []string{staged.Dir, i.config.Staging, filepath.Dir(staged.Dir)} {
		wantNotThere(t, filepath.Join(dir, "evil"))
	}
}

func TestAPackageThatIsAPluginIsThatPlugin(t *testing.T) {
	r := newRegistry(t)
	servers := `{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": {"s": {"type": "stdio", "command": "node", "args": ["${PLUGIN_ROOT}/s.js"]}}}`
	r.publish(pack{name: "@scope/demo-plugin", version: "1.0.0", manifest: map[string]any{"dependencies": map[string]any{"dep": "1.0.0"}},
		files: map[string]string{"plugin.json": manifestJSON, "mcp.json": servers, "s.js": "require('dep')"}})
	r.publish(pack{name: "dep", version: "1.0.0", files: map[string]string{"index.js": ""}})
	staged, err := r.installer().Stage(t.Context(), source(t, "npm:@scope/demo-plugin@1.0.0"), nil)
	must(t, err)
	if staged.Plugin.Name != "demo" || read(t, staged.Dir, "s.js") != "require('dep')" || read(t, staged.Dir, "node_modules", "dep", "index.js") != "" {
		t.Errorf("staged %+v", staged.Plugin)
	}
}

func TestPackagesForOtherSystemsAreLeftOut(t *testing.T) {
	r := newRegistry(t)
	other := "darwin"
	if runtime.GOOS == other {
		other = "linux"
	}
	r.publish(pack{name: "demo", version: "1.0.0", manifest: map[string]any{"bin": "cli.js", "optionalDependencies": map[string]any{"other": "1.0.0"}}, files: map[string]string{"cli.js": ""}})
	r.publish(pack{name: "other", version: "1.0.0", manifest: map[string]any{"os": []string{other}}, files: map[string]string{"x": ""}})
	staged, err := r.installer().Stage(t.Context(), source(t, "npm:demo@1.0.0"), nil)
	must(t, err)
	wantNotThere(t, filepath.Join(staged.Dir, "node_modules", "other"))
}

// npm has no limit of its own, so it is looked at while it works.
func TestNPMIsEndedWhenItUnpacksTooMuch(t *testing.T) {
	r := newRegistry(t)
	r.publish(pack{name: "demo", version: "1.0.0", manifest: map[string]any{"bin": "cli.js"}, files: map[string]string{"cli.js": "", "noise": noise(8 << 20)}})
	i := r.installer()
	i.config.Limits = artifact.Limits{TreeBytes: 1 << 20}
	refused(t, i, source(t, "npm:demo@1.0.0"), "tree-too-large")
}

// noise is what does not pack.
func noise(n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{}).Read(b)
	return string(b)
}

func TestACancelledPackageLeavesNoProcessAndNoFile(t *testing.T) {
	r := newRegistry(t)
	r.demo()
	for _, doing := range []string{"resolving", "fetching", "checking"} {
		i := r.installer()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := i.Stage(ctx, source(t, "npm:@scope/demo@1.2.3"), func(s Step) {
			if s.Doing == doing {
				cancel()
			}
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", doing, err)
		}
		wantEmpty(t, i.config.Staging)
	}
}

func TestLockFilesThatAreRefused(t *testing.T) {
	const registry = "https://registry.npmjs.org/"
	good := map[string]any{"version": "1.0.0", "resolved": registry + "demo/-/demo-1.0.0.tgz", "integrity": "sha512-" + strings.Repeat("A", 86) + "=="}
	with := func(key string, changes map[string]any) map[string]any {
		entry := map[string]any{}
		for k, v := range good {
			entry[k] = v
		}
		for k, v := range changes {
			entry[k] = v
		}
		return map[string]any{"": map[string]any{}, "node_modules/demo": good, key: entry}
	}
	tests := []struct {
		name, code string
		version    int
		packages   map[string]any
	}{
		{"an ordinary one", "", 3, with("node_modules/demo/node_modules/@a/b", nil)},
		{"an old one", "npm-lock-invalid", 1, with("node_modules/x", nil)},
		{"none", "npm-lock-invalid", 3, nil},
		{"a place outside", "npm-lock-invalid", 3, with("../x", nil)},
		{"a place outside node_modules", "npm-lock-invalid", 3, with("src/x", nil)},
		{"a step out", "npm-lock-invalid", 3, with("node_modules/../x", nil)},
		{"npm's own folder", "npm-lock-invalid", 3, with("node_modules/.bin", nil)},
		{"a link", "npm-not-from-registry", 3, with("node_modules/x", map[string]any{"link": true})},
		{"another host", "npm-not-from-registry", 3, with("node_modules/x", map[string]any{"resolved": "https://registry.npmjs.org.evil.example/x.tgz"})},
		{"no encryption", "npm-not-from-registry", 3, with("node_modules/x", map[string]any{"resolved": "http://registry.npmjs.org/x.tgz"})},
		{"git", "npm-not-from-registry", 3, with("node_modules/x", map[string]any{"resolved": "git+ssh://git@example.org/x.git"})},
		{"a file", "npm-not-from-registry", 3, with("node_modules/x", map[string]any{"resolved": "file:x.tgz"})},
		{"no place", "npm-not-from-registry", 3, with("node_modules/x", map[string]any{"resolved": ""})},
		{"no hash", "npm-integrity-missing", 3, with("node_modules/x", map[string]any{"integrity": ""})},
		{"a weak hash", "npm-integrity-missing", 3, with("node_modules/x", map[string]any{"integrity": "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="})},
		{"a hash that is none", "npm-lock-invalid", 3, with("node_modules/x", map[string]any{"integrity": "sha512-AAAA"})},
		{"something in another's archive", "", 3, with("node_modules/demo/node_modules/x", map[string]any{"inBundle": true, "resolved": "", "integrity": ""})},
		{"something in nobody's archive", "npm-not-from-registry", 3, with("node_modules/x", map[string]any{"inBundle": true, "resolved": "", "integrity": ""})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"lockfileVersion": tt.version, "packages": tt.packages})
			must(t, err)
			lock, err := readLock(raw, registry)
			if coded.Of(err) != tt.code {
				t.Errorf("got %q (%v), want %q", coded.Of(err), err, tt.code)
			}
			if err == nil {
				if _, err := lock.own(Source{Name: "demo", Version: "1.0.1"}); coded.Of(err) != "npm-lock-invalid" {
					t.Errorf("another version: %v", err)
				}
			}
		})
	}
}

func FuzzReadLock(f *testing.F) {
	f.Add([]byte(`{"lockfileVersion": 3, "packages": {"": {}, "node_modules/a": {"version": "1.0.0", "resolved": "https://r/a.tgz", "integrity": "sha512-` + strings.Repeat("A", 86) + `=="}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		lock, err := readLock(raw, "https://r/")
		if err != nil {
			return
		}
		for key, entry := range lock.Packages {
			if key == "" || entry.InBundle {
				continue
			}
			if _, err := entry.sum(); err != nil || !strings.HasPrefix(entry.Resolved, "https://r/") || !filepath.IsLocal(filepath.FromSlash(key)) {
				t.Fatalf("%q is %+v", key, entry)
			}
		}
	})
}

func TestNamesOfPlugins(t *testing.T) {
	for name, want := range map[string]string{
		"demo": "demo", "@scope/demo": "scope-demo", "@a.b/c_d": "a.b-c-d", "a--b..c": "a-b.c", "~x~": "x", strings.Repeat("x", 100): strings.Repeat("x", 64),
	} {
		if got := pluginName(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
