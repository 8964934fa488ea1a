//go:build !windows

package process

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/env"
)

type vault map[string]string

func (v vault) Secret(_ context.Context, name string) (string, error) {
	if value, ok := v[name]; ok {
		return value, nil
	}
	return "", coded.New("secret-missing", "there is no such secret")
}

// C58, the part about processes: a child gets its secret, and nobody else does.
func TestSecretReachesTheChildAndNothingElse(t *testing.T) {
	const secret = "SENTINEL-7f3a"
	state := t.TempDir()
	var log bytes.Buffer
	m := newManager(t, func(c *Config) {
		c.StateDir, c.Secrets = state, vault{"S": secret}
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	declared := []env.Declared{{Name: "KEY", Value: "Bearer ${secret:S}", References: true}}

	d := describeChild(t, m, launchIn(t, t.TempDir(), declared, "describe"))
	if !strings.Contains(strings.Join(d.Env, "\n"), "KEY=Bearer "+secret) {
		t.Errorf("the child did not get its secret: %q", d.Env)
	}

	l := launchIn(t, t.TempDir(), declared, "stderr", "my key is SENTI", "NEL-7f3a, SENTINEL-7f3a\n", "and SENTINEL-")
	l.ID.Server = "talker"
	// The command line here is the child's own, written by the test; the tail is not.
	talker := start(t, m, l)
	<-talker.Gone()
	if got := strings.Join(talker.Stderr().Lines(), "|"); got != "my key is [secret], [secret]|and [secret]" {
		t.Errorf("stderr %q", got)
	}

	quiet := start(t, m, launchIn(t, t.TempDir(), declared, "polite"))
	firstLine(t, quiet)
	if line, err := os.ReadFile("/proc/" + strconv.Itoa(quiet.PID()) + "/cmdline"); err == nil && bytes.Contains(line, []byte(secret)) {
		t.Errorf("the command line shows it: %q", line)
	}
	quiet.Stop(context.Background(), nil)
	filepath.WalkDir(state, func(path string, d fs.DirEntry, _ error) error {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s holds it", path)
		}
		return nil
	})
	if strings.Contains(log.String(), secret) {
		t.Errorf("the log holds it: %s", log.String())
	}
}

func TestMissingSecretIsItsOwnRefusal(t *testing.T) {
	m := newManager(t, func(c *Config) { c.Secrets = vault{} })
	_, err := m.start(context.Background(), launchIn(t, t.TempDir(), []env.Declared{{Name: "KEY", Value: "secret:S", References: true}}, "polite"))
	wantCode(t, err, "secret-missing")
}
