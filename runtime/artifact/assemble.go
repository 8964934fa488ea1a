package artifact

import (
	"cmp"
	"slices"
	"strings"

	"sallyport/internal/coded"
)

// assembly goes through a walked tree in path order, once: it decides the first
// refusal (spec/artifact-digest.md 5) and writes leaves and records.
type assembly struct {
	*walk
	tree    *Tree
	encoder *encoder
	steps   int
	unread  string // path of a file that was skipped, if any
}

func (w *walk) assemble() (*Tree, error) {
	count := int(w.entries.Load())
	a := &assembly{walk: w, tree: &Tree{Leaves: make([]Leaf, 0, count)}, encoder: newEncoder(count)}
	err := a.all()
	digest := a.encoder.close()
	if err != nil {
		return nil, err
	}
	a.tree.Digest = digest
	a.tree.Warnings = w.warnings
	slices.SortFunc(a.tree.Warnings, func(x, y Warning) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Other, y.Other))
	})
	return a.tree, nil
}

func (a *assembly) all() error {
	if a.root.refusal != nil {
		return a.root.refusal
	}
	if err := a.dir(a.root); err != nil {
		return err
	}
	if a.unread != "" {
		return errUnread(a.unread)
	}
	return nil
}

// dir emits a directory's entries. What is below a directory "a" stands behind
// "a-b" and before "a0": it waits on a stack until a sibling follows "a/".
func (a *assembly) dir(n *node) error {
	var waiting []*entry
	flush := func(next string, last bool) error {
		for len(waiting) > 0 {
			top := waiting[len(waiting)-1]
			if !last && !followsChildren(n.name(top), next) {
				return nil
			}
			waiting = waiting[:len(waiting)-1]
			if err := a.dir(top.child); err != nil {
				return err
			}
		}
		return nil
	}
	for i, e := range n.sorted {
		if err := flush(n.name(e), false); err != nil {
			return err
		}
		if i > 0 && n.sorted[i-1].path == e.path {
			return refuse(CodePathCollision, e.path, nil)
		}
		if err := a.entry(n, e); err != nil {
			return err
		}
		if e.child != nil {
			waiting = append(waiting, e)
		}
	}
	return flush("", true)
}

// followsChildren reports whether the sibling next, greater than dir, is also
// greater than dir + "/".
func followsChildren(dir, next string) bool {
	return !strings.HasPrefix(next, dir) || next[len(dir)] > '/'
}

func (a *assembly) entry(n *node, e *entry) error {
	if a.steps++; a.steps%1024 == 0 || e.kind == KindLink {
		if err := a.ctx.Err(); err != nil {
			return err
		}
	}
	leaf := Leaf{Path: e.path, Kind: e.kind}
	if err := a.fill(&leaf, n, e); err != nil {
		return err
	}
	a.tree.Leaves = append(a.tree.Leaves, leaf)
	a.encoder.add(&leaf)
	return nil
}

func (a *assembly) fill(leaf *Leaf, n *node, e *entry) error {
	if e.refusal != nil {
		return e.refusal
	}
	switch e.kind {
	case KindDir:
		if e.child.refusal != nil {
			return e.child.refusal
		}
		a.tree.Dirs++
	case KindLink:
		target, refusal := checkLink(n, e)
		if refusal != nil {
			return refusal
		}
		leaf.Target = target
		a.tree.Links++
	case KindFile:
		if a.tree.Bytes += e.id.size; a.tree.Bytes > a.limits.TreeBytes {
			return refuse(CodeTreeTooLarge, e.path, nil)
		}
		if !e.hashed {
			a.unread = e.path
		}
		leaf.Size, leaf.Sum, leaf.Mode = e.id.size, e.sum, e.id.mode&countedMode
		a.tree.Files++
	default:
		return refuse(CodeSpecialFile, e.path, nil)
	}
	return nil
}

// errUnread guards the invariant that no digest is made over files that were
// skipped: a file is skipped only where some entry of the tree is refused.
func errUnread(path string) error {
	return &coded.Error{Code: CodeUnreadable, Sentence: "internal error: a file was not read", Path: path}
}
