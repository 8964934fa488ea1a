package loopback

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDiscoveryFileReadsBackAndIsItsOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	want := Discovery{
		Service: "sallyport", Version: "1.2.3", Instance: NewInstance(), PID: 42,
		StartedAt: time.Date(2026, 7, 17, 9, 0, 0, 0, time.UTC), Port: 23456,
		Executable: "/opt/Sally Port/sallyport",
	}
	if err := WriteDiscovery(dir, want); err != nil {
		t.Fatal(err)
	}
	want.URL = "http://127.0.0.1:23456"
	got, err := ReadDiscovery(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
	info, err := os.Stat(filepath.Join(dir, DiscoveryFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
}

func TestDiscoveryFileThatSaysSomethingElseIsRefused(t *testing.T) {
	tests := map[string]string{
		"empty":              "",
		"torn":               `{"service":"sallyport","port":23`,
		"a list":             `[]`,
		"port as text":       `{"port":"8080"}`,
		"port zero":          `{"port":0}`,
		"no port":            `{"service":"sallyport"}`,
		"port above 65535":   `{"port":70000}`,
		"fraction of a port": `{"port":8080.5}`,
		"a megabyte":         `{"port":8080,"executable":"` + strings.Repeat("x", 1<<20) + `"}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, DiscoveryFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if d, err := ReadDiscovery(dir); err == nil {
				t.Errorf("read as %+v", d)
			} else if strings.Contains(err.Error(), dir) {
				t.Errorf("error %q shows an absolute path", err)
			}
		})
	}
}

func TestDiscoveryFileCannotSendAnybodyToAnotherHost(t *testing.T) {
	dir := t.TempDir()
	text := `{"service":"sallyport","url":"http://evil.example:23456","port":23456}`
	if err := os.WriteFile(filepath.Join(dir, DiscoveryFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := ReadDiscovery(dir)
	if err != nil || d.URL != "http://127.0.0.1:23456" {
		t.Errorf("URL %q, %v; want the literal loopback address", d.URL, err)
	}
}

func TestDiscoveryFileIsRemovedByItsOwnInstanceOnly(t *testing.T) {
	dir := t.TempDir()
	if err := RemoveDiscovery(dir, "a"); err != nil {
		t.Errorf("removing none: %v", err)
	}
	if err := WriteDiscovery(dir, Discovery{Instance: "successor", Port: 23456}); err != nil {
		t.Fatal(err)
	}
	if err := RemoveDiscovery(dir, "predecessor"); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDiscovery(dir); err != nil {
		t.Errorf("a successor's file was removed: %v", err)
	}
	if err := RemoveDiscovery(dir, "successor"); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDiscovery(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("own file is still there: %v", err)
	}
}
