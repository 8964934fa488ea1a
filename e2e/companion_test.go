//go:build linux

package e2e

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// packed is the companion's npm package, packed once.
var packed = sync.OnceValues(func() (string, error) { return packCompanion(filepath.Join(built.dir, "companion")) })

func packCompanion(folder string) (string, error) {
	pack := exec.Command("../scripts/companion", folder)
	pack.Env = append(os.Environ(), "SALLYPORT_VERSION=1.2.3-test.4")
	var errs bytes.Buffer
	pack.Stderr = &errs
	out, err := pack.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/companion: %w\n%s%s", err, out, errs.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// consumer is a folder in which the package is installed, as in somebody's program.
func consumer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	modules := filepath.Join(dir, "node_modules")
	install(t, modules)
	tools, err := filepath.Abs("../companion/node_modules")
	if err == nil {
		err = errors.Join(os.Symlink(filepath.Join(tools, "@types"), filepath.Join(modules, "@types")),
			os.Symlink(filepath.Join(tools, "typescript"), filepath.Join(modules, "typescript")),
			os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module", "private": true}`), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// install unpacks the package into a folder of modules.
func install(t *testing.T, modules string) {
	t.Helper()
	target := filepath.Join(modules, "@sallyport", "companion")
	for name, content := range packedFiles(t) {
		path := filepath.Join(target, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// packedFiles are the files of the package by their names in it.
func packedFiles(t *testing.T) map[string][]byte {
	t.Helper()
	file, err := os.Open(need(t, packed))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(header.Name, "package/")
		if !ok || header.Typeflag != tar.TypeReg || header.Mode != 0o644 {
			t.Errorf("%s is in the package with type %c and mode %o", header.Name, header.Typeflag, header.Mode)
		}
		if files[name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// tool runs a program in a folder and fails with what it says.
func tool(t *testing.T, dir string, env []string, line ...string) string {
	t.Helper()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", line, err, out)
	}
	return string(out)
}

// TestCompanionPackage: what is in it, exactly; the same bytes every time; types and code
// for both module systems.
func TestCompanionPackage(t *testing.T) {
	t.Parallel()
	var want []string
	sources, err := filepath.Glob("../companion/src/*.ts")
	if err != nil || len(sources) < 5 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	modules := []string{"schema"} // which is made at every build
	for _, path := range sources {
		if name := strings.TrimSuffix(filepath.Base(path), ".ts"); name != "schema" {
			modules = append(modules, name)
		}
	}
	for _, name := range modules {
		for _, kind := range []string{"cjs", "esm"} {
			want = append(want, "dist/"+kind+"/"+name+".js", "dist/"+kind+"/"+name+".d.ts")
		}
	}
	want = append(want, "LICENSE", "README.md", "package.json", "dist/cjs/package.json")
	files := packedFiles(t)
	var got []string
	for name := range files {
		got = append(got, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the package holds\n%q, want\n%q", got, want)
	}
	checkManifest(t, files)

	again, err := packCompanion(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err1 := os.ReadFile(need(t, packed))
	second, err2 := os.ReadFile(again)
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(first, second) {
		t.Errorf("packed twice it is not the same: %v", err)
	}
	checkConsumers(t, consumer(t))
}

func checkManifest(t *testing.T, files map[string][]byte) {
	t.Helper()
	var manifest struct {
		Version                                     string
		Dependencies, DevDependencies, Scripts, Bin map[string]string
		Exports                                     map[string]any
	}
	if err := json.Unmarshal(files["package.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Version != "1.2.3-test.4" {
		t.Errorf("the version is %q", manifest.Version)
	}
	if len(manifest.Dependencies)+len(manifest.DevDependencies)+len(manifest.Scripts)+len(manifest.Bin) != 0 {
		t.Errorf("it needs or runs something: %+v", manifest)
	}
	var named []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			named = append(named, v)
		case map[string]any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(map[string]any(manifest.Exports))
	for _, name := range named {
		if files[strings.TrimPrefix(name, "./")] == nil {
			t.Errorf("exports name %s, which is not in the package", name)
		}
	}
	if len(named) != 5 {
		t.Errorf("exports name %q", named)
	}
}

// checkConsumers compiles and runs a program of each module system.
func checkConsumers(t *testing.T, dir string) {
	t.Helper()
	const program = `
import { Sallyport, SallyportError, startSallyport, type Decision, type Options, type State } from "@sallyport/companion";
const options: Options = { binary: "/nowhere/sallyport" };
const one = new Sallyport(options);
one.onState((state: State) => { if (state.name === "ready") { const port: number = state.port; void port; } });
export const pending = async (): Promise<Decision[]> => one.decisions({ signal: AbortSignal.timeout(1) });
// @ts-expect-error: there is no such option
void ({ binary: "", token: "x" } satisfies Options);
startSallyport(options).catch((error: unknown) => {
  console.log(error instanceof SallyportError ? error.code : String(error));
});
`
	config := `{"compilerOptions": {"module": "NodeNext", "target": "ES2022", "lib": ["ES2022"], "strict": true,
		"exactOptionalPropertyTypes": true, "types": ["node"], "skipLibCheck": false}, "files": ["a.mts", "b.cts"]}`
	for name, text := range map[string]string{"a.mts": program, "b.cts": program, "tsconfig.json": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tool(t, dir, nil, "node", "node_modules/typescript/bin/tsc", "-p", ".")
	for _, name := range []string{"a.mjs", "b.cjs"} {
		if out := tool(t, dir, nil, "node", name); out != "binary-missing\n" {
			t.Errorf("%s says %q", name, out)
		}
	}
}

// TestCompanionRunsAndEndsTheSidecar runs the package's own tests (companion/test) in Node,
// against the real program.
func TestCompanionRunsAndEndsTheSidecar(t *testing.T) {
	t.Parallel()
	dir := consumer(t)
	source, err := filepath.Abs("../companion")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tsconfig.json", "tsconfig.test.json"} {
		tool(t, dir, nil, "cp", filepath.Join(source, name), name)
	}
	tool(t, dir, nil, "cp", "-R", filepath.Join(source, "test"), "test")
	tool(t, dir, nil, "node", "node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json")
	tool(t, source, nil, "npm", "run", "--silent", "format:check")
	tests, err := filepath.Glob(filepath.Join(dir, "test", "*.test.mjs"))
	if err != nil || len(tests) < 3 {
		t.Fatalf("%d files of tests, %v", len(tests), err)
	}
	out := tool(t, dir, []string{"SALLYPORT=" + program(t), "SALLYPORT_PLAIN=" + plainProgram(t), "FAKESERVER=" + need(t, built.fakeserver)},
		append([]string{"node", "--test", "--test-reporter=tap", "--test-concurrency=1"}, tests...)...)
	if !strings.Contains(out, "# fail 0\n") || strings.Contains(out, "# pass 0\n") || !strings.Contains(out, "# skipped 0\n") {
		t.Errorf("the tests say\n%s", out)
	}
}

// TestElectronExample checks examples/electron against Electron's types, and runs its main
// process on a stand-in for Electron, with the real sidecar.
func TestElectronExample(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := t.TempDir()
	example := filepath.Join(dir, "examples", "electron")
	h.copyTree("../examples/electron/.", example)
	if err := os.RemoveAll(filepath.Join(example, "node_modules")); err != nil {
		t.Fatal(err)
	}
	// What the lock file says, and no program of Electron's: that is no part of its package.
	install(t, filepath.Join(dir, "install"))
	h.copyTree(filepath.Join(dir, "install", "@sallyport", "companion"), filepath.Join(dir, "companion"))
	tool(t, example, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	tools, err := filepath.Abs("../companion/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	tool(t, example, nil, "node", filepath.Join(tools, "typescript", "bin", "tsc"), "--allowJs", "--checkJs", "--noEmit", "--strict",
		"--module", "NodeNext", "--target", "ES2022", "--lib", "ES2023,DOM", "--skipLibCheck", "--types", "node",
		"--typeRoots", filepath.Join(tools, "@types"), "main.mjs", "view.mjs", "prepare.mjs", "preload.cjs", "page.js")

	if err := os.RemoveAll(filepath.Join(example, "node_modules", "electron")); err != nil {
		t.Fatal(err)
	}
	h.copyTree("testdata/electron", filepath.Join(example, "node_modules", "electron"))
	h.addFake("fake", "polite")
	h.with("SALLYPORT_BINARY="+h.bin, "ELECTRON_USER_DATA="+filepath.Join(h.dir, "app data"))
	runExample(t, h, example)
	waitFor(t, "nothing runs after the app", time.Minute, func() bool { return len(h.processes()) == 0 })
}

func runExample(t *testing.T, h *home, example string) {
	t.Helper()
	cmd := exec.Command("node", "node_modules/electron/run.mjs", "main.mjs")
	var log buffer
	cmd.Dir, cmd.Env, cmd.Stderr = example, h.env, &log
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	limit := time.AfterFunc(3*time.Minute, func() { cmd.Process.Kill() })
	defer limit.Stop()
	type happening struct {
		Event, Error                               string
		ContextIsolation, Sandbox, NodeIntegration bool
		Value                                      struct {
			State, Message string
			OK             bool
			Waiting        []string
			CanReview      bool
		}
	}
	lines := bufio.NewScanner(out)
	until := func(what string, is func(happening) bool) {
		t.Helper()
		for lines.Scan() {
			var one happening
			if err := json.Unmarshal(lines.Bytes(), &one); err == nil && is(one) {
				return
			}
		}
		t.Fatalf("never: %s\n%s", what, log.String())
	}
	until("a window that is locked down", func(e happening) bool {
		return e.Event == "window" && e.ContextIsolation && e.Sandbox && !e.NodeIntegration
	})
	until("ready", func(e happening) bool {
		return e.Event == "view" && e.Value.State == "ready" && len(e.Value.Waiting) == 0
	})
	home := filepath.Join(h.dir, "app data", "userData", "sallyport")
	io.WriteString(in, "foreign view\n")
	until("a page from elsewhere gets no answer", func(e happening) bool { return e.Event == "answer" && e.Error != "" })
	askOperator(t, home, "/v1/plugins/fake/main/ask")
	until("the question is counted", func(e happening) bool {
		return e.Event == "view" && e.Value.CanReview && slices.Contains(e.Value.Waiting, "fake/main")
	})
	io.WriteString(in, "quit\n")
	until("stopped before the app ends", func(e happening) bool { return e.Event == "view" && e.Value.State == "stopped" })
	until("the end", func(e happening) bool { return e.Event == "quit" })
	if _, err := os.Stat(filepath.Join(home, "state", "desktop.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the sidecar was not ended but killed: %v", err)
	}
}

// askOperator posts to the sidecar of a home, as the operator's own programs do.
func askOperator(t *testing.T, home, path string) {
	t.Helper()
	var place struct{ URL string }
	raw, err1 := os.ReadFile(filepath.Join(home, "state", "desktop.json"))
	token, err2 := os.ReadFile(filepath.Join(home, "state", "operator.token"))
	request, err3 := http.NewRequest(http.MethodPost, "", nil)
	if err := errors.Join(err1, err2, err3, json.Unmarshal(raw, &place)); err != nil {
		t.Fatal(err)
	}
	if request.URL, err1 = url.Parse(place.URL + path); err1 != nil {
		t.Fatal(err1)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s answers with %s", path, response.Status)
	}
}
