//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scripts/reinstall-macos.sh runs here as it is. What it takes from macOS is stood in for
// (testdata/reinstall/macos) by tools that really copy, really start and really end; what only
// a Mac can show is on docs/macos.md.

// mac is a user whose Sallyport.app is installed.
type mac struct {
	*reinstallation
	target, source, shims string
}

// newMac installs the old release and has the new one ready.
func newMac(t *testing.T) *mac {
	t.Helper()
	dir, err := os.MkdirTemp("", "sallyport-mac-") //nolint:usetesting // its name stands in command lines, by which leftovers are found
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	target := filepath.Join(dir, "All Applications", "Sallyport.app")
	m := &mac{target: target, source: filepath.Join(dir, "dist (new)", "Sallyport.app"), shims: filepath.Join(dir, "shims")}
	m.reinstallation = &reinstallation{home: newHomeOf(t, filepath.Join(target, "Contents", "MacOS", "sallyport")), script: script(t, "reinstall-macos.sh"),
		flags: []string{"--target", m.target, "--source", m.source}}
	t.Cleanup(m.endsAll)
	tools, err := filepath.Abs("testdata/reinstall/macos")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(m.shims, 0o755); err != nil {
		t.Fatal(err)
	}
	m.with("PATH="+tools+":"+os.Getenv("PATH"), "SHIMS="+m.shims, "LOCK="+m.work("lock"), "SALLYPORT_REINSTALL_PATIENCE=3", "TMPDIR="+m.dir)
	m.bundle(m.target, oldRelease)
	m.bundle(m.source, newRelease)
	return m
}

// work is a path in the folder that the script keeps beside its target.
func (m *mac) work(parts ...string) string {
	return filepath.Join(append([]string{filepath.Dir(m.target), ".Sallyport.reinstall"}, parts...)...)
}

// bundle makes a signed Sallyport.app of a release.
func (m *mac) bundle(app, version string) {
	m.t.Helper()
	copyProgram(m.t, release(m.t, version), filepath.Join(app, "Contents", "MacOS", "sallyport"))
	m.describe(app, version, "io.sallyport.Sallyport")
}

// broken makes one whose program is a shell's: program sees the arguments, and has the
// old and the new release in $old and $new.
func (m *mac) broken(program string) {
	m.t.Helper()
	text := fmt.Sprintf("#!/bin/sh\nhere=${0%%/*}/../Resources\nold=$here/old new=$here/new\n%s\nexec \"$new\" \"$@\"\n", program)
	writeFile(m.t, filepath.Join(m.source, "Contents", "MacOS", "sallyport"), text, 0o755)
	copyProgram(m.t, release(m.t, oldRelease), filepath.Join(m.source, "Contents", "Resources", "old"))
	copyProgram(m.t, release(m.t, newRelease), filepath.Join(m.source, "Contents", "Resources", "new"))
	copyProgram(m.t, "/bin/sleep", filepath.Join(m.source, "Contents", "Resources", "sleep"))
	m.describe(m.source, newRelease, "io.sallyport.Sallyport")
}

// describe writes the property list and signs.
func (m *mac) describe(app, version, id string) {
	m.t.Helper()
	writeFile(m.t, filepath.Join(app, "Contents", "Info.plist"), fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0">
<dict>
	<key>CFBundleExecutable</key>
	<string>sallyport</string>
	<key>CFBundleIdentifier</key>
	<string>%s</string>
	<key>CFBundleShortVersionString</key>
	<string>%s</string>
</dict>
</plist>
`, id, version), 0o644)
	m.sign(app)
}

func (m *mac) sign(app string) {
	m.t.Helper()
	const list = "Contents/_CodeSignature/CodeResources"
	writeFile(m.t, filepath.Join(app, list), checksums(m.t, app, list), 0o644)
}

// installed is the version that lies at the target, whole; "" where nothing lies there.
func (m *mac) installed() string {
	m.t.Helper()
	if _, err := os.Lstat(m.target); err != nil {
		return ""
	}
	verify := exec.Command("sha256sum", "--check", "--strict", "--quiet", "Contents/_CodeSignature/CodeResources")
	verify.Dir = m.target
	if out, err := verify.CombinedOutput(); err != nil {
		m.t.Fatalf("what lies at the target is not whole: %s", out)
	}
	raw, err := os.ReadFile(filepath.Join(m.target, "Contents", "Info.plist"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, version := range []string{oldRelease, newRelease} {
		if strings.Contains(string(raw), "<string>"+version+"<") {
			return version
		}
	}
	return "unknown"
}

// leavesNothing fails if the script left more beside its target than what it keeps.
func (m *mac) leavesNothing() {
	m.t.Helper()
	found, _ := filepath.Glob(m.work("*"))
	for _, path := range found {
		if name := filepath.Base(path); name != "previous.zip" && name != "previous.version" {
			m.t.Errorf("left beside the target: %s", name)
		}
	}
}

// remember writes a file that the stand-ins read.
func (m *mac) remember(name string, lines ...string) {
	m.t.Helper()
	writeFile(m.t, filepath.Join(m.shims, name), strings.Join(lines, "\n")+"\n", 0o644)
}

func (m *mac) forget(name string) { os.Remove(filepath.Join(m.shims, name)) }

// called is what the stand-ins were called with.
func (m *mac) called() string {
	raw, _ := os.ReadFile(filepath.Join(m.shims, "log"))
	return string(raw)
}

// loginItem starts the installed program at login, and now, and keeps it alive.
func (m *mac) loginItem() {
	m.t.Helper()
	plist := filepath.Join(m.dir, "Library", "LaunchAgents", "io.sallyport.Sallyport.plist")
	writeFile(m.t, plist, fmt.Sprintf("<plist>\n<dict>\n<key>ProgramArguments</key>\n<array>\n<string>%s</string>\n<string>serve</string>\n</array>\n</dict>\n</plist>\n", m.bin), 0o644)
	m.launchctl("bootstrap", "gui/501", plist)
	waitFor(m.t, "the login item's sidecar answers", time.Minute, func() bool { return m.health().OK })
}

func (m *mac) launchctl(args ...string) {
	m.t.Helper()
	cmd := exec.Command("testdata/reinstall/macos/launchctl", args...)
	cmd.Env = m.env
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("launchctl %v: %v: %s", args, err, out)
	}
}

// From a running old version to a healthy new one on the same port, approvals and audit
// intact (issue 6), and back again.
func TestReinstallOnMacOS(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	before := m.serves()
	m.approvesNotes()
	m.addClient("claude")
	kept := m.remembers()
	const framework = "Contents/Frameworks/X.framework/Versions"
	makeFolder(t, filepath.Join(m.source, framework, "A"))
	link(t, "A", filepath.Join(m.source, framework, "Current"))
	keepsLinks := func() {
		t.Helper()
		if to, err := os.Readlink(filepath.Join(m.target, framework, "Current")); err != nil || to != "A" {
			t.Errorf("the link of a framework leads to %q, %v", to, err)
		}
	}

	said := m.reinstalled(0)
	keepsLinks()
	after := m.runsFrom(m.target, newRelease)
	if after.Port != before.Port || after.Instance == before.Instance || after.PID == before.PID {
		t.Errorf("before %+v, after %+v: want another start on the same port", before, after)
	}
	if alive(before.PID) {
		t.Error("the old sidecar still runs")
	}
	m.stillHasNotes()
	if got := m.remembers(); got != kept {
		t.Errorf("it remembers\n%+v\nand had\n%+v", got, kept)
	}
	for _, part := range []string{"Sallyport 2.0.0 is healthy at http://127.0.0.1:" + strconv.Itoa(after.Port), "back to 1.0.0: ", "ad hoc"} {
		if !strings.Contains(said, part) {
			t.Errorf("it does not say %q:\n%s", part, said)
		}
	}
	if log := m.called(); !strings.Contains(log, "lsregister -u "+m.source+"\n") || !strings.Contains(log, "lsregister -f "+m.target+"\n") {
		t.Errorf("LaunchServices does not know which copy counts:\n%s", log)
	}
	m.leavesNothing()

	// The flags of every run name a source; a rollback has its own.
	m.flags = []string{"--target", m.target}
	m.reinstalled(0, "--rollback")
	back := m.runsFrom(m.target, oldRelease)
	if back.Port != before.Port {
		t.Errorf("port %d after the rollback, %d before", back.Port, before.Port)
	}
	m.stillHasNotes()
	if got := m.remembers(); got != kept {
		t.Errorf("after the rollback it remembers\n%+v\nand had\n%+v", got, kept)
	}
	m.reinstalled(0, "--rollback") // forward again
	m.runsFrom(m.target, newRelease)
	keepsLinks()
	m.leavesNothing()
}

// A login item keeps its sidecar alive, so it goes first, and it is the one that starts the
// new one.
func TestReinstallOnMacOSWithALoginItem(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	m.loginItem()
	before := m.health()
	said := m.reinstalled(0)
	after := m.runsFrom(m.target, newRelease)
	if after.Port != before.Port || alive(before.PID) || !inOrder(said, "ending the login item", "starting 2.0.0") {
		t.Errorf("before %+v, after %+v\n%s", before, after, said)
	}
	if log := m.called(); !inOrder(log, "launchctl bootout gui/", "mv "+m.target, "launchctl bootstrap gui/") || strings.Contains(log, "\nopen ") {
		t.Errorf("called:\n%s", log)
	}
	m.launchctl("bootout", "gui/501/io.sallyport.Sallyport")
	waitFor(t, "the sidecar was the login item's", 30*time.Second, func() bool { return !alive(after.PID) })
}

// The application goes before the agents' connections, those before the sidecar that they
// would start again; nothing else of that name is touched.
func TestReinstallOnMacOSEndsWhatItReplacesAndNothingElse(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	before := m.serves()
	stranger := newHomeOf(t, filepath.Join(t.TempDir(), "sallyport"))
	copyProgram(t, release(t, oldRelease), stranger.bin)
	others := stranger.serve()

	ended := make(chan string, 2)
	starts := func(name string, args ...string) int {
		cmd := m.command(args...)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stdin.Close() })
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			cmd.Wait()
			ended <- fmt.Sprintf("%s while the sidecar runs: %v", name, alive(before.PID))
		}()
		return cmd.Process.Pid
	}
	m.remember("application", strconv.Itoa(starts("application", "serve", "--companion")))
	agent := starts("agent", "mcp", "--client", "claude")
	waitFor(t, "the agent is connected", 30*time.Second, func() bool { return strings.Contains(m.ok("clients", "list"), "claude") })

	said := m.reinstalled(0)
	for _, want := range []string{"application while the sidecar runs: true", "agent while the sidecar runs: true"} {
		if got := <-ended; got != want {
			t.Errorf("ended: %s; want %s", got, want)
		}
	}
	if !strings.Contains(said, fmt.Sprintf("an agent is connected (pid %d: sallyport mcp --client claude", agent)) {
		t.Errorf("the agent's connection is not named:\n%s", said)
	}
	after := m.runsFrom(m.target, newRelease)
	if after.Port != before.Port || alive(before.PID) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if log := m.called(); !inOrder(log, "osascript", "mv "+m.target, "open -g -a "+m.target) {
		t.Errorf("called:\n%s", log)
	}
	if !alive(others.PID) {
		t.Error("a program of the same name elsewhere was ended")
	}
}

// inOrder reports whether text has the parts, one after the other.
func inOrder(text string, parts ...string) bool {
	for _, part := range parts {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return true
}

// Each refusal alone: its exit code, a sentence, and the old one still running as it was.
func TestReinstallOnMacOSRefuses(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	before := m.serves()
	elsewhere := filepath.Join(filepath.Dir(m.source), "elsewhere")
	info := filepath.Join(m.source, "Contents", "Info.plist")
	program := filepath.Join(m.source, "Contents", "MacOS", "sallyport")
	tests := []struct {
		name    string
		prepare func(t *testing.T) // and put right again by t.Cleanup
		flags   []string
		code    int
		says    string
	}{
		{"a flag that is not known", nil, []string{"--frobnicate"}, 2, "is not known"},
		{"a flag without its value", nil, []string{"--target"}, 2, "needs a value"},
		{"no number of seconds", nil, []string{"--wait", "soon"}, 2, "number of seconds"},
		{"a target that is no application", nil, []string{"--target", filepath.Join(elsewhere, "x")}, 21, "does not exist"},
		{"a target that does not end in .app", nil, []string{"--target", filepath.Join(m.dir, "x")}, 2, ".app"},
		{"no source", nil, []string{"--source", elsewhere}, 10, "no application at"},
		{"a source in quarantine", func(t *testing.T) {
			m.remember("quarantine", m.source)
			t.Cleanup(func() { m.forget("quarantine") })
		}, nil, 11, "xattr -d -r com.apple.quarantine"},
		{"a translocated source", nil, []string{"--source", "/private/var/folders/x/AppTranslocation/D1/d/Sallyport.app"}, 12, "translocated"},
		{"a translocated target", func(t *testing.T) { makeFolder(t, filepath.Join(elsewhere, "AppTranslocation", "d")) },
			[]string{"--target", filepath.Join(elsewhere, "AppTranslocation", "d", "Sallyport.app")}, 12, "translocated"},
		{"a source without a property list", func(t *testing.T) { moveAway(t, info) }, nil, 13, "no readable Info.plist"},
		{"a source of another program", func(t *testing.T) {
			m.describe(m.source, newRelease, "com.example.Other")
			t.Cleanup(func() { m.describe(m.source, newRelease, "io.sallyport.Sallyport") })
		}, nil, 13, "bundle id"},
		{"a hollow source", func(t *testing.T) { moveAway(t, program) }, nil, 13, "is missing"},
		{"a source that was changed after it was signed", func(t *testing.T) {
			extra := filepath.Join(m.source, "Contents", "Resources", "extra")
			writeFile(t, extra, "a", 0o644)
			m.sign(m.source)
			writeFile(t, extra, "b", 0o644)
			t.Cleanup(func() { os.Remove(extra); m.sign(m.source) })
		}, nil, 14, "signature"},
		{"a source that is the target", nil, []string{"--source", m.target}, 15, "to be replaced"},
		{"a source that does not run", func(t *testing.T) {
			moveAway(t, program)
			writeFile(t, program, "\x7fELFno", 0o755)
			m.sign(m.source)
			t.Cleanup(func() { m.bundle(m.source, newRelease) })
		}, nil, 16, "does not run"},
		{"a source that calls itself something else", func(t *testing.T) {
			m.describe(m.source, "3.0.0", "io.sallyport.Sallyport")
			t.Cleanup(func() { m.describe(m.source, newRelease, "io.sallyport.Sallyport") })
		}, nil, 16, "its Info.plist says 3.0.0"},
		{"a target that is a link", func(t *testing.T) { link(t, m.target, filepath.Join(m.dir, "Link.app")) },
			[]string{"--target", filepath.Join(m.dir, "Link.app")}, 20, "is a link"},
		{"a target that is another program", func(t *testing.T) {
			m.describe(filepath.Join(m.dir, "Other.app"), "1", "com.example.Other")
		}, []string{"--target", filepath.Join(m.dir, "Other.app")}, 20, "is not Sallyport"},
		{"another run", func(t *testing.T) {
			makeFolder(t, m.work())
			other := exec.Command("sh", "-c", "sleep 60 # reinstall-macos")
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			link(t, strconv.Itoa(other.Process.Pid), m.work("lock"))
			t.Cleanup(func() { other.Process.Kill(); other.Wait() })
		}, nil, 22, "another run"},
		{"a disk that is too full before", func(t *testing.T) { m.remember("free", "1000"); t.Cleanup(func() { m.forget("free") }) }, nil, 23, "the disk is full"},
		{"a disk that becomes full while copying", func(t *testing.T) {
			m.remember("hook", `if [ "$tool$when" = dittobefore ]; then mkdir -p "$2"; echo half >"$2/half"; echo "ditto: x: No space left on device" >&2; exit 1; fi`)
			t.Cleanup(func() { m.forget("hook") })
		}, nil, 23, "the disk is full"},
		{"a disk that becomes full while packing", func(t *testing.T) {
			m.remember("hook", `if [ "$tool$when$1" = dittobefore-c ]; then echo half >"$6"; echo "ditto: x: No space left on device" >&2; exit 1; fi`)
			t.Cleanup(func() { m.forget("hook") })
		}, nil, 23, "the disk is full"},
		{"a copy that fails", func(t *testing.T) {
			m.remember("hook", `if [ "$tool$when" = dittobefore ]; then echo "ditto: x: Input/output error" >&2; exit 1; fi`)
			t.Cleanup(func() { m.forget("hook") })
		}, nil, 27, "Input/output error"},
		{"a copy that is not what the source was", func(t *testing.T) {
			m.remember("hook", `if [ "$tool$when" = dittoafter ] && [ "$1" != -c ]; then echo x >>"$2/Contents/MacOS/sallyport"; fi`)
			t.Cleanup(func() { m.forget("hook") })
		}, nil, 14, "the signature of the copy"},
		{"another copy that runs", func(t *testing.T) {
			other := newHomeOf(t, filepath.Join(m.dir, "Downloads", "Sallyport.app", "Contents", "MacOS", "sallyport"))
			m.bundle(filepath.Join(m.dir, "Downloads", "Sallyport.app"), oldRelease)
			other.serve()
		}, nil, 24, "another copy is running"},
		{"a translocated copy that runs", func(t *testing.T) {
			app := filepath.Join(elsewhere, "AppTranslocation", "d", "Sallyport.app")
			m.bundle(app, oldRelease)
			newHomeOf(t, filepath.Join(app, "Contents", "MacOS", "sallyport")).serve()
			m.remember("spotlight", app)
			t.Cleanup(func() { m.forget("spotlight") })
		}, nil, 12, "translocated copy is running"},
		{"nothing to roll back to", func(t *testing.T) {
			flags := m.flags
			m.flags = []string{"--target", m.target}
			t.Cleanup(func() { m.flags = flags })
		}, []string{"--rollback"}, 33, "nothing to roll back to"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.prepare != nil {
				tt.prepare(t)
			}
			got := m.finish(m.reinstall(tt.flags...), commandLimit)
			if got.code != tt.code || !strings.Contains(got.stderr, tt.says) {
				t.Errorf("exit %d, want %d and %q\n%s%s", got.code, tt.code, tt.says, got.stdout, got.stderr)
			}
			if strings.Count(got.stderr, "reinstall-macos.sh: ") != 1 {
				t.Errorf("not one sentence:\n%s", got.stderr)
			}
			if after := m.health(); after.Instance != before.Instance || !after.OK {
				t.Errorf("the old one is %+v, was %+v", after, before)
			}
			os.Remove(m.work("lock"))
		})
	}
	if m.installed() != oldRelease {
		t.Errorf("installed: %s", m.installed())
	}
	m.leavesNothing()
}

func makeFolder(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(path) })
}

// moveAway takes a file away until the end of the test.
func moveAway(t *testing.T, path string) {
	t.Helper()
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Rename(path+".away", path) })
}

// What answers for the data folder has to lie in what is replaced; what only has the port is
// nobody.
func TestReinstallOnMacOSIsNotFooledByWhoAnswers(t *testing.T) {
	t.Parallel()
	t.Run("Sallyport from another place", func(t *testing.T) {
		m := newMac(t)
		other := filepath.Join(m.dir, "go", "bin", "sallyport")
		copyProgram(t, release(t, oldRelease), other)
		m.detached(other, "serve")
		waitFor(t, "it answers", time.Minute, func() bool { return m.health().OK })
		pid := m.health().PID
		if said := m.reinstalled(24); !strings.Contains(said, fmt.Sprintf("pid %d", pid)) {
			t.Errorf("it is not named:\n%s", said)
		}
		if !alive(pid) || m.installed() != oldRelease {
			t.Error("it was ended, or the target replaced")
		}
	})
	t.Run("a stranger on the port", func(t *testing.T) {
		m := newMac(t)
		s := m.serves()
		syscall.Kill(s.PID, syscall.SIGKILL) // its discovery file stays
		listener := answersEverything(t, s.Port)
		defer listener.Close()
		m.reinstalled(26)
		if m.installed() != oldRelease {
			t.Error("the target was replaced")
		}
	})
	t.Run("a stranger that takes the port in between", func(t *testing.T) {
		m := newMac(t)
		s := m.serves()
		cmd := m.reinstall()
		taken := make(chan net.Listener, 1)
		go func() {
			waitFor(t, "the old one ends", time.Minute, func() bool { return !alive(s.PID) })
			taken <- answersEverything(t, s.Port)
		}()
		m.remember("hook", `if [ "$tool$when" = lsregisterbefore ]; then sleep 1; fi`)
		got := m.finish(cmd, commandLimit)
		(<-taken).Close()
		if got.code != 30 || !strings.Contains(got.stderr, "another program has taken that") || m.installed() != oldRelease {
			t.Errorf("exit %d with %s at the target\n%s%s", got.code, m.installed(), got.stdout, got.stderr)
		}
		m.runsFrom(m.target, oldRelease)
	})
}

// A new one that is broken in a way that shows only when it runs is taken out again.
func TestReinstallOnMacOSRollsBack(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, program, says string
	}{
		{"it exits", `if [ "$1" = serve ] || [ $# = 0 ]; then exit 3; fi`, "not running"},
		{"it is another version than it says", `if [ "$1" = serve ] || [ $# = 0 ]; then exec "$old" serve; fi`, "Sallyport 1.0.0 answers, not 2.0.0"},
		{"it is not healthy", `if [ "$1" = health ] && [ $# -gt 4 ]; then printf '{\n  "outcome": "unhealthy",\n  "sentence": "Sallyport 2.0.0 is not healthy: store-damaged",\n}\n'; exit 1; fi`, "store-damaged"},
		{"it hangs, and ends for nobody", `if [ "$1" = serve ] || [ $# = 0 ]; then trap '' TERM; exec "$here/sleep" 600; fi`, "not running"},
		{"it is started from elsewhere", `if [ "$1" = serve ] || [ $# = 0 ]; then cp "$new" "$HOME/moved"; exec "$HOME/moved" serve; fi`, "another folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMac(t)
			m.addFake("fake", "polite")
			before := m.serves()
			m.ok("approve", "fake", "--yes", "--tools", "echo,pid")
			m.broken(tt.program)
			if tt.name == "it is started from elsewhere" {
				// Nothing of the script's may end it, so the test does, when the old one is to start.
				m.remember("hook", `if [ "$tool$when" = mvbefore ] && [ "$1" = "`+m.work("old", "Sallyport.app")+`" ]; then
					for exe in /proc/[0-9]*/exe; do [ "$(readlink "$exe")" != "$HOME/moved" ] || kill "$(basename "$(dirname "$exe")")"; done; sleep 1; fi`)
			}
			got := m.finish(m.reinstall("--wait", "3"), commandLimit)
			if got.code != 30 || !strings.Contains(got.stderr, tt.says) {
				t.Errorf("exit %d, want 30 and %q\n%s%s", got.code, tt.says, got.stdout, got.stderr)
			}
			if m.installed() != oldRelease {
				t.Errorf("installed: %s", m.installed())
			}
			after := m.runsFrom(m.target, oldRelease)
			if after.Port != before.Port {
				t.Errorf("port %d, was %d", after.Port, before.Port)
			}
			m.ok("call", "fake", "pid")
			m.ok("audit", "verify")
			m.leavesNothing()
		})
	}
	t.Run("there was no old one", func(t *testing.T) {
		m := newMac(t)
		removeAll(t, m.target)
		m.broken(`if [ "$1" = serve ] || [ $# = 0 ]; then exit 3; fi`)
		m.reinstalled(30, "--wait", "1")
		if got := m.installed(); got != "" {
			t.Errorf("%s was left at the target", got)
		}
		m.leavesNothing()
	})
}

// Somebody spoils the old one while the new one is tried: the script says so, and how.
func TestReinstallOnMacOSCannotBringBackWhatWasSpoilt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, spoil string
		code        int
		says        string
	}{
		{"its program is broken", `printf '#!/bin/sh\nexit 3\n' >"$1/Contents/MacOS/sallyport"`, 31, "in its place and not healthy"},
		{"it is gone", `/bin/mv "$1" "$1.gone"`, 32, "could not be put back"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMac(t)
			m.serves()
			m.broken(`if [ "$1" = serve ]; then exit 3; fi`)
			m.remember("hook", fmt.Sprintf(`if [ "$tool$when$1" = %q ]; then %s; fi`, "mvbefore"+m.work("old", "Sallyport.app"), tt.spoil))
			if said := m.reinstalled(tt.code, "--wait", "1"); !strings.Contains(said, tt.says) {
				t.Errorf("it does not say %q:\n%s", tt.says, said)
			}
		})
	}
}

// interruptions are where a run may be cut off: before or after a tool does its work, where
// the words that it is called with match a pattern of the shell's.
var interruptions = []struct{ name, tool, when, words string }{
	{"while the new one is staged", "ditto", "after", `*/dist*`},
	{"while the old one is packed", "ditto", "before", `-c*`},
	{"when it begins to end the old one", "mv", "after", `*journal*`},
	{"while the application quits", "osascript", "after", `*`},
	{"before the old one is moved", "mv", "before", `*/old/*`},
	{"between the two renames", "mv", "after", `*/old/Sallyport.app`},
	{"after the new one is in its place", "mv", "after", `*/new.*Sallyport.app`},
	{"before the new one is started", "lsregister", "before", `-f*`},
	{"when the new one was started", "open", "after", `*`},
	{"when the new one has proved itself", "mv", "after", `*backup.*`},
	{"while the old one is taken away", "mv", "before", `*/failed/*`},
}

// A run that is asked to end puts everything back; one that is killed is repaired by the
// next. At no point is there no program at the target that could be started.
func TestReinstallOnMacOSInterrupted(t *testing.T) {
	t.Parallel()
	for _, signal := range []string{"TERM", "KILL"} {
		for i, at := range interruptions {
			t.Run(signal+" "+at.name, func(t *testing.T) {
				t.Parallel()
				m := newMac(t)
				before := m.serves()
				if at.tool == "osascript" {
					m.quittable()
				}
				kind := signal
				if signal == "TERM" {
					kind = []string{"TERM", "INT", "HUP"}[i%3]
				}
				m.remember("hook", fmt.Sprintf(`case $tool.$when.$* in %s.%s.%s) rm -f "$SHIMS/hook"; interrupt %s; [ $when = after ] || [ %s != KILL ] || exit 1 ;; esac`,
					at.tool, at.when, strings.ReplaceAll(at.words, " ", "\\ "), kind, kind))
				got := m.finish(m.reinstall(), commandLimit)
				if _, err := os.Stat(filepath.Join(m.shims, "hook")); err == nil {
					t.Fatalf("it never came there:\n%s%s\n%s", got.stdout, got.stderr, m.called())
				}
				if signal == "TERM" {
					m.afterASignal(at.name, got, before)
				}
				said := m.reinstalled(0)
				if after := m.runsFrom(m.target, newRelease); after.Port != before.Port {
					t.Errorf("port %d, was %d\n%s", after.Port, before.Port, said)
				}
				m.ok("audit", "verify")
				m.leavesNothing()
			})
		}
	}
}

// quittable starts an application that can be asked to quit.
func (m *mac) quittable() {
	m.t.Helper()
	cmd := m.command("serve", "--companion")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { stdin.Close() })
	go cmd.Wait()
	m.remember("application", strconv.Itoa(cmd.Process.Pid))
}

// afterASignal checks that the run has left things as they were, or as they should be.
func (m *mac) afterASignal(at string, got outcome, before answer) {
	m.t.Helper()
	want := map[bool]string{true: newRelease, false: oldRelease}[at == "when the new one has proved itself" || at == "while the old one is taken away"]
	if got.code != 143 && got.code != 130 && got.code != 129 || !strings.Contains(got.stderr, "interrupted by SIG") {
		m.t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if after := m.runsFrom(m.target, want); after.Port != before.Port {
		m.t.Errorf("port %d, was %d", after.Port, before.Port)
	}
	m.leavesNothing()
}

// A rollback after a killed run is the repair itself, and not one more step back.
func TestReinstallOnMacOSRollsBackAKilledRun(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	m.serves()
	m.remember("hook", `if [ "$tool$when" = openafter ]; then rm "$SHIMS/hook"; interrupt KILL; fi`)
	m.finish(m.reinstall(), commandLimit)
	if m.installed() != newRelease {
		t.Fatalf("installed: %s", m.installed())
	}
	m.flags = []string{"--target", m.target}
	m.reinstalled(0, "--rollback")
	m.runsFrom(m.target, oldRelease)
	m.leavesNothing()
}

// What is asked to be looked at only is left exactly as it is.
func TestReinstallOnMacOSDryRun(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	before := m.serves()
	tree := checksums(t, filepath.Dir(m.target), "")
	said := m.reinstalled(0, "--dry-run")
	for _, part := range []string{"would install 2.0.0", "in the place of 1.0.0", fmt.Sprintf("would end pid %d (sidecar)", before.PID), "would keep 1.0.0", "nothing was changed"} {
		if !strings.Contains(said, part) {
			t.Errorf("it does not say %q:\n%s", part, said)
		}
	}
	if checksums(t, filepath.Dir(m.target), "") != tree || m.health().Instance != before.Instance {
		t.Error("something was changed")
	}
	if left, _ := filepath.Glob(m.work()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Copies and images that would come up in the place of the installed one.
func TestReinstallOnMacOSTidiesUp(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	legacy := filepath.Join(m.dir, "Applications", "Sallyport.app")
	downloads := filepath.Join(m.dir, "Downloads", "Sallyport.app")
	volume := filepath.Join(m.dir, "Volumes", "Sallyport 1.0")
	for _, app := range []string{legacy, downloads, filepath.Join(volume, "Sallyport.app")} {
		m.bundle(app, oldRelease)
	}
	makeFolder(t, filepath.Join(m.dir, "Volumes", "Backup"))
	m.remember("images", volume, filepath.Join(m.dir, "Volumes", "Backup"))
	m.remember("spotlight", downloads, m.target)
	m.bin = filepath.Join(legacy, "Contents", "MacOS", "sallyport")
	before := m.serves() // the old one runs from where versions for one user used to lie
	m.bin = filepath.Join(m.target, "Contents", "MacOS", "sallyport")

	said := m.reinstalled(0, "--no-backup")
	if after := m.runsFrom(m.target, newRelease); after.Port != before.Port || alive(before.PID) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if _, err := os.Stat(legacy); err == nil {
		t.Error("the copy in ~/Applications is still there")
	}
	for _, path := range []string{downloads, filepath.Join(volume, "Sallyport.app")} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s was removed", path)
		}
	}
	log := m.called()
	for _, call := range []string{"hdiutil detach " + volume, "lsregister -u " + downloads, "lsregister -u " + legacy, "lsregister -u " + m.source} {
		if !strings.Contains(log, call+"\n") {
			t.Errorf("not called: %s", call)
		}
	}
	if strings.Contains(log, "hdiutil detach "+filepath.Join(m.dir, "Volumes", "Backup")) || !strings.Contains(said, "another copy: "+downloads) {
		t.Errorf("a foreign image was ejected, or a copy not named:\n%s", said)
	}
	if left, _ := filepath.Glob(m.work()); len(left) > 0 {
		t.Errorf("left without a backup: %v", left)
	}
}

// No window server (a login by SSH), no Apple events: the signals and the program itself do.
func TestReinstallOnMacOSWithoutAWindowServer(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	m.serves()
	m.remember("no-window-server")
	m.remember("no-apple-events")
	m.reinstalled(0)
	m.runsFrom(m.target, newRelease)
}

// A folder that cannot be written, by a user who is not root.
func TestReinstallOnMacOSUnwritableTarget(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	folder := filepath.Dir(m.target)
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(folder, 0o755)
	cmd := m.reinstall()
	if os.Getuid() == 0 {
		// Nobody gets to read the script, its tools and what is installed, and to write nothing.
		open := t.TempDir()
		copyTree := exec.Command("cp", "-r", filepath.Dir(m.script), "testdata/reinstall", open)
		if out, err := copyTree.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for path := open; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
			os.Chmod(path, 0o755)
		}
		os.Chmod(filepath.Dir(folder), 0o755)
		os.Chmod(m.dir, 0o755)
		os.Chmod(m.shims, 0o777)
		cmd.Path = filepath.Join(open, "scripts", filepath.Base(m.script))
		cmd.Env = append(cmd.Env, "PATH="+filepath.Join(open, "reinstall", "macos")+":/usr/bin:/bin", "TMPDIR="+os.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	got := m.finish(cmd, commandLimit)
	if got.code != 21 || !strings.Contains(got.stderr, "cannot be written") {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if m.installed() != oldRelease {
		t.Error("it was replaced")
	}
}
