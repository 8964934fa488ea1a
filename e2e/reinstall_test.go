//go:build linux

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Two releases of the program, made when the first test needs them. Whatever the tests
// prove about a reinstallation, they prove with these.
const (
	oldRelease = "1.0.0"
	newRelease = "2.0.0"
)

var (
	oldProgram = sync.OnceValues(buildRelease)
	newProgram = sync.OnceValues(restamped)
)

// buildRelease builds and stamps the old one as scripts/version does.
func buildRelease() (string, error) {
	path := filepath.Join(built.dir, "sallyport-"+oldRelease)
	build := exec.Command("go", "build", "-ldflags", "-s -w -X sallyport/internal/buildinfo.stamp="+stamp(oldRelease), "-o", path, "sallyport")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("cannot build release %s: %w", oldRelease, err), errors.New(string(out)))
	}
	return path, nil
}

func stamp(version string) string {
	return "sallyport-build," + version + ",none,2026-01-01T00:00:00Z,"
}

// restamped is the new one: what a build with the other stamp gives, without linking again.
func restamped() (string, error) {
	old, err := oldProgram()
	if err != nil {
		return "", err
	}
	raw, err := os.ReadFile(old)
	if err != nil {
		return "", err
	}
	if !bytes.Contains(raw, []byte(stamp(oldRelease))) {
		return "", errors.New("the stamp is not in the program")
	}
	path := filepath.Join(built.dir, "sallyport-"+newRelease)
	return path, os.WriteFile(path, bytes.ReplaceAll(raw, []byte(stamp(oldRelease)), []byte(stamp(newRelease))), 0o755)
}

func release(t testing.TB, version string) string {
	if version == oldRelease {
		return need(t, oldProgram)
	}
	return need(t, newProgram)
}

// reinstallation is a user with an installed program, and one of the scripts that replace it.
type reinstallation struct {
	*home
	script string
	flags  []string // of every run
}

// script is the path of a script of the repository.
func script(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// reinstall is a run of the script, not started.
func (r *reinstallation) reinstall(flags ...string) *exec.Cmd {
	cmd := exec.Command(r.script, append(append([]string{}, r.flags...), flags...)...)
	cmd.Env, cmd.Dir = r.env, r.dir
	return cmd
}

// reinstalled is a run to its end, which has to exit with code.
func (r *reinstallation) reinstalled(code int, flags ...string) string {
	r.t.Helper()
	got := r.finish(r.reinstall(flags...), commandLimit)
	if got.code != code {
		r.t.Fatalf("%v exited with %d, want %d\n%s%s", flags, got.code, code, got.stdout, got.stderr)
	}
	return got.stdout + got.stderr
}

// answer is what `sallyport health --json` says.
type answer struct {
	OK                                     bool
	Outcome, Version, Instance, Executable string
	Port, PID                              int
}

// health asks with a program that the test itself brings, so that nothing that was installed
// vouches for itself.
func (r *reinstallation) health() answer {
	r.t.Helper()
	cmd := r.command("health", "--json")
	cmd.Path = release(r.t, newRelease)
	got := r.finish(cmd, commandLimit)
	var a answer
	if err := json.Unmarshal([]byte(got.stdout), &a); err != nil {
		r.t.Fatalf("health: %v\n%s%s", err, got.stdout, got.stderr)
	}
	return a
}

// runsFrom fails unless version answers, from a process whose program lies in dir, over plain
// HTTP as well.
func (r *reinstallation) runsFrom(dir, version string) answer {
	r.t.Helper()
	a := r.health()
	if !a.OK || a.Version != version {
		r.t.Fatalf("%+v answers, want a healthy %s", a, version)
	}
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", a.PID)); err != nil || !strings.HasPrefix(exe, dir+"/") {
		r.t.Fatalf("pid %d runs %s (%v), want a program in %s", a.PID, exe, err, dir)
	}
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/api/desktop-health", a.Port))
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct {
		OK       bool
		Instance string
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil || response.StatusCode != 200 || !body.OK || body.Instance != a.Instance {
		r.t.Fatalf("GET /api/desktop-health: %d, %+v, %v", response.StatusCode, body, err)
	}
	return a
}

// endsAll stops what a script has started: nobody else is left to.
func (r *reinstallation) endsAll() {
	for range 3 {
		for _, p := range r.processes() {
			syscall.Kill(p.pid, syscall.SIGTERM)
		}
		if holds(5*time.Second, func() bool { return len(r.processes()) == 0 }) {
			return
		}
	}
}

// detached starts a program of the user's that outlives whoever starts it, as the system's
// own starters do, and forgets it.
func (r *reinstallation) detached(path string, args ...string) int {
	r.t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = r.env, r.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go cmd.Wait() // a zombie would look alive
	return cmd.Process.Pid
}

// serves starts the installed program's sidecar and waits until it is healthy.
func (r *reinstallation) serves() answer {
	r.t.Helper()
	r.detached(r.bin, "serve")
	waitFor(r.t, "the sidecar answers", time.Minute, func() bool { return r.health().OK })
	return r.health()
}

// memory is what has to survive a reinstallation.
type memory struct{ connectors, decisions, clients string }

// remembers reads it, by the installed program.
func (r *reinstallation) remembers() memory {
	r.t.Helper()
	r.ok("audit", "verify")
	return memory{r.ok("plugins", "list", "--json"), r.ok("decisions", "list", "--all", "--json"), r.ok("clients", "list", "--json")}
}

// approvesNotes approves the example plugin that comes with the program, and calls it.
func (r *reinstallation) approvesNotes() {
	r.t.Helper()
	r.ok("approve", "notes", "--tools", "list_notes,add_note", "--yes")
	r.ok("call", "notes", "add_note", "--args", `{"text":"buy bread"}`)
}

// stillHasNotes fails unless the approval holds and the plugin has its data.
func (r *reinstallation) stillHasNotes() {
	r.t.Helper()
	if got := r.ok("call", "notes", "list_notes", "--args", "{}"); !strings.Contains(got, "buy bread") {
		r.t.Errorf("the notes are %s", got)
	}
	r.ok("audit", "verify")
}

func writeFile(t testing.TB, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func copyProgram(t testing.TB, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, string(raw), 0o755)
}

// checksums lists the files of a tree as `sha256sum` does, but for its own list.
func checksums(t testing.TB, dir, except string) string {
	t.Helper()
	var list bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		rest, _ := filepath.Rel(dir, path)
		if err != nil || !entry.Type().IsRegular() || rest == except {
			return err
		}
		raw, err := os.ReadFile(path)
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(raw), rest)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}

// answersEverything takes a port as another program does that says 200 to everything.
func answersEverything(t *testing.T, port int) net.Listener {
	t.Helper()
	var listener net.Listener
	waitFor(t, "the port is free", time.Minute, func() bool {
		var err error
		listener, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		return err == nil
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			body := `{"ok":true,"service":"sallyport","version":"2.0.0","instance":"x"}`
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			conn.Close()
		}
	}()
	return listener
}

// macOS's own shell is bash 3.2 of 2007. Where no such shell is at hand, these are the
// constructs that it does not have or reads otherwise.
func TestReinstallScriptsAreForBash32(t *testing.T) {
	forbidden := []struct {
		what    string
		pattern *regexp.Regexp
		example string
	}{
		{"an associative array, a name reference or a global", regexp.MustCompile(`\b(declare|local|typeset)\s+-[a-z]*[Ang]`), "declare -A of"},
		{"mapfile, readarray or coproc", regexp.MustCompile(`\b(mapfile|readarray|coproc)\b`), "mapfile -t lines"},
		{"wait -n", regexp.MustCompile(`\bwait\s+-[np]`), "wait -n"},
		{"a change of case, or a quoted form", regexp.MustCompile(`\$\{[A-Za-z_0-9]+([,^]|@[A-Za-z])`), "x=${x,,}"},
		{"&>> or |&", regexp.MustCompile(`&>>|\|&`), "make &>>log"},
		{"case with ;& or ;;&", regexp.MustCompile(`;;?&`), "a) b ;;&"},
		{"a descriptor that is named", regexp.MustCompile(`\bexec\s+\{`), "exec {fd}>x"},
		{"a limit of less than a second for read", regexp.MustCompile(`\bread\s[^|;]*-t\s*[0-9]*\.`), "read -r -t 0.5 x"},
		{"[[ -v, or test -v", regexp.MustCompile(`(\[\[?|\btest)\s+-v\b`), "[ -v x ]"},
		{"a time by printf", regexp.MustCompile(`%\([^)]*\)T`), "printf '%(%s)T'"},
		{"an index from the end", regexp.MustCompile(`\$\{[A-Za-z_]+\[-|\$\{[A-Za-z_]+:[^}]*:-`), "${x:0:-1}"},
		{"variables of later shells", regexp.MustCompile(`\$\{?(BASHPID|EPOCH|SRANDOM)`), "echo $BASHPID"},
		{"shopt of later shells", regexp.MustCompile(`\bshopt\b.*(globstar|lastpipe|inherit_errexit)`), "shopt -s lastpipe"},
		{"an array, which is unset while it is empty", regexp.MustCompile(`\[@\]|\[\*\]`), `"${all[@]}"`},
		{"a case inside $( ), which ends at its first )", regexp.MustCompile(`\$\([^)]*\bcase\b`), "$(case x in"},
		{"[[ or ((, which set -e does not see there", regexp.MustCompile(`(^|[;&|]|\bthen|\bdo)\s*(\[\[|\(\()\s`), "	[[ -n $x ]]"},
	}
	for _, f := range forbidden {
		if !f.pattern.MatchString(f.example) {
			t.Errorf("%s is not found in %s", f.what, f.example)
		}
	}
	for _, name := range []string{"reinstall-lib.sh", "reinstall-macos.sh", "reinstall-linux.sh"} {
		raw, err := os.ReadFile(script(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(raw), "\n") {
			code, _, _ := strings.Cut(" "+line, " #")
			for _, f := range forbidden {
				if f.pattern.MatchString(code) {
					t.Errorf("%s:%d has %s: %s", name, i+1, f.what, line)
				}
			}
		}
	}
}
