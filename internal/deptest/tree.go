// Package deptest keeps the promises that are about the repository as a whole:
// which way imports point, what no package may import, that what is cited
// exists, and that the program builds for every system.
//
// The one idea: a rule that matters is an ordinary test with its reason in the
// failure, so "go test ./..." is the one command. It reads source text only and
// so sees the files of every system at once.
//
// Only its own tests use it.
package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Module is the path that imports of our own start with.
const Module = "sallyport"

// File is one Go file of the module.
type File struct {
	Path    string // slash-separated, relative to the root
	Package string // the folder's path relative to the root, "." for the root
	Name    string // the package clause
	Doc     string // the package comment, "" without one
	Test    bool
	Imports []string
	Syntax  *ast.File // parsed with comments
}

// Root returns the module's root, found upwards from the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fs.ErrNotExist
		}
		dir = parent
	}
}

// Files parses every Go file of the module below root, whatever its build
// constraints. Folders that the go command ignores, other modules and folders
// that git ignores by convention are left out.
func Files(root string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(root, name, entry)
		}
		if !strings.HasSuffix(name, ".go") || !entry.Type().IsRegular() {
			return nil
		}
		file, err := parse(root, name)
		if err != nil {
			return err
		}
		files = append(files, file)
		return nil
	})
	return files, err
}

func enter(root, name string, entry fs.DirEntry) error {
	if name == root {
		return nil
	}
	base := entry.Name()
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	switch base {
	case "testdata", "node_modules", "vendor", "bin", "dist":
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func parse(root, name string) (File, error) {
	relative, err := filepath.Rel(root, name)
	if err != nil {
		return File{}, err
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, err
	}
	slash := filepath.ToSlash(relative)
	file := File{
		Path: slash, Package: path.Dir(slash), Name: syntax.Name.Name,
		Doc: syntax.Doc.Text(), Test: strings.HasSuffix(slash, "_test.go"), Syntax: syntax,
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return File{}, err
		}
		file.Imports = append(file.Imports, imported)
	}
	return file, nil
}
