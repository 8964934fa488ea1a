//go:build !windows

package sessionbus

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestWhereTheBusIs(t *testing.T) {
	folder, err := os.MkdirTemp("", "bus") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	listener, err := net.Listen("unix", filepath.Join(folder, "bus"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	empty := t.TempDir()
	for name, row := range map[string]struct{ set, runtime, want string }{
		"the variable wins":                         {"unix:path=/a", folder, "unix:path=/a"},
		"of several, those that start a program go": {"autolaunch:;unix:path=/a;unixexec:path=/b", "", "unix:path=/a"},
		"one that would be launched is none":        {"autolaunch:", "", ""},
		"without the variable it is the login's":    {"", folder, "unix:path=" + folder + "/bus"},
		"a folder without a socket has none":        {"", empty, ""},
		"a relative folder is not looked at":        {"", "run", ""},
		"nothing set is none":                       {"", "", ""},
	} {
		got := Address(func(name string) string {
			return map[string]string{"DBUS_SESSION_BUS_ADDRESS": row.set, "XDG_RUNTIME_DIR": row.runtime}[name]
		})
		if got != row.want {
			t.Errorf("%s: %q, and not %q", name, got, row.want)
		}
	}
}
