//go:build !(linux && (amd64 || arm64))

package artifact

// systemSource returns the portable source: there is no faster one here.
func systemSource() source { return rootSource{} }
