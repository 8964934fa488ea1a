//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// linux is a user who has a Sallyport of their own below ~/.local, or one from a package in a
// private root.
type linux struct {
	*reinstallation
	shims, work string
}

// newLinux installs the old release below ~/.local, and has the new one ready as a program.
func newLinux(t *testing.T) *linux {
	t.Helper()
	l := newLinuxOf(t, ".local/bin/sallyport", ".local/bin/.sallyport.reinstall")
	copyProgram(t, release(t, oldRelease), l.bin)
	copyProgram(t, release(t, newRelease), l.source())
	l.flags = []string{"--source", l.source()}
	return l
}

func newLinuxOf(t *testing.T, program, work string) *linux {
	t.Helper()
	h := newHome(t)
	h.bin = filepath.Join(h.dir, program)
	l := &linux{reinstallation: &reinstallation{home: h, script: script(t, "reinstall-linux.sh")}, shims: filepath.Join(h.dir, "shims"), work: filepath.Join(h.dir, work)}
	t.Cleanup(l.endsAll)
	tools, err := filepath.Abs("testdata/reinstall/linux")
	if err != nil {
		t.Fatal(err)
	}
	makeFolder(t, l.shims)
	l.with("PATH="+tools+":"+os.Getenv("PATH"), "SHIMS="+l.shims, "LOCK="+filepath.Join(l.work, "lock"), "SALLYPORT_REINSTALL_PATIENCE=3", "TMPDIR="+l.dir)
	return l
}

func (l *linux) source() string { return filepath.Join(l.dir, "down loads", "sallyport") }

func (l *linux) remember(name, text string) {
	l.t.Helper()
	writeFile(l.t, filepath.Join(l.shims, name), text+"\n", 0o644)
}

// installed is the version that lies at the target; "" where nothing does.
func (l *linux) installed() string {
	l.t.Helper()
	if _, err := os.Lstat(l.bin); err != nil {
		return ""
	}
	var said struct{ Version string }
	l.read(&said, "version")
	return said.Version
}

func (l *linux) leavesNothing() {
	l.t.Helper()
	found, _ := filepath.Glob(filepath.Join(l.work, "*"))
	for _, path := range found {
		switch filepath.Base(path) {
		case "previous", "previous.version", "previous.name", "installed.name", "packages":
		default:
			l.t.Errorf("left: %s", path)
		}
	}
}

func TestReinstallOnLinux(t *testing.T) {
	t.Parallel()
	l := newLinux(t)
	before := l.serves()
	l.approvesNotes()
	kept := l.remembers()

	l.reinstalled(0, "--wait", "0090") // which a shell takes for no number of its own
	after := l.runsFrom(filepath.Dir(l.bin), newRelease)
	if after.Port != before.Port || after.Instance == before.Instance || alive(before.PID) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	l.stillHasNotes()
	if got := l.remembers(); got != kept {
		t.Errorf("it remembers\n%+v\nand had\n%+v", got, kept)
	}
	l.leavesNothing()

	l.flags = nil
	l.reinstalled(0, "--rollback")
	if back := l.runsFrom(filepath.Dir(l.bin), oldRelease); back.Port != before.Port {
		t.Errorf("port %d after the rollback, %d before", back.Port, before.Port)
	}
	l.stillHasNotes()
	l.leavesNothing()
}

// An archive names the owner of what is in it, and root would give the program to that user,
// who could then put anything into its place.
func TestReinstallOnLinuxFromAnArchive(t *testing.T) {
	l := newLinux(t)
	archive := filepath.Join(l.dir, "x.tar.gz")
	pack := exec.Command("tar", "--owner=65534", "--group=65534", "-czf", archive, "-C", filepath.Dir(l.source()), "sallyport")
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l.flags = []string{"--source", archive}
	l.reinstalled(0)
	l.runsFrom(filepath.Dir(l.bin), newRelease)
	info, err := os.Stat(l.bin)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Getuid() || info.Mode() != 0o755 {
		t.Errorf("it belongs to user %d, with mode %s", owner, info.Mode())
	}
	l.leavesNothing()
}

// The unit is stopped by systemd, which would start the sidecar again, and started by it.
func TestReinstallOnLinuxWithAUserUnit(t *testing.T) {
	t.Parallel()
	l := newLinux(t)
	l.remember("unit", l.bin)
	unit := exec.Command("testdata/reinstall/linux/systemctl", "--user", "start")
	unit.Env = l.env
	if out, err := unit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	waitFor(t, "the unit answers", time.Minute, func() bool { return l.health().OK })
	before := l.health()
	l.reinstalled(0)
	after := l.runsFrom(filepath.Dir(l.bin), newRelease)
	raw, _ := os.ReadFile(filepath.Join(l.shims, "log"))
	if !inOrder(string(raw), "systemctl --user stop", "mv -f "+l.bin, "systemctl --user daemon-reload", "systemctl --user start") || after.Port != before.Port {
		t.Errorf("before %+v, after %+v, called\n%s", before, after, raw)
	}
}

func TestReinstallOnLinuxRefuses(t *testing.T) {
	t.Parallel()
	l := newLinux(t)
	before := l.serves()
	tests := []struct {
		name    string
		prepare func(t *testing.T)
		flags   []string
		code    int
		says    string
	}{
		{"a flag that is not known", nil, []string{"--frobnicate"}, 2, "is not known"},
		{"no source", nil, []string{"--source", "/nowhere"}, 10, "no file"},
		{"an archive without a program", func(t *testing.T) {
			archive := exec.Command("tar", "-czf", filepath.Join(l.dir, "x.tar.gz"), "-C", l.shims, ".")
			if out, err := archive.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}, []string{"--source", filepath.Join(l.dir, "x.tar.gz")}, 13, "no program"},
		{"a source that does not run", func(t *testing.T) { writeFile(t, filepath.Join(l.dir, "no"), "\x7fELFno", 0o755) },
			[]string{"--source", filepath.Join(l.dir, "no")}, 16, "does not run"},
		{"a target that is a link", func(t *testing.T) {
			makeFolder(t, filepath.Join(l.dir, "p", "bin"))
			link(t, l.bin, filepath.Join(l.dir, "p", "bin", "sallyport"))
		}, []string{"--prefix", filepath.Join(l.dir, "p")}, 20, "is a link"},
		{"another run", func(t *testing.T) {
			makeFolder(t, l.work)
			other := exec.Command("sh", "-c", "sleep 60 # reinstall-linux")
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			link(t, strconv.Itoa(other.Process.Pid), filepath.Join(l.work, "lock"))
			t.Cleanup(func() { other.Process.Kill(); other.Wait() })
		}, nil, 22, "another run"},
		{"a full disk", func(t *testing.T) {
			l.remember("free", "1000")
			t.Cleanup(func() { os.Remove(filepath.Join(l.shims, "free")) })
		}, nil, 23, "the disk is full"},
		{"another place than the one that runs", nil, []string{"--prefix", filepath.Join(l.dir, "q")}, 24, fmt.Sprintf("kill %d", before.PID)},
		{"nothing to roll back to", func(t *testing.T) {
			flags := l.flags
			l.flags = nil
			t.Cleanup(func() { l.flags = flags })
		}, []string{"--rollback"}, 33, "nothing to roll back to"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.prepare != nil {
				tt.prepare(t)
			}
			got := l.finish(l.reinstall(tt.flags...), commandLimit)
			if got.code != tt.code || !strings.Contains(got.stderr, tt.says) || strings.Count(got.stderr, "reinstall-linux.sh: ") != 1 {
				t.Errorf("exit %d, want %d and %q\n%s%s", got.code, tt.code, tt.says, got.stdout, got.stderr)
			}
			if after := l.health(); after.Instance != before.Instance || !after.OK {
				t.Errorf("the old one is %+v, was %+v", after, before)
			}
		})
	}
	said := l.reinstalled(0, "--dry-run")
	if !strings.Contains(said, "would install 2.0.0") || !strings.Contains(said, "nothing was changed") || l.installed() != oldRelease {
		t.Errorf("a dry run says\n%s", said)
	}
	l.leavesNothing()
}

// Where nothing is installed, a dry run makes no folder either.
func TestReinstallOnLinuxDryRun(t *testing.T) {
	t.Parallel()
	l := newLinux(t)
	root := filepath.Join(l.dir, "root")
	makeFolder(t, root)
	l.flags = []string{"--dry-run"}
	for made, flags := range map[string][]string{
		"q":            {"--source", l.source(), "--prefix", filepath.Join(l.dir, "q")},
		".local/state": {"--source", l.deb(newRelease, ""), "--root", root},
	} {
		if said := l.reinstalled(0, flags...); !strings.Contains(said, "would install 2.0.0") {
			t.Errorf("%v says\n%s", flags, said)
		}
		if _, err := os.Lstat(filepath.Join(l.dir, made)); err == nil {
			t.Errorf("%v makes %s", flags, made)
		}
	}
}

func TestReinstallOnLinuxRollsBack(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{
		"it exits":                           `if [ "$1" = serve ]; then exit 3; fi`,
		"it is another version than it says": `if [ "$1" = serve ]; then exec "$HOME/.local/bin/.sallyport.reinstall/old" serve; fi`,
		"it hangs":                           `if [ "$1" = serve ]; then sleep 3; exit 1; fi`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLinux(t)
			before := l.serves()
			text := fmt.Sprintf("#!/bin/sh\n%s\nexec %q \"$@\"\n", program, release(t, newRelease))
			writeFile(t, l.source(), text, 0o755)
			l.reinstalled(30, "--wait", "2")
			if after := l.runsFrom(filepath.Dir(l.bin), oldRelease); after.Port != before.Port {
				t.Errorf("port %d, was %d", after.Port, before.Port)
			}
			l.ok("audit", "verify")
			l.leavesNothing()
		})
	}
}

func TestReinstallOnLinuxInterrupted(t *testing.T) {
	t.Parallel()
	for _, signal := range []string{"TERM", "KILL"} {
		for _, at := range []struct{ name, when, words, version string }{
			{"when it begins to end the old one", "after", `*journal*`, oldRelease},
			{"before the old one is moved", "before", `*reinstall/old`, oldRelease},
			{"between the two renames", "after", `*reinstall/old`, oldRelease},
			{"after the new one is in its place", "after", `*new.*`, oldRelease},
			{"when the new one has proved itself", "before", `*/previous`, newRelease},
		} {
			t.Run(signal+" "+at.name, func(t *testing.T) {
				t.Parallel()
				l := newLinux(t)
				before := l.serves()
				l.remember("hook", fmt.Sprintf(`case $tool.$when.$* in mv.%s.%s) rm -f "$SHIMS/hook"; interrupt %s; [ $when = after ] || [ %s != KILL ] || exit 1 ;; esac`,
					at.when, at.words, signal, signal))
				got := l.finish(l.reinstall(), commandLimit)
				if _, err := os.Stat(filepath.Join(l.shims, "hook")); err == nil {
					t.Fatalf("it never came there:\n%s%s", got.stdout, got.stderr)
				}
				if signal == "TERM" {
					if got.code != 143 || !strings.Contains(got.stderr, "interrupted by SIGTERM") {
						t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
					}
					l.runsFrom(filepath.Dir(l.bin), at.version)
					l.leavesNothing()
				}
				l.reinstalled(0)
				if after := l.runsFrom(filepath.Dir(l.bin), newRelease); after.Port != before.Port {
					t.Errorf("port %d, was %d", after.Port, before.Port)
				}
				l.leavesNothing()
			})
		}
	}
}

// A real dpkg installs into a root of its own; what is put back is the package that the script
// has kept.
func TestReinstallOnLinuxFromAPackage(t *testing.T) {
	t.Parallel()
	l := newLinuxOf(t, "root/usr/bin/sallyport", ".local/state/sallyport-reinstall")
	root := filepath.Join(l.dir, "root")
	for _, folder := range []string{"info", "updates", "triggers"} {
		makeFolder(t, filepath.Join(root, "var/lib/dpkg", folder))
	}
	writeFile(t, filepath.Join(root, "var/lib/dpkg/status"), "", 0o644)
	l.flags = []string{"--root", root}

	l.reinstalled(0, "--source", l.deb(oldRelease, ""))
	before := l.runsFrom(filepath.Dir(l.bin), oldRelease)
	l.approvesNotes()
	l.reinstalled(0, "--source", l.deb(newRelease, ""))
	after := l.runsFrom(filepath.Dir(l.bin), newRelease)
	if after.Port != before.Port || alive(before.PID) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	l.stillHasNotes()

	l.reinstalled(30, "--wait", "2", "--source", l.deb("3.0.0", `case $1 in serve) exit 3 ;; version) printf '{\n  "version": "3.0.0"\n}\n'; exit ;; esac`))
	l.runsFrom(filepath.Dir(l.bin), newRelease)
	l.stillHasNotes()
	if got := l.finish(l.reinstall("--source", l.deb("4.0.0", "exit 1")), commandLimit); got.code != 16 {
		t.Errorf("a program that does not run: exit %d\n%s", got.code, got.stderr)
	}
	l.reinstalled(0, "--rollback")
	l.runsFrom(filepath.Dir(l.bin), oldRelease)
	l.stillHasNotes()
	l.leavesNothing()

	removeAll(t, l.work) // as if somebody else had installed it
	if said := l.reinstalled(33, "--source", l.deb(newRelease, "")); !strings.Contains(said, "--previous") {
		t.Errorf("it says\n%s", said)
	}
	l.reinstalled(0, "--source", l.deb(newRelease, ""), "--previous", l.deb(oldRelease, ""))
	l.runsFrom(filepath.Dir(l.bin), newRelease)
}

// deb makes a package of a release, or of a shell's program in its place.
func (l *linux) deb(version, program string) string {
	l.t.Helper()
	tree := filepath.Join(l.dir, "deb-"+version)
	file := tree + ".deb"
	if program == "" {
		copyProgram(l.t, release(l.t, version), filepath.Join(tree, "usr/bin/sallyport"))
	} else {
		text := fmt.Sprintf("#!/bin/sh\n%s\nexec %q \"$@\"\n", program, release(l.t, newRelease))
		writeFile(l.t, filepath.Join(tree, "usr/bin/sallyport"), text, 0o755)
	}
	writeFile(l.t, filepath.Join(tree, "DEBIAN/control"),
		fmt.Sprintf("Package: sallyport\nVersion: %s\nArchitecture: all\nMaintainer: Nobody <nobody@sallyport.invalid>\nDescription: for a test\n", version), 0o644)
	build := exec.Command("dpkg-deb", "-Znone", "--build", tree, file)
	if out, err := build.CombinedOutput(); err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	return file
}

// A stranger's program of the same name, and whoever answers on the port.
func TestReinstallOnLinuxTouchesNoStranger(t *testing.T) {
	t.Parallel()
	l := newLinux(t)
	s := l.serves()
	other := newHomeOf(t, filepath.Join(t.TempDir(), "sallyport"))
	copyProgram(t, release(t, oldRelease), other.bin)
	stranger := other.serve()
	l.reinstalled(0)
	if !alive(stranger.PID) || alive(s.PID) {
		t.Error("the wrong one was ended")
	}
	syscall.Kill(l.health().PID, syscall.SIGKILL)
	listener := answersEverything(t, s.Port)
	defer listener.Close()
	l.reinstalled(26)
}
