//go:build !(linux && (amd64 || arm64))

package artifact

// newSource returns the portable source: there is no faster one here.
func newSource(Options) source { return rootSource{} }
