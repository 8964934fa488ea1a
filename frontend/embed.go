// Package frontend is the interface as files, for whoever serves it.
//
// The one idea: the pages are built before the program and carried in it; where
// nobody built them, the folder is empty and Built says so. It serves nothing and
// knows no address. api and main import it.
package frontend

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the built pages, index.html at the top.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the folder is named above
	}
	return files
}

// Built reports whether the pages were built into this program.
func Built() bool {
	_, err := fs.Stat(Files(), "index.html")
	return err == nil
}
