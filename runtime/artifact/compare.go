package artifact

import "strings"

// ChangeKind says how a path differs between two trees.
type ChangeKind string

const (
	Added       ChangeKind = "added"
	Removed     ChangeKind = "removed"
	Modified    ChangeKind = "modified"     // other bytes, link text or kind of entry
	ModeChanged ChangeKind = "mode-changed" // the counted mode bits alone
)

// Change is one path that differs. Old is the zero Leaf for Added, New for Removed.
type Change struct {
	Path     string
	Kind     ChangeKind
	Old, New Leaf
}

// Compare returns what differs between two lists of leaves, each in ascending
// path order, sorted by path. No change means an equal digest.
func Compare(old, new []Leaf) []Change {
	var changes []Change
	for len(old) > 0 || len(new) > 0 {
		switch order := compareHeads(old, new); {
		case order < 0:
			changes = append(changes, Change{Path: old[0].Path, Kind: Removed, Old: old[0]})
			old = old[1:]
		case order > 0:
			changes = append(changes, Change{Path: new[0].Path, Kind: Added, New: new[0]})
			new = new[1:]
		default:
			if kind, differs := compareLeaves(old[0], new[0]); differs {
				changes = append(changes, Change{Path: new[0].Path, Kind: kind, Old: old[0], New: new[0]})
			}
			old, new = old[1:], new[1:]
		}
	}
	return changes
}

func compareHeads(old, new []Leaf) int {
	switch {
	case len(new) == 0:
		return -1
	case len(old) == 0:
		return 1
	}
	return strings.Compare(old[0].Path, new[0].Path)
}

func compareLeaves(a, b Leaf) (ChangeKind, bool) {
	if a == b {
		return "", false
	}
	a.Mode = b.Mode
	if a == b {
		return ModeChanged, true
	}
	return Modified, true
}
