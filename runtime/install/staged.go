package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/plugins"
	"sallyport/runtime/signature"
)

// Origin says where a bundle came from, without a path of the user's beyond ~.
type Origin struct {
	Kind Kind `json:"kind"`
	// Text is for people: "~/Downloads/demo.mcpb", "npm:demo@1.2.3".
	Text string `json:"text"`
	// Version is the npm version.
	Version string `json:"version,omitempty"`
	// Integrity is "sha512-…" of the npm package's own archive, or "sha256-…" of
	// the file that was unpacked.
	Integrity string `json:"integrity,omitempty"`
	// Lock is "sha256-…" of the lock file, which names every dependency's bytes.
	Lock string `json:"lock,omitempty"`
	// Commit is the git commit.
	Commit string `json:"commit,omitempty"`
}

// Signature is what is known about who made a bundle. A broken one is a refusal
// and never staged.
type Signature struct {
	State       signature.State       `json:"state"` // signature.Valid or signature.Unsigned
	Sentence    string                `json:"sentence"`
	Publisher   signature.Publisher   `json:"publisher,omitzero"`
	Certificate signature.Certificate `json:"certificate,omitzero"`
	SignedAt    time.Time             `json:"signedAt,omitzero"`
}

// Warning is something about a bundle that a person should know and that refuses
// nothing.
type Warning struct {
	Code  string `json:"code"`
	Path  string `json:"path,omitempty"`
	Other string `json:"other,omitempty"`
}

// Staged is a bundle that waits for an answer. Nothing of it was run.
type Staged struct {
	// ID finds it again, also after a restart.
	ID     string
	Dir    string // the bundle's root
	Digest artifact.Digest
	Plugin plugins.Plugin // as read from Dir
	stagedRecord
	home *Installer
}

// Publisher is who signed the bundle, as plugins.Connector.Publisher has it.
func (s *Staged) Publisher() string { return s.Signature.Publisher.String() }

// stagedRecord is what is kept beside a staged bundle.
type stagedRecord struct {
	Origin    Origin    `json:"origin"`
	Signature Signature `json:"signature"`
	Files     int       `json:"files"`
	Bytes     int64     `json:"bytes"`
	// Mended are the declared entry points that were made executable.
	Mended   []string  `json:"mended,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
	At       time.Time `json:"at"`
}

// Names below a staging folder. The record is written last: without it the
// folder is one that was never finished.
const (
	treeName   = "tree"
	recordName = "staged.json"
	workName   = "work"
)

var stagedID = regexp.MustCompile(`^s-[a-z2-7]{16}$`)

type stagedFile struct {
	Digest artifact.Digest `json:"digest"`
	stagedRecord
}

// Staged finds a bundle that was staged before, as it is on disk now.
func (i *Installer) Staged(ctx context.Context, id string) (*Staged, error) {
	if !stagedID.MatchString(id) {
		return nil, notStaged(nil)
	}
	dir := filepath.Join(i.config.Staging, id)
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return nil, notStaged(err)
	}
	var file stagedFile
	if err := json.Unmarshal(data, &file); err != nil || !file.Digest.Valid() {
		return nil, notStaged(err)
	}
	plugin, err := plugins.Load(ctx, filepath.Join(dir, treeName))
	if err != nil {
		return nil, notStaged(err)
	}
	return &Staged{ID: id, Dir: filepath.Join(dir, treeName), Digest: file.Digest, Plugin: *plugin, stagedRecord: file.stagedRecord, home: i}, nil
}

func notStaged(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &coded.Error{Code: "not-staged", Sentence: "the bundle that was asked about is no longer there", Next: "install it again from its source", Err: err}
}

func (s *Staged) save(dir string) error {
	data, err := json.MarshalIndent(stagedFile{s.Digest, s.stagedRecord}, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write what is staged: %w", err)
	}
	return atomicfile.WriteNew(filepath.Join(dir, recordName), append(data, '\n'), 0o600)
}

// Discard removes the staged bundle. One that is gone is no error.
func (s *Staged) Discard() error {
	return s.home.discardStaged(s.ID)
}

func (i *Installer) discardStaged(id string) error {
	if !stagedID.MatchString(id) {
		return nil
	}
	return removeAll(filepath.Join(i.config.Staging, id))
}

// removeAll removes a folder of ours, or says so without its path.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	if err != nil {
		return fmt.Errorf("cannot remove %q: %w", filepath.Base(dir), err)
	}
	return nil
}
