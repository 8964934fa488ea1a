package approvals

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"unicode/utf8"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// maxTreeEntries is how many entries of a bundle are listed; more are counted.
const maxTreeEntries = 20_000

// Which of the two copies of a file is meant.
const (
	CopyNow      = "now"
	CopyApproved = "approved"
)

// Tree is a connector's bundle, entry by entry: as it is on disk, with what is
// different from the approved copy marked and what is gone from it kept in its place.
// Paths and targets are the package's text, exact, so that one can be asked for again.
type Tree struct {
	ID       string      `json:"id"`
	Digest   string      `json:"digest"`   // on disk now; "" where nothing is there
	Approved string      `json:"approved"` // of the approval; "" without one
	Entries  []TreeEntry `json:"entries"`
	LeftOut  int         `json:"leftOut"`        // entries that are not listed
	Note     string      `json:"note,omitempty"` // why a part is missing
}

// TreeEntry is one file, folder or link.
type TreeEntry struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"` // file, folder, link
	Size       int64  `json:"size"`
	Executable bool   `json:"executable,omitempty"`
	Target     string `json:"target,omitempty"` // of a link
	Sum        string `json:"sum,omitempty"`    // SHA-256 of a file's bytes, hex
	// Change is added, removed, modified or mode-changed since the approval; empty where
	// it is the same, or nothing was approved.
	Change string `json:"change,omitempty"`
}

// TreeFile is one file of a bundle, with its text where it has one that can be shown.
type TreeFile struct {
	TreeEntry
	Copy string `json:"copy"` // now, approved
	Text string `json:"text"`
	// Left says why there is no text: "binary", "too-large", "changed-while-reading",
	// "unreadable", "not-kept".
	Left string `json:"left,omitempty"`
}

// Tree lists a connector's files. It believes what the file system says did not
// change, like every list; nothing starts because of it.
func (g *Gate) Tree(ctx context.Context, id plugins.ID) (Tree, error) {
	both, err := g.copies(ctx, id)
	if err != nil {
		return Tree{}, err
	}
	t := Tree{ID: id.String(), Approved: string(both.approved), Entries: []TreeEntry{}, Note: both.note}
	listed := both.old
	if both.now != nil {
		t.Digest, listed = string(both.now.Digest), both.now.Leaves
	}
	changes := map[string]artifact.Change{}
	if both.now != nil && both.old != nil {
		for _, change := range artifact.Compare(both.old, both.now.Leaves) {
			changes[change.Path] = change
			if change.Kind == artifact.Removed {
				listed = append(listed[:len(listed):len(listed)], change.Old)
			}
		}
		slices.SortFunc(listed, func(a, b artifact.Leaf) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	}
	if len(listed) > maxTreeEntries {
		t.LeftOut, listed = len(listed)-maxTreeEntries, listed[:maxTreeEntries]
	}
	for _, leaf := range listed {
		t.Entries = append(t.Entries, treeEntry(leaf, string(changes[leaf.Path].Kind)))
	}
	return t, nil
}

func treeEntry(leaf artifact.Leaf, change string) TreeEntry {
	e := TreeEntry{Path: leaf.Path, Kind: "folder", Size: leaf.Size, Executable: leaf.Executable(), Target: leaf.Target, Change: change}
	switch leaf.Kind {
	case artifact.KindFile:
		e.Kind, e.Sum = "file", hex.EncodeToString(leaf.Sum[:])
	case artifact.KindLink:
		e.Kind = "link"
	}
	return e
}

// TreeFile shows one file of a connector's bundle. Only what is in the list can be
// asked for, by its exact path, and the bytes shown are those that were listed: a path
// is looked up, never followed.
func (g *Gate) TreeFile(ctx context.Context, id plugins.ID, path, which string) (TreeFile, error) {
	both, err := g.copies(ctx, id)
	if err != nil {
		return TreeFile{}, err
	}
	leaves, root, said := both.old, "", both.fields.exempt()
	switch which {
	case CopyApproved:
		// The snapshot is verified first, so that a damaged one is noticed and not shown.
		if snapshot, err := g.cfg.Snapshots.Verify(ctx, both.approved); err == nil {
			root = snapshot.Dir
		}
	case CopyNow:
		leaves, root, said = nil, both.connector.Root, env.Exempt{NotSecret: both.connector.Options.NotSecret}
		if both.now != nil {
			leaves = both.now.Leaves
		}
	default:
		return TreeFile{}, coded.New("bad-request", `copy is "now" or "approved"`)
	}
	at := slices.IndexFunc(leaves, func(l artifact.Leaf) bool { return l.Path == path && l.Kind == artifact.KindFile })
	if at < 0 {
		return TreeFile{}, &coded.Error{Code: "file-unknown", Sentence: "there is no such file in its bundle", Next: "choose one from the list of its files"}
	}
	f := TreeFile{TreeEntry: treeEntry(leaves[at], ""), Copy: which}
	hidden, known := writtenOut(ctx, root, id, said)
	if !known && which == CopyApproved {
		root = "" // what would have to be hidden in it is not known
	}
	f.Text, f.Left = treeText(root, leaves[at])
	f.Text = slices.Concat(hidden, leftInValues(both.connector)).hideIn(f.Text)
	return f, nil
}

// treeText reads a file's text as it is. The bytes must be those of the leaf.
func treeText(root string, leaf artifact.Leaf) (text, why string) {
	if root == "" {
		return "", "not-kept"
	}
	if leaf.Size > maxDiffFile {
		return "", "too-large"
	}
	raw, err := readBelow(root, leaf.Path)
	switch {
	case err != nil:
		return "", "unreadable"
	case sha256.Sum256(raw) != leaf.Sum:
		return "", "changed-while-reading"
	case bytes.IndexByte(raw, 0) >= 0 || !utf8.Valid(raw):
		return "", "binary"
	}
	return string(raw), ""
}

// bothCopies is a bundle as it is on disk and as it was approved.
type bothCopies struct {
	connector plugins.Connector
	now       *artifact.Tree // nil: nothing is there, or it cannot be read
	approved  artifact.Digest
	fields    Fields          // of the approval
	old       []artifact.Leaf // nil: nothing was approved, or its list is gone
	note      string
}

func (g *Gate) copies(ctx context.Context, id plugins.ID) (bothCopies, error) {
	both := bothCopies{}
	g.mu.Lock()
	if r := g.records[id]; r != nil && r.Run != nil {
		both.approved, both.fields = r.Run.digest(), r.Run.Fields
	}
	g.mu.Unlock()
	connector, there := g.cfg.Connector(id)
	if !there && both.approved == "" {
		return both, unknownConnector(id)
	}
	var err error
	if there {
		both.connector = connector
		if both.now, err = g.resolver.tree(ctx, connector, Cached); err != nil {
			if both.approved == "" || ctx.Err() != nil {
				return both, refusalOf(err)
			}
			both.note = "the files on disk cannot be listed: " + refusalOf(err).Error() + "; these are the approved ones"
		}
	}
	if both.approved == "" {
		return both, nil
	}
	if both.old, err = g.cfg.Snapshots.Leaves(both.approved); err != nil {
		both.old, both.note = nil, "the list of the approved files is no longer kept, so nothing can be compared"
	}
	return both, nil
}
