//go:build !windows

package env

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeShell is a shell that first does what rc says, as start-up files do.
func fakeShell(t *testing.T, name, rc string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	text := "#!/bin/sh\nfor last; do :; done\nPATH=/said/bin:/usr/bin\n" + rc + "\neval \"$last\"\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoginShellIsAskedWhateverItsStartUpFilesDo(t *testing.T) {
	for _, row := range []struct {
		what, name, rc string
		said           bool
	}{
		{"quiet", "sh", "", true},
		{"noisy", "bash", "echo hello; echo '\033[31mred'; echo err >&2", true},
		{"no newline at the end", "bash", "printf 'no newline'", true},
		{"prints the command it was given, with the fence in it", "bash", `echo "$last"; printf '%s' "$last"`, true},
		{"prints PATH lines", "zsh", "echo PATH=/evil; echo /evil/bin", true},
		{"prints a megabyte", "bash", "head -c 1048576 /dev/zero | tr '\\0' x", true},
		{"takes its flags apart like tcsh", "tcsh", `[ "$1" = -ic ] || exit 1`, true},
		{"is interactive and a login like fish", "fish", `[ "$1$2$3" = -i-l-c ] || exit 1`, true},
		{"leaves a process that keeps stdout", "zsh", "sleep 60 &", true},
		{"hangs", "bash", "sleep 60", false},
		{"reads its input", "bash", "read x; cat", true},
		{"exits 1", "bash", "exit 1", false},
		{"never stops printing", "bash", "yes | cat", false},
	} {
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			limit := 20 * time.Second
			if !row.said && !strings.HasPrefix(row.rc, "exit") {
				limit = 300 * time.Millisecond
			}
			home := t.TempDir()
			got, err := UserPath(context.Background(), PathConfig{
				Parent: Parent{System: "linux", Vars: map[string]string{"PATH": "/inherited/bin:/usr/bin"}},
				Shell:  fakeShell(t, row.name, row.rc), Home: home, Limit: limit,
			})
			want := "/inherited/bin:/usr/bin:"
			if row.said {
				want = "/said/bin:/usr/bin:/inherited/bin:"
			}
			if err != nil || !strings.HasPrefix(got+":", want) {
				t.Errorf("got %q %v, want it to begin with %q", got, err, want)
			}
		})
	}
}

func TestRealShellsAnswer(t *testing.T) {
	for _, name := range []string{"sh", "bash", "dash", "zsh", "fish", "tcsh"} {
		shell, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		f, _ := newFence()
		said, err := askShell(context.Background(), PathConfig{Shell: shell, Home: t.TempDir(), Limit: 20 * time.Second,
			Parent: Parent{System: "linux", Vars: map[string]string{"PATH": "/marker/bin:/usr/bin:/bin"}}})
		if err != nil || !strings.Contains(said, "/bin") || strings.Contains(said, f.half) {
			t.Errorf("%s said %q %v", name, said, err)
		}
	}
}

func TestLoginShellSeesNoSecretAndLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	shell := fakeShell(t, "bash", "env > "+folder+"/env; echo $$ > "+folder+"/pid; sleep 60")
	_, err := UserPath(context.Background(), PathConfig{Parent: parentWith("linux", map[string]string{"PATH": "/usr/bin"}), Shell: shell, Home: folder, Limit: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	environ, err := os.ReadFile(folder + "/env")
	if err != nil || strings.Contains(string(environ), "SENTINEL") {
		t.Errorf("the shell saw %q %v", environ, err)
	}
	pid, _ := os.ReadFile(folder + "/pid")
	if group := number(t, string(pid)); groupAlive(group) {
		t.Errorf("process group %d is alive", group)
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// groupAlive waits for the init process to collect what was killed.
func groupAlive(group int) bool {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if syscall.Kill(-group, 0) == syscall.ESRCH || onlyZombies(group) {
			return false
		}
	}
	return true
}

// onlyZombies is for machines whose init process collects nothing.
func onlyZombies(group int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, _ := os.ReadFile(stat)
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" {
			return false
		}
	}
	return len(stats) > 0
}

func TestCancelledAskingIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := UserPath(ctx, PathConfig{Parent: Parent{System: "linux"}, Shell: fakeShell(t, "bash", "sleep 60"), Home: t.TempDir()}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestFoldersThatAnybodyCanWriteAreDropped(t *testing.T) {
	root := tree(t, map[string]string{"good/x": "", "open/x": "", "swap/good/x": "", "home/.nvm/versions/node/v9.1.0/bin/node": "", "home/.nvm/versions/node/v22.0.0/bin/node": "", "home/.local/bin/x": ""})
	for _, name := range []string{"open", "swap"} {
		if err := os.Chmod(filepath.Join(root, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	inherited := strings.Join([]string{root + "/good", "", ".", "rel", root + "/open", root + "/open/missing", root + "/swap/good", root + "/good/", root + "/missing"}, ":")
	got, err := UserPath(context.Background(), PathConfig{
		Parent: Parent{System: "linux", Vars: map[string]string{"PATH": inherited}}, Shell: fakeShell(t, "sh", "exit 1"), Home: root + "/home",
	})
	want := strings.Join([]string{root + "/good", root + "/missing", root + "/home/.nvm/versions/node/v22.0.0/bin", root + "/home/.local/bin"}, ":")
	if err != nil || !strings.HasPrefix(got, want+":") {
		t.Errorf("got  %q %v\nwant %q…", got, err, want)
	}
}

func TestWindowsPathIsTheInheritedOne(t *testing.T) {
	got, err := UserPath(context.Background(), PathConfig{Parent: Parent{System: "windows", Vars: map[string]string{"Path": `C:\A;;rel;c:\a;"D:\B C"`}}})
	if want := `C:\A;D:\B C`; got != want || err != nil {
		t.Errorf("got %q %v, want %q", got, err, want)
	}
}

func TestShellComesFromThePasswordFile(t *testing.T) {
	passwd := []byte("root:x:0:0:root:/root:/bin/bash\nbroken\nu:x:1000:1000::/home/u:/usr/bin/zsh\n")
	if got := shellOf(passwd, 1000); got != "/usr/bin/zsh" {
		t.Errorf("got %q", got)
	}
	if got := shellOf(passwd, 7); got != "" {
		t.Errorf("got %q", got)
	}
}
