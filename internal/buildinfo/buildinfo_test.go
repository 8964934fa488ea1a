package buildinfo

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

const commit = "6f0c2ab5a3f0de2a1d4b0d3c0a9be4f6f2c7a1b2"

func TestStampIsFoundInAProgram(t *testing.T) {
	whole := "sallyport-build,1.2.0," + commit + ",2026-11-30T20:00:00Z,"
	want := Info{Version: "1.2.0", Commit: commit, Date: "2026-11-30T20:00:00Z"}
	for _, row := range []struct {
		name, program string
		want          Info
		ok            bool
	}{
		{"alone", whole, want, true},
		{"between other bytes", "\x00abc" + whole + "def", want, true},
		{"after the same word in a comment", "sallyport-build,VERSION,COMMIT,DATE," + whole, want, true},
		{"twice the same, as in a universal program", whole + "\x00" + whole, want, true},
		{"two versions", whole + strings.Replace(whole, "1.2.0", "1.2.1", 1), Info{}, false},
		{"cut off", whole[:len(whole)-1], Info{}, false},
		{"no date", strings.Replace(whole, "11-30", "13-30", 1), Info{}, false},
		{"of a tree without a repository", strings.Replace(whole, commit, "none", 1), Info{Version: "1.2.0", Date: "2026-11-30T20:00:00Z"}, true},
		{"none", "a program", Info{}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, ok := Find([]byte(row.program))
			if got != row.want || ok != row.ok {
				t.Errorf("found %+v, %v; want %+v, %v", got, ok, row.want, row.ok)
			}
		})
	}
}

func TestCommitIsShortenedAndStaysDirty(t *testing.T) {
	for full, want := range map[string]string{commit: "6f0c2ab5a3f0", commit + "-dirty": "6f0c2ab5a3f0-dirty", "6f0c": "6f0c", "": ""} {
		if got := (Info{Commit: full}).Short(); got != want {
			t.Errorf("%q is shortened to %q, want %q", full, got, want)
		}
	}
}

func TestUnstampedProgramSaysWhatGoKnowsOfItsCommit(t *testing.T) {
	got := unstamped([]debug.BuildSetting{{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: "2026-11-30T20:00:00Z"}, {Key: "vcs.modified", Value: "true"}})
	if want := (Info{Version: "dev", Commit: commit + "-dirty", Date: "2026-11-30T20:00:00Z"}); got != want {
		t.Errorf("says %+v, want %+v", got, want)
	}
	if got := unstamped(nil); got != (Info{Version: "dev"}) {
		t.Errorf("says %+v where nothing is known", got)
	}
}

// script runs scripts/version as a build does.
func script(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "scripts", "version"), args...)
	cmd.Env = append(cmd.Environ(), env...)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func TestScriptAndProgramAgreeOnTheStamp(t *testing.T) {
	env := []string{"SALLYPORT_VERSION=9.8.7-rc.1", "SOURCE_DATE_EPOCH=1764500000"}
	flags, err := script(t, env, "ldflags")
	if err != nil {
		t.Fatal(err)
	}
	_, value, ok := strings.Cut(flags, "-X sallyport/internal/buildinfo.stamp=")
	if !ok {
		t.Fatalf("the linker is told %q", flags)
	}
	got, ok := parse([]byte(value))
	if !ok || got.Version != "9.8.7-rc.1" || got.Date != "2025-11-30T10:53:20Z" {
		t.Errorf("%q is read as %+v", value, got)
	}
	if said, err := script(t, env, "date"); err != nil || said != got.Date {
		t.Errorf("the script says the date is %q: %v", said, err)
	}
}

func TestWhatIsNoVersionIsRefused(t *testing.T) {
	for _, version := range []string{"1.2", "v1.2.3", "1.2.3 -X main.x=y", "1.2.3,", "latest"} {
		if said, err := script(t, []string{"SALLYPORT_VERSION=" + version}); err == nil {
			t.Errorf("%q is taken as %q", version, said)
		}
	}
}
