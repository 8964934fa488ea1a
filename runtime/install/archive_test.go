package install

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/runtime/artifact"
	"sallyport/runtime/signature"
)

// zipped packs a folder below prefix, as a program on Windows would when windows
// is set: without modes.
func zipped(t *testing.T, dir, prefix string, windows bool) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	eachFile(t, dir, func(name string, info fs.FileInfo, content []byte) {
		header := &zip.FileHeader{Name: prefix + name, Method: zip.Deflate}
		if !windows {
			header.SetMode(info.Mode())
		}
		f, err := w.CreateHeader(header)
		must(t, err)
		_, err = f.Write(content)
		must(t, err)
	})
	must(t, w.Close())
	return b.Bytes()
}

func tarred(t *testing.T, dir, prefix string) []byte {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	eachFile(t, dir, func(name string, info fs.FileInfo, content []byte) {
		must(t, w.WriteHeader(&tar.Header{Name: prefix + name, Typeflag: tar.TypeReg, Mode: int64(info.Mode().Perm()), Size: info.Size()}))
		_, err := w.Write(content)
		must(t, err)
	})
	must(t, errors.Join(w.Close(), compressed.Close()))
	return b.Bytes()
}

func eachFile(t *testing.T, dir string, each func(string, fs.FileInfo, []byte)) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		must(t, err)
		info, err := d.Info()
		must(t, err)
		each(filepath.ToSlash(name), info, []byte(read(t, path)))
		return nil
	}))
}

func archiveFile(t *testing.T, name string, data []byte) Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, data, 0o644))
	return source(t, path)
}

const binaryServer = `{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": {"a": {"type": "stdio", "command": "./server/run"}}}`

// One bundle, however it is packed, has one digest.
func TestArchivesAreTheFolderThatTheyPack(t *testing.T) { // C47
	i := newInstaller(t)
	dir := files(t, map[string]string{"plugin.json": manifestJSON, "mcp.json": binaryServer, "server/run*": "#!", "server/lib/a.js": strings.Repeat("js ", 999)})
	folder, err := i.Stage(t.Context(), source(t, dir), nil)
	must(t, err)
	tests := []struct {
		name   string
		data   []byte
		mended bool
	}{
		{"a.zip", zipped(t, dir, "", false), false},
		{"a.mcpb", zipped(t, dir, "demo-1.0.0/", false), false},
		{"a.dxt", zipped(t, dir, "", true), true},
		{"windows.zip", zipped(t, dir, "demo/", true), true},
		{"a.tar.gz", tarred(t, dir, "./"), false},
		{"a.tgz", tarred(t, dir, "package/"), false},
		{"really-a-tar.zip", tarred(t, dir, ""), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := archiveFile(t, tt.name, tt.data)
			staged, err := i.Stage(t.Context(), s, nil)
			must(t, err)
			if staged.Digest != folder.Digest {
				t.Errorf("it has the digest %s, the folder %s", staged.Digest, folder.Digest)
			}
			if tt.mended != slices.Equal(staged.Mended, []string{"server/run"}) && !onWindows() {
				t.Errorf("mended are %v", staged.Mended)
			}
			sum := sha256.Sum256(tt.data)
			if want := "sha256-" + base64.StdEncoding.EncodeToString(sum[:]); staged.Origin.Integrity != want || staged.Origin.Kind != Archive {
				t.Errorf("it comes from %+v", staged.Origin)
			}
			if staged.Signature.State != signature.Unsigned || staged.Signature.Sentence != "not signed" || staged.Publisher() != "" {
				t.Errorf("its signature is %+v", staged.Signature)
			}
		})
	}
}

func TestArchivesThatAreRefused(t *testing.T) { // C52
	dir := files(t, map[string]string{"plugin.json": manifestJSON, "a": "x"})
	good := zipped(t, dir, "", false)
	hostile := func(name string) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		_, err := w.Create(name)
		must(t, errors.Join(err, w.Close()))
		return b.Bytes()
	}
	tests := []struct {
		name, code string
		data       []byte
	}{
		{"no archive", "archive-unknown", []byte("hello")},
		{"an empty file", "archive-unknown", nil},
		{"a step out", "entry-traversal", hostile("../evil")},
		{"a broken signature", "signature-unreadable", slices.Concat(good, []byte("MCPB_SIG_V1\x04\x00\x00\x00junkMCPB_SIG_END"))},
		{"two folders at its top", "manifest-missing", zipped(t, files(t, map[string]string{"a/plugin.json": manifestJSON, "b/x": "x"}), "", false)},
		{"a folder in a folder", "manifest-missing", zipped(t, dir, "a/b/", false)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := newInstaller(t)
			refusal := refused(t, i, archiveFile(t, "a.zip", tt.data), tt.code)
			if strings.Contains(refusal.Next, "/tmp") {
				t.Errorf("it tells a path: %q", refusal.Next)
			}
			wantEmpty(t, i.config.Plugins, i.config.Info)
			wantNotThere(t, filepath.Join(i.config.Home, "evil"))
		})
	}
	i := newInstaller(t)
	i.config.Limits = artifact.Limits{TreeBytes: int64(len(good)) - 1}
	refused(t, i, archiveFile(t, "a.zip", good), "tree-too-large")
	refused(t, i, Source{Kind: Archive, Path: filepath.Join(t.TempDir(), "gone.zip")}, artifact.CodeChanged)
}

func TestACancelledArchiveLeavesNothing(t *testing.T) {
	dir := files(t, map[string]string{"plugin.json": manifestJSON, "a": strings.Repeat("text ", 1<<18)})
	s := archiveFile(t, "a.zip", zipped(t, dir, "", false))
	for _, doing := range []string{"reading", "unpacking", "digesting"} {
		i := newInstaller(t)
		ctx, cancel := context.WithCancel(t.Context())
		staged, err := i.Stage(ctx, s, func(s Step) {
			if s.Doing == doing {
				cancel()
			}
		})
		cancel()
		// A digest may be ready before it is noticed; then there is a whole bundle.
		if doing == "digesting" && err == nil {
			must(t, staged.Discard())
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", doing, err)
		}
		wantEmpty(t, i.config.Staging)
	}
}
