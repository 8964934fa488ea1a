package owneronly

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolderIsItsOwnersAlone(t *testing.T) {
	tests := []struct {
		name   string
		before func(t *testing.T, path string)
	}{
		{"that is not there yet", func(*testing.T, string) {}},
		{"that others could read", func(t *testing.T, path string) { mkdir(t, path, 0o755) }},
		{"that everybody could write", func(t *testing.T, path string) { mkdir(t, path, 0o777) }},
		{"that its owner could not enter", func(t *testing.T, path string) { mkdir(t, path, 0o000) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "above", "private")
			tt.before(t, path)
			if err := Folder(path); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if os.PathSeparator == '/' && info.Mode().Perm() != 0o700 {
				t.Errorf("mode %v, want 0700", info.Mode())
			}
			if err := os.WriteFile(filepath.Join(path, "file"), nil, 0o600); err != nil {
				t.Errorf("its owner cannot write into it: %v", err)
			}
		})
	}
}

func mkdir(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNoFolderIsRefusedWithoutItsPath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Folder(path)
	if err == nil {
		t.Fatal("a file was taken for a folder")
	}
	if strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), `"file"`) {
		t.Errorf("error %q, want the last name and no more", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "kept" {
		t.Error("the file was changed")
	}
}
