package artifact

import "context"

// Tree is a digested tree of files.
type Tree struct {
	Digest Digest
	// Leaves are the entries below the root, in ascending order of path bytes.
	Leaves []Leaf
	// Warnings are reported, and refuse nothing.
	Warnings []Warning

	Files, Dirs, Links int
	// Bytes is the sum of the files' sizes.
	Bytes int64
}

// Warning is something about a tree that a person should know.
type Warning struct {
	// Code is CodeCaseCollision.
	Code string
	// Path and Other are equal but for letter case: one of the two is lost on
	// macOS and Windows.
	Path, Other string
}

// Executables returns the paths of the files that their owner may execute, in
// path order. It is empty on Windows, which has no such bit.
func (t *Tree) Executables() []string {
	var paths []string
	for i := range t.Leaves {
		if t.Leaves[i].Executable() {
			paths = append(paths, t.Leaves[i].Path)
		}
	}
	return paths
}

// Of digests the tree below dir, reading every byte of it (spec/artifact-digest.md).
//
// dir itself may be reached through a link; nothing below it is followed. A
// refusal is a *coded.Error with a code of clause 5 and a path relative to dir.
// When ctx ends first, the error is ctx's.
func Of(ctx context.Context, dir string, opts Options) (*Tree, error) {
	w := newWalk(ctx, opts)
	return w.run(dir)
}
