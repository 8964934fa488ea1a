package approvals

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"sallyport/runtime/artifact"
	"sallyport/runtime/plugins"
)

// Bounds of what a diff shows; what is beyond them is counted, not hidden.
const (
	maxDiffFile  = 256 << 10 // bytes of one side of one file
	maxDiffText  = 1 << 20   // bytes of all text
	maxDiffFiles = 500       // files listed
)

// Diff is what changed since an approval (spec/approval.md 6). All text is made
// visible: it is a plugin's, and no markup.
type Diff struct {
	ID    string     `json:"id"`
	Since *time.Time `json:"since,omitempty"` // of the approval compared with; none: there is none
	// Sentence says it in one (trust-ux).
	Sentence     string       `json:"sentence"`
	Files        []FileChange `json:"files"`
	FilesLeftOut int          `json:"filesLeftOut"`
	Launch       []Change     `json:"launch"` // every changed field but the files
	Tools        []ToolChange `json:"tools"`
	Note         string       `json:"note,omitempty"` // why a part is missing
}

// FileChange is one file that differs.
type FileChange struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"` // added, removed, modified, mode-changed
	OldSize    int64  `json:"oldSize"`
	NewSize    int64  `json:"newSize"`
	Executable bool   `json:"executable"`
	Binary     bool   `json:"binary"`
	Added      int    `json:"added"`   // lines
	Removed    int    `json:"removed"` // lines
	Text       string `json:"text,omitempty"`
	// Left says why there is no text: "too-large", "too-much", "not-kept",
	// "changed-while-reading", "unreadable".
	Left string `json:"left,omitempty"`
}

// ToolChange is one tool beside what it was when tools were last allowed.
type ToolChange struct {
	Name    string          `json:"name"`
	Kind    string          `json:"kind"`    // added, removed, changed, same
	Allowed bool            `json:"allowed"` // it was allowed before
	Text    string          `json:"text,omitempty"`
	Old     json.RawMessage `json:"old,omitempty"`
	New     json.RawMessage `json:"new,omitempty"`
}

// Diff compares a connector as it is on disk now with what was approved.
func (g *Gate) Diff(ctx context.Context, id plugins.ID) (Diff, error) {
	g.mu.Lock()
	path := g.pathFor(id)
	g.mu.Unlock()
	if path == "" {
		var err error
		if path, err = g.userPath(ctx); err != nil {
			return Diff{}, err
		}
	}
	now, err := g.resolve(ctx, id, Full, path)
	if err != nil {
		return Diff{}, err
	}
	return g.diff(ctx, now), nil
}

func (g *Gate) diff(ctx context.Context, now Resolved) Diff {
	id := now.Connector.ID
	g.mu.Lock()
	base := g.baseOf(id, now.Identity)
	offer, offers := g.offerOf(id, now.Identity)
	g.mu.Unlock()
	d := Diff{ID: id.String(), Files: []FileChange{}, Launch: []Change{}, Tools: []ToolChange{}}
	if base == nil {
		d.Sentence = firstSentence(now)
		return d
	}
	d.Since = &base.At
	for _, change := range Changes(base.Fields, now.Fields) {
		if change.Code != "artifact-changed" {
			d.Launch = append(d.Launch, change)
		}
	}
	g.diffFiles(ctx, &d, base.Fields, now)
	if offers {
		d.Tools = diffTools(base, offer)
	}
	d.Sentence = changedSentence(base, now, d)
	return d
}

// baseOf returns what to compare with: the approval, or where that is of these
// very bytes and has no tools yet, the one before it. g.mu is held.
func (g *Gate) baseOf(id plugins.ID, identity Identity) *before {
	r := g.records[id]
	if r == nil {
		return nil
	}
	if r.Run == nil || r.Tools == nil && r.Run.Identity == identity {
		return r.Before
	}
	base := &before{Fields: r.Run.Fields, At: r.Run.At, Offered: pinsOf(r.Run.Offer.offer().Tools)}
	if r.Tools != nil {
		base.Tools, base.Offered = r.Tools.Tools, r.Tools.Offered
	}
	return base
}

// offerOf returns what the connector was last seen to provide as it is now. g.mu
// is held.
func (g *Gate) offerOf(id plugins.ID, identity Identity) (Offer, bool) {
	if open := g.openDecision(id); open != nil && open.Stage == StageTools && open.Identity == identity {
		return open.Offer(), true
	}
	if r := g.records[id]; r != nil && r.Run != nil && r.Run.Identity == identity {
		return r.Run.Offer.offer(), true
	}
	return Offer{}, false
}

func (g *Gate) diffFiles(ctx context.Context, d *Diff, old Fields, now Resolved) {
	if now.Tree == nil || old.Artifact == NoArtifact || old.Artifact == string(now.Tree.Digest) {
		return
	}
	digest := artifact.Digest(old.Artifact)
	leaves, err := g.cfg.Snapshots.Leaves(digest)
	if err != nil {
		d.Note = "the approved copy is no longer kept, so its files cannot be compared"
		return
	}
	snapshot, err := g.cfg.Snapshots.Verify(ctx, digest)
	if err != nil {
		d.Note = "the approved copy no longer verifies, so its text cannot be shown"
	}
	id := now.Connector.ID
	hidden, known := writtenOut(ctx, snapshot.Dir, id, old.exempt())
	if !known {
		snapshot.Dir = "" // what would have to be hidden in it is not known
	}
	written, _ := writtenOut(ctx, now.Connector.Root, id, now.Fields.exempt())
	hidden = slices.Concat(hidden, written, leftInValues(now.Connector))
	changes := artifact.Compare(leaves, now.Tree.Leaves)
	budget := maxDiffText
	for i, change := range changes {
		if i == maxDiffFiles {
			d.FilesLeftOut = len(changes) - i
			break
		}
		d.Files = append(d.Files, diffFile(change, snapshot.Dir, now.Connector.Root, hidden, &budget))
	}
}

func diffFile(change artifact.Change, oldRoot, root string, hidden credentials, budget *int) FileChange {
	f := FileChange{
		Path: Visible(change.Path), Kind: string(change.Kind), OldSize: change.Old.Size, NewSize: change.New.Size,
		Executable: change.New.Executable() || change.Kind == artifact.Removed && change.Old.Executable(),
	}
	if change.Kind == artifact.ModeChanged {
		return f
	}
	if change.Old.Kind == artifact.KindDir || change.New.Kind == artifact.KindDir {
		return f
	}
	if oldRoot == "" && change.Kind != artifact.Added {
		f.Left = "not-kept"
		return f
	}
	before, why := leafText(oldRoot, change.Old)
	after, why2 := leafText(root, change.New)
	if f.Left = why + why2; why != "" && why2 != "" {
		f.Left = why
	}
	if f.Left == "binary" {
		f.Binary, f.Left = true, ""
		return f
	}
	if f.Left != "" {
		return f
	}
	text := udiff.Unified("a/"+f.Path, "b/"+f.Path, hidden.hideIn(before), hidden.hideIn(after))
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			f.Added++
		case strings.HasPrefix(line, "-"):
			f.Removed++
		}
	}
	if len(text) > *budget {
		f.Left = "too-much"
		return f
	}
	*budget -= len(text)
	f.Text = text
	return f
}

// leafText reads one side of a change, as visible text. The bytes must be those of
// the leaf: what is shown is what was digested.
func leafText(root string, leaf artifact.Leaf) (text, why string) {
	switch {
	case leaf.Kind == 0:
		return "", ""
	case leaf.Kind == artifact.KindLink:
		return "link to " + Visible(leaf.Target) + "\n", ""
	case leaf.Size > maxDiffFile:
		return "", "too-large"
	}
	raw, err := readBelow(root, leaf.Path)
	if err != nil {
		return "", "unreadable"
	}
	if sha256.Sum256(raw) != leaf.Sum {
		return "", "changed-while-reading"
	}
	if bytes.IndexByte(raw, 0) >= 0 || !utf8.Valid(raw) {
		return "", "binary"
	}
	return visibleText(string(raw)), ""
}

// readBelow reads a file inside root, and never one that a link leads out to.
func readBelow(root, path string) ([]byte, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if info, err := dir.Lstat(filepath.FromSlash(path)); err != nil || !info.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	f, err := dir.Open(filepath.FromSlash(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxDiffFile+1))
}

// visibleText makes the text of a file visible line by line; tabs stay.
func visibleText(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		parts := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for j := range parts {
			parts[j] = Visible(parts[j])
		}
		lines[i] = strings.Join(parts, "\t")
		if strings.HasSuffix(line, "\r") {
			lines[i] += `\u{000D}`
		}
	}
	return strings.Join(lines, "\n")
}

// diffTools compares the tools on offer now with those at the last choice.
func diffTools(base *before, offer Offer) []ToolChange {
	out := []ToolChange{}
	seen := map[string]bool{}
	for _, o := range offeredTools(offer.Tools) {
		seen[o.name] = true
		out = append(out, diffTool(base, o))
	}
	for name := range base.Offered {
		if !seen[name] {
			at := slices.IndexFunc(base.Tools, func(p pinned) bool { return p.Name == name })
			gone := ToolChange{Name: Visible(name), Kind: "removed", Allowed: at >= 0}
			if at >= 0 {
				gone.Old = validJSON(base.Tools[at].Definition)
			}
			out = append(out, gone)
		}
	}
	slices.SortStableFunc(out, func(a, b ToolChange) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func diffTool(base *before, o offered) ToolChange {
	change := ToolChange{Name: Visible(o.name), Kind: "same", New: validJSON(o.raw)}
	pin, there := base.Offered[o.name]
	switch {
	case !there:
		change.Kind = "added"
	case pin != o.pin:
		change.Kind = "changed"
	}
	at := slices.IndexFunc(base.Tools, func(p pinned) bool { return p.Name == o.name })
	if at < 0 {
		return change
	}
	change.Allowed, change.Old = true, validJSON(base.Tools[at].Definition)
	if change.Kind == "changed" {
		change.Text = udiff.Unified("before", "now", indented(base.Tools[at].Definition), indented(o.raw))
	}
	return change
}

// validJSON returns raw unless it would break the document that it stands in.
func validJSON(raw []byte) json.RawMessage {
	if !json.Valid(raw) {
		return nil
	}
	return raw
}

// indented is a definition as visible lines. Text in it stays one JSON string a
// line, with what cannot be seen shown.
func indented(raw []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return Visible(string(raw)) + "\n"
	}
	return visibleText(out.String()) + "\n"
}
