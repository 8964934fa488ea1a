package clients

import "io/fs"

// ours: an access list says who may write, and the write itself asks it.
func ours(fs.FileInfo) bool { return true }

// keepOwner has nothing to do: a new file has the owner and the access list that its
// folder gives.
func keepOwner(string, fs.FileInfo) error { return nil }
