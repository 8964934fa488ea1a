package approvals

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"sallyport/internal/filestamp"
	"sallyport/runtime/env"
)

// programMemo remembers executables as found, so that a list does not hash the
// same interpreter once a connector. It is for lists only: a start looks again.
// A file that was written so shortly before it was hashed that a later change might
// not show in its stamp is not remembered.
type programMemo struct {
	mu    sync.Mutex
	known map[env.Search]program
}

type program struct {
	found env.Executable
	files []stamped
}

type stamped struct {
	path  string
	stamp filestamp.Stamp
}

// maxPrograms bounds the memory; a full memo starts over.
const maxPrograms = 4096

// put remembers x, which was begun to be hashed at begun.
func (m *programMemo) put(s env.Search, x env.Executable, begun time.Time) {
	p := program{found: x}
	for _, path := range pathsOf(x) {
		info, err := os.Stat(path)
		if err != nil {
			return
		}
		stamp := filestamp.Of(info)
		if stamp.Racy(begun) {
			return
		}
		p.files = append(p.files, stamped{path, stamp})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxPrograms {
		m.known = map[env.Search]program{}
	}
	m.known[memoKey(s, x)] = p
}

// memoKey leaves the bundle out of the key of what was found outside of it: a
// thousand plugins that start node share one look at it.
func memoKey(s env.Search, x env.Executable) env.Search {
	if s.Root != "" && !strings.ContainsAny(s.Command, `/\`) && outside(s.Root, x) {
		s.Root = ""
	}
	return s
}

// outside reports whether no file of x lies in the bundle at root.
func outside(root string, x env.Executable) bool {
	for _, path := range pathsOf(x) {
		if _, inside := below(root, path); inside {
			return false
		}
	}
	return true
}

// get returns what was found before if every file of it looks the same and no
// earlier folder of the PATH holds the name now.
func (m *programMemo) get(s env.Search) (env.Executable, bool) {
	m.mu.Lock()
	p, ok := m.known[s]
	if !ok {
		shared := s
		shared.Root = ""
		if p, ok = m.known[shared]; ok && memoKey(s, p.found) != shared {
			ok = false
		}
	}
	m.mu.Unlock()
	if !ok || len(p.files) == 0 || shadowed(s, p.found.Found) {
		return env.Executable{}, false
	}
	if real, err := filepath.EvalSymlinks(p.found.Found); err != nil || real != p.found.Real {
		return env.Executable{}, false
	}
	for _, file := range p.files {
		now, err := os.Stat(file.path)
		if err != nil || filestamp.Of(now) != file.stamp {
			return env.Executable{}, false
		}
	}
	return p.found, true
}

func pathsOf(x env.Executable) []string {
	paths := []string{x.Found, x.Real}
	for _, inner := range x.Interpreters {
		paths = append(paths, pathsOf(inner)...)
	}
	return paths
}

// shadowed reports whether a folder before found's holds the name too.
func shadowed(s env.Search, found string) bool {
	if strings.ContainsAny(s.Command, `/\`) || runtime.GOOS == "windows" {
		return false
	}
	for _, dir := range filepath.SplitList(s.Path) {
		candidate := filepath.Join(dir, s.Command)
		if candidate == filepath.Clean(found) {
			return false
		}
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return true
		}
	}
	return true
}
