//go:build amd64 || arm64

package artifact

// olderSource is the system's source where the kernel cannot be asked not to
// sleep.
func olderSource() source {
	r := &rawSource{}
	r.noCachedOpen.Store(true)
	r.noCachedRead.Store(true)
	return r
}
