package plugins

import (
	"hash/maphash"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sallyport/internal/filestamp"
)

// survey is one look at a place: a sum of everything that stat tells about it,
// part by part, and the directories it is made of. No file is opened.
type survey struct {
	present bool
	path    string            // as configured
	root    string            // resolved
	id      filestamp.Stamp   // which directory the root is
	parts   map[string]uint64 // name in the folder → sum; a tree has one part, ""
	dirs    []string          // every directory looked at, absolute
	known   map[string]bool   // the same as a set
}

// The seed is per process: sums are compared in one process only.
type summer struct {
	hash maphash.Hash
	dirs []string
}

// difference returns the parts that are not the same in both.
func (s survey) difference(now survey) map[string]bool {
	changed := map[string]bool{}
	if s.present != now.present || s.root != now.root || s.id != now.id {
		changed[""] = true
	}
	for name, sum := range now.parts {
		if was, known := s.parts[name]; !known || was != sum {
			changed[name] = true
		}
	}
	for name := range s.parts {
		if _, still := now.parts[name]; !still {
			changed[name] = true
		}
	}
	if len(changed) > 1 {
		delete(changed, "")
	}
	return changed
}

// concerns reports whether a path is in, or is, a directory of the survey.
func (s survey) concerns(path string) bool {
	return s.present && (s.known[path] || s.known[filepath.Dir(path)] ||
		strings.HasPrefix(path, s.root+string(filepath.Separator)))
}

// moved reports whether the place is another directory than before, or has come
// or gone.
func (s survey) moved() bool {
	root, err := resolveDir(s.path)
	if err != nil {
		return s.present
	}
	return !s.present || root != s.root || directoryID(root) != s.id
}

func directoryID(root string) filestamp.Stamp {
	info, err := os.Stat(root)
	if err != nil {
		return filestamp.Stamp{}
	}
	return filestamp.Of(info).Node()
}

// treeSurvey sums every entry below dir.
func treeSurvey(dir string) func() survey {
	seed := maphash.MakeSeed()
	return func() survey {
		s, ok := rootSurvey(dir)
		if !ok {
			return s
		}
		sum := newSummer(seed)
		sum.tree(s.root)
		s.parts[""] = sum.hash.Sum64()
		return s.through(sum.dirs)
	}
}

// folderSurvey sums, for each plugin of a folder, what a listing depends on: the
// entries of its root, of the folders of manifests, of skills/ and of each skill, and
// the further files that its manifest named when it was last read.
func folderSurvey(folder Folder, named func(dir string) []string) func() survey {
	seed := maphash.MakeSeed()
	return func() survey {
		s, ok := rootSurvey(folder.Path)
		if !ok {
			return s
		}
		dirs := []string{s.root}
		inside, problems := look(folder)
		for _, plugin := range inside {
			sum := newSummer(seed)
			sum.plugin(plugin.dir, named(plugin.dir))
			s.parts[plugin.base] = sum.hash.Sum64()
			dirs = append(dirs, sum.dirs...)
		}
		for _, problem := range problems {
			s.parts[problem.Path] = 0
		}
		return s.through(dirs)
	}
}

func (s survey) through(dirs []string) survey {
	s.dirs, s.known = dirs, make(map[string]bool, len(dirs))
	for _, dir := range dirs {
		s.known[dir] = true
	}
	return s
}

func rootSurvey(path string) (survey, bool) {
	s := survey{path: path, parts: map[string]uint64{}}
	root, err := resolveDir(path)
	if err != nil {
		return s, false
	}
	s.present, s.root, s.id = true, root, directoryID(root)
	return s, true
}

func newSummer(seed maphash.Seed) *summer {
	sum := &summer{}
	sum.hash.SetSeed(seed)
	return sum
}

func (s *summer) add(name string, info fs.FileInfo) {
	stamp := filestamp.Of(info)
	if info != nil && info.IsDir() {
		// Entries are summed one by one; a directory's own size and times only
		// repeat that, and change when something left out of a listing does.
		stamp = stamp.Timeless()
	}
	_, _ = s.hash.WriteString(name)
	_ = s.hash.WriteByte(0)
	maphash.WriteComparable(&s.hash, stamp)
}

// entries sums a directory and returns its subdirectories.
func (s *summer) entries(dir string) []string {
	s.dirs = append(s.dirs, dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.add("unreadable", nil)
	}
	var below []string
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			info = nil
		}
		s.add(entry.Name(), info)
		if entry.IsDir() {
			below = append(below, filepath.Join(dir, entry.Name()))
		}
	}
	return below
}

func (s *summer) tree(dir string) {
	for _, below := range s.entries(dir) {
		s.tree(below)
	}
}

// plugin sums what a listing is made of. Links are followed as far as they stay
// in the plugin: a listing reads through them.
func (s *summer) plugin(dir string, named []string) {
	s.add(dir, nil)
	s.entries(dir)
	for _, f := range formats() {
		s.target(dir, filepath.Join(dir, filepath.FromSlash(f.manifest)))
		if holder := path.Dir(f.manifest); holder != "." {
			if resolved, ok := s.target(dir, filepath.Join(dir, holder)); ok {
				s.entries(resolved)
			}
		}
	}
	for _, name := range append([]string{serversFile, dotFile}, named...) {
		if resolved, isDir := s.target(dir, filepath.Join(dir, filepath.FromSlash(name))); resolved != "" && !isDir {
			s.dirs = append(s.dirs, filepath.Dir(resolved))
		} else if isDir {
			s.skills(dir, resolved)
		}
	}
	if skills, ok := s.target(dir, filepath.Join(dir, skillsDir)); ok {
		s.skills(dir, skills)
	}
}

// skills sums a folder of skills of the plugin in dir.
func (s *summer) skills(dir, skills string) {
	s.entries(skills)
	entries, _ := os.ReadDir(skills)
	for _, entry := range entries {
		if skill, ok := s.target(dir, filepath.Join(skills, entry.Name())); ok {
			s.entries(skill)
			s.target(dir, filepath.Join(skill, skillFile))
		}
	}
}

// target sums what a path leads to, if that is inside the plugin, and reports
// whether it is a directory.
func (s *summer) target(dir, path string) (resolved string, isDir bool) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	if inside, err := filepath.Rel(dir, resolved); err != nil || !filepath.IsLocal(inside) {
		return "", false
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", false
	}
	s.add(resolved, info)
	if holder := filepath.Dir(resolved); !info.IsDir() && resolved != path {
		s.dirs = append(s.dirs, holder)
	}
	return resolved, info.IsDir()
}
