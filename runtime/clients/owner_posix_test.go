//go:build !windows

package clients

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// of is a file of another user, as a stat tells it.
type of struct {
	fs.FileInfo
	uid uint32
}

func (o of) Sys() any { return &syscall.Stat_t{Uid: o.uid, Gid: o.uid} }

// TestTheOwnerStays: root writes a file for its owner and gives it back; anybody else
// writes no file of another's.
func TestTheOwnerStays(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".cursor/mcp.json")
	put(t, path, []byte("{}"))
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	if !ours(info) || ours(of{info, 12345}) != root {
		t.Errorf("ours: own %v, another's %v", ours(info), ours(of{info, 12345}))
	}
	uid := os.Geteuid()
	if root {
		uid = 12345
	}
	if err := os.Chown(path, uid, -1); err != nil {
		t.Fatal(err)
	}
	record := mustApply(t, mustPlan(t, "cursor", System{OS: "linux", Home: home}), t.TempDir())
	now, err := os.Lstat(record.Path)
	if err != nil || int(now.Sys().(*syscall.Stat_t).Uid) != uid {
		t.Errorf("the file is now %+v's: %v", now.Sys(), err)
	}
}
