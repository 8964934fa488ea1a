package health

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/loopback"
)

// folder is a state folder whose discovery file names port and whose key is key.
func folder(t *testing.T, port int, key []byte) string {
	t.Helper()
	dir := t.TempDir()
	if key != nil {
		made, err := LoadKey(dir)
		if err != nil {
			t.Fatal(err)
		}
		copy(key, made)
	}
	if port != 0 {
		announce(t, dir, port)
	}
	return dir
}

func announce(t *testing.T, dir string, port int) {
	t.Helper()
	if err := loopback.WriteDiscovery(dir, loopback.Discovery{Service: Service, Version: "1.2.3", Instance: "abcdef", Port: port}); err != nil {
		t.Fatal(err)
	}
}

func TestHealthCommandOutcomes(t *testing.T) {
	key := make([]byte, keyBytes)
	dir := folder(t, 0, key)
	failing := ready()
	failing.Set(StoreDamaged, "", nil)
	healthy, unhealthy := instance(t, key, ready()), instance(t, key, failing)
	stranger := serve(t, http.NotFoundHandler())
	tests := []struct {
		name   string
		port   int
		expect string
		want   Outcome
		says   string
	}{
		{"the instance is healthy", healthy, "", Healthy, "Sallyport 1.2.3 is healthy"},
		{"it is the expected version", healthy, "1.2.3", Healthy, "is healthy"},
		{"another version answers", healthy, "1.3.0", OtherVersion, "Sallyport 1.2.3 answers, not 1.3.0"},
		{"the instance is unhealthy", unhealthy, "", Unhealthy, "store-damaged"},
		{"another version answers, and is unhealthy", unhealthy, "1.3.0", OtherVersion, "not 1.3.0"},
		{"the file is stale and nothing listens", closedPort(t), "", Absent, "not running"},
		{"the file is stale and another program has the port", stranger, "", OtherProgram, "another program"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			announce(t, dir, tt.port)
			got := Ask(t.Context(), Question{StateDir: dir, ExpectVersion: tt.expect})
			if got.OK != (tt.want == Healthy) || got.Outcome != tt.want || got.Port != tt.port || !strings.Contains(got.Sentence, tt.says) {
				t.Errorf("%v on %d: %q, want %v: %q", got.Outcome, got.Port, got.Sentence, tt.want, tt.says)
			}
		})
	}
}

// After a reinstallation the right version is not enough: it has to be a new start,
// of the program that was just put there.
func TestHealthCommandTellsInstancesApart(t *testing.T) {
	key := make([]byte, keyBytes)
	dir := folder(t, 0, key)
	port := instance(t, key, ready())
	bundle := filepath.Join(t.TempDir(), "Sally port.app")
	program := filepath.Join(bundle, "Contents", "MacOS", "sallyport")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(bundle, link); err != nil {
		t.Fatal(err)
	}
	place := loopback.Discovery{Service: Service, Version: "1.2.3", Instance: "abcdef", Port: port, PID: 42, Executable: program}
	other := place
	other.Instance = "fedcba"
	gone := place
	gone.Executable = filepath.Join(bundle, "gone")
	tests := []struct {
		name   string
		file   loopback.Discovery
		ask    Question
		want   Outcome
		pid    int
		saying string
	}{
		{"nothing is expected", place, Question{}, Healthy, 42, "is healthy"},
		{"a new start", place, Question{ExpectInstanceNot: "012345"}, Healthy, 42, "is healthy"},
		{"the start from before", place, Question{ExpectInstanceNot: "abcdef"}, OtherInstance, 42, "has not been started again"},
		{"it lies in the folder", place, Question{ExpectWithin: bundle}, Healthy, 42, "is healthy"},
		{"it lies in the folder that a link names", place, Question{ExpectWithin: link}, Healthy, 42, "is healthy"},
		{"it lies elsewhere", place, Question{ExpectWithin: filepath.Dir(link)}, OtherInstance, 42, "another folder"},
		{"the folder's name begins alike", place, Question{ExpectWithin: filepath.Join(filepath.Dir(bundle), "Sally")}, OtherInstance, 42, "another folder"},
		{"its file is gone", gone, Question{ExpectWithin: bundle}, OtherInstance, 42, "another folder"},
		{"the file is about another start", other, Question{ExpectWithin: bundle}, OtherInstance, 0, "another folder"},
		{"another version goes first", place, Question{ExpectVersion: "9", ExpectInstanceNot: "abcdef"}, OtherVersion, 42, "not 9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := loopback.WriteDiscovery(dir, tt.file); err != nil {
				t.Fatal(err)
			}
			tt.ask.StateDir = dir
			got := Ask(t.Context(), tt.ask)
			if got.Outcome != tt.want || got.PID != tt.pid || !strings.Contains(got.Sentence, tt.saying) || strings.Contains(got.Sentence, "/") {
				t.Errorf("%v, pid %d: %q; want %v, %d: %q", got.Outcome, got.PID, got.Sentence, tt.want, tt.pid, tt.saying)
			}
		})
	}
}

func TestHealthCommandExitCodesAreTheContracts(t *testing.T) {
	want := map[Outcome]int{Healthy: 0, Unhealthy: 1, Absent: 3, OtherProgram: 4, OtherVersion: 5, OtherInstance: 6}
	for outcome, code := range want {
		if outcome.ExitCode() != code {
			t.Errorf("%v exits %d, want %d", outcome, outcome.ExitCode(), code)
		}
	}
}

func TestHealthCommandWithoutWhatItNeeds(t *testing.T) {
	if got := Ask(t.Context(), Question{StateDir: t.TempDir()}); got.Outcome != Absent {
		t.Errorf("no discovery file: %v, want not running", got.Outcome)
	}
	if got := Ask(t.Context(), Question{StateDir: folder(t, serve(t, http.NotFoundHandler()), nil)}); got.Outcome != OtherProgram {
		t.Errorf("no key, something listens: %v, want another program", got.Outcome)
	}
	if got := Ask(t.Context(), Question{StateDir: folder(t, instance(t, nil, ready()), nil)}); got.Outcome != OtherProgram {
		t.Errorf("no key on either side: %v, want another program", got.Outcome)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, loopback.DiscoveryFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Ask(t.Context(), Question{StateDir: dir}); got.Outcome != Absent || strings.Contains(got.Sentence, dir) {
		t.Errorf("torn discovery file: %v, %q", got.Outcome, got.Sentence)
	}
}

func TestHealthCommandWaitsForAStartOnAnotherPort(t *testing.T) {
	key := make([]byte, keyBytes)
	dir := folder(t, closedPort(t), key)
	port := instance(t, key, ready())
	time.AfterFunc(50*time.Millisecond, func() { announce(t, dir, port) })
	got := Ask(t.Context(), Question{StateDir: dir, Wait: 30 * time.Second})
	if got.Outcome != Healthy || got.Port != port {
		t.Errorf("%v on %d, want healthy on %d", got.Outcome, got.Port, port)
	}
}

func TestHealthCommandStopsWaitingInTime(t *testing.T) {
	dir := folder(t, closedPort(t), nil)
	begin := time.Now()
	if got := Ask(t.Context(), Question{StateDir: dir, Wait: 200 * time.Millisecond}); got.Outcome != Absent {
		t.Errorf("%v, want not running", got.Outcome)
	}
	if took := time.Since(begin); took < 200*time.Millisecond || took > 5*time.Second {
		t.Errorf("waited %v, want 200 ms", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	begin = time.Now()
	Ask(ctx, Question{StateDir: dir, Wait: time.Hour})
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("a cancelled wait took %v", took)
	}
}

func TestHealthFindingAsJSON(t *testing.T) {
	data, err := json.Marshal(Finding{Outcome: OtherProgram, Sentence: "s", Port: 1, URL: "u"})
	if err != nil || !strings.Contains(string(data), `"outcome":"stranger-on-port"`) {
		t.Errorf("%s, %v", data, err)
	}
}
