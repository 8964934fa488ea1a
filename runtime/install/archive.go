package install

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sallyport/internal/coded"
	"sallyport/internal/unpack"
	"sallyport/runtime/signature"
)

// archive unpacks a file. It is copied first: what is hashed, what its signature
// is checked on and what is unpacked are the same bytes.
func (j *job) archive(ctx context.Context, source Source) error {
	file, sum, err := j.takeFile(ctx, source.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	j.record.Origin = Origin{Kind: Archive, Text: j.installer.label(source.Path), Integrity: sum}
	return j.unpackFile(ctx, file, j.tree)
}

// takeFile copies a file into the work folder and returns it, opened, with its
// hash.
func (j *job) takeFile(ctx context.Context, path string) (*os.File, string, error) {
	from, err := os.OpenFile(path, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, "", unreadable(filepath.Base(path), err)
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return nil, "", unreadable(filepath.Base(path), err)
	}
	if !info.Mode().IsRegular() {
		return nil, "", unknownSource()
	}
	to, err := os.OpenFile(filepath.Join(j.work, "archive"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("cannot copy the archive: %w", pathless(err))
	}
	hash := sha256.New()
	limit := j.treeLimit()
	n, err := io.Copy(io.MultiWriter(to, hash), &progressReader{ctx: ctx, r: io.LimitReader(from, limit+1), tell: func(n int64) {
		j.progress(Step{Doing: "reading", Bytes: n})
	}})
	if err == nil && n > limit {
		err = &coded.Error{Code: "tree-too-large", Sentence: "the archive itself is larger than a bundle may be", Next: "ask its maker for a smaller one"}
	}
	if err != nil {
		return nil, "", errors.Join(copyTrouble(err), to.Close())
	}
	return to, "sha256-" + base64.StdEncoding.EncodeToString(hash.Sum(nil)), nil
}

// unpackFile makes dir from an archive, whose kind its first bytes say, and takes
// the one folder that many packers put around everything away.
func (j *job) unpackFile(ctx context.Context, file *os.File, dir string) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("cannot read the archive: %w", pathless(err))
	}
	var magic [4]byte
	if _, err := file.ReadAt(magic[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot read the archive: %w", pathless(err))
	}
	options := j.options("unpacking")
	var result unpack.Result
	switch {
	case magic[0] == 'P' && magic[1] == 'K':
		result, err = j.unpackZip(ctx, file, info.Size(), dir, options)
	case magic[0] == 0x1f && magic[1] == 0x8b:
		result, err = unpack.TarGz(ctx, io.NewSectionReader(file, 0, info.Size()), dir, options)
	default:
		return &coded.Error{Code: "archive-unknown", Sentence: "the file is neither a zip nor a gzipped tar", Next: "download it again, or ask its maker"}
	}
	if err != nil {
		return err
	}
	j.warn(result)
	return j.liftOnlyFolder(dir)
}

// unpackZip unpacks what a signature covers, or all of a file without one. A
// broken signature is a refusal, and nothing is unpacked.
func (j *job) unpackZip(ctx context.Context, file *os.File, size int64, dir string, options unpack.Options) (unpack.Result, error) {
	report, err := signature.Verify(ctx, file, size)
	if err != nil {
		return unpack.Result{}, err
	}
	j.record.Signature = signatureOf(report)
	return unpack.Zip(ctx, report.Archive, report.Archive.Size(), dir, options)
}

func signatureOf(report signature.Report) Signature {
	return Signature{
		State: report.State, Sentence: report.Sentence(), Publisher: report.Publisher, Certificate: report.Certificate, SignedAt: report.SignedAt,
	}
}

// liftOnlyFolder makes the folder that is alone at the top the top, as in
// archives of npm and of code hosts.
func (j *job) liftOnlyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot read what was unpacked: %w", pathless(err))
	}
	if len(entries) != 1 || !entries[0].IsDir() {
		return nil
	}
	inner := entries[0].Name()
	switch inner {
	case "skills", "server", ".claude-plugin", ".codex-plugin":
		return nil // a plugin's own folder
	}
	lifted := filepath.Join(j.work, "lifted")
	if err := os.Rename(filepath.Join(dir, inner), lifted); err != nil {
		return fmt.Errorf("cannot move what was unpacked: %w", pathless(err))
	}
	if err := os.Remove(dir); err != nil {
		return fmt.Errorf("cannot move what was unpacked: %w", pathless(err))
	}
	if err := os.Rename(lifted, dir); err != nil {
		return fmt.Errorf("cannot move what was unpacked: %w", pathless(err))
	}
	for k := range j.record.Warnings {
		w := &j.record.Warnings[k]
		if rest, err := filepath.Rel(inner, filepath.FromSlash(w.Path)); err == nil {
			w.Path = filepath.ToSlash(rest)
		}
	}
	return nil
}

func (j *job) treeLimit() int64 {
	if limit := j.installer.config.Limits.TreeBytes; limit > 0 {
		return limit
	}
	return 2 << 30
}

// progressReader ends with ctx and tells how much was read.
type progressReader struct {
	ctx  context.Context
	r    io.Reader
	n    int64
	tell func(int64)
}

func (p *progressReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	p.n += int64(n)
	p.tell(p.n)
	return n, err
}
