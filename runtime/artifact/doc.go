// Package artifact names one exact tree of files by a digest, and keeps
// snapshots of trees under that name.
//
// The one idea: an approval is bound to a Digest, and what runs is a private
// copy (a Snapshot) whose own bytes gave that digest. The encoding, the
// refusals and their order are spec/artifact-digest.md; any change to the
// encoding is a new prefix, never an edit.
//
// How a tree is digested: workers list directories and hash files through
// descriptors opened one from another below a single root (walk.go, with one
// source per operating system), each directory is sorted on its own (node.go),
// and one pass in path order decides the first refusal and writes the records
// (assemble.go). Parallelism therefore never shows in the answer.
//
// It does not know what an approval, a plugin or a launch is, keeps no record of
// who agreed to what, and never runs anything. Cache is for lists and scans
// only: a start is decided by Of or Snapshots.Verify.
//
// It imports nothing of ours but internal/*; any package above may import it.
package artifact
