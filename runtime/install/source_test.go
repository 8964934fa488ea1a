package install

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/coded"
)

func asCoded(err error) *coded.Error {
	var e *coded.Error
	errors.As(err, &e)
	return e
}

func TestSources(t *testing.T) {
	cwd := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(cwd, "demo"), 0o755))
	must(t, os.MkdirAll(filepath.Join(cwd, "odd#name"), 0o755))
	for _, name := range []string{"a.mcpb", "a.DXT", "a.zip", "a.tar.gz", "a.tgz", "a.txt"} {
		must(t, os.WriteFile(filepath.Join(cwd, name), nil, 0o644))
	}
	hash := strings.Repeat("0123456789", 4)
	long := strings.Repeat("0123456789abcdef", 4)
	in := func(kind Kind, path string) Source { return Source{Kind: kind, Path: filepath.Join(cwd, path)} }
	commit := func(path, hash string) Source {
		s := in(Git, path)
		s.Commit = hash
		return s
	}
	tests := []struct {
		text string
		want Source
		code string
	}{
		{"demo", in(Folder, "demo"), ""},
		{" ./demo/ ", in(Folder, "demo"), ""},
		{filepath.Join(cwd, "demo"), in(Folder, "demo"), ""},
		{"odd#name", in(Folder, "odd#name"), ""},
		{"a.mcpb", in(Archive, "a.mcpb"), ""},
		{"a.DXT", in(Archive, "a.DXT"), ""},
		{"a.zip", in(Archive, "a.zip"), ""},
		{"a.tar.gz", in(Archive, "a.tar.gz"), ""},
		{"a.tgz", in(Archive, "a.tgz"), ""},
		{"demo#" + hash, commit("demo", hash), ""},
		{"demo#" + long, commit("demo", long), ""},
		{"git+file:///srv/my%20repo#" + hash, Source{Kind: Git, Path: "/srv/my repo", Commit: hash}, ""},
		{"npm:demo@1.2.3", Source{Kind: NPM, Name: "demo", Version: "1.2.3"}, ""},
		{"npm:@scope/demo@1.2.3-beta.1", Source{Kind: NPM, Name: "@scope/demo", Version: "1.2.3-beta.1"}, ""},

		{"", Source{}, "source-unknown"},
		{"missing", Source{}, "source-unknown"},
		{"missing.zip", Source{}, "source-unknown"},
		{"a.txt", Source{}, "source-unknown"},
		{"demo\x00", Source{}, "source-unknown"},
		{"demo#main", Source{}, "source-commit-floating"},
		{"demo#" + hash[:39], Source{}, "source-commit-floating"},
		{"demo#" + strings.ToUpper(long), Source{}, "source-commit-floating"},
		{"demo#--upload-pack=x", Source{}, "source-commit-floating"},
		{"git+file:///srv/repo", Source{}, "source-commit-floating"},
		{"git+file:///srv/repo#main", Source{}, "source-commit-floating"},
		{"git+file://srv#" + hash, Source{}, "source-unknown"},
		{"npm:demo", Source{}, "source-version-floating"},
		{"npm:demo@latest", Source{}, "source-version-floating"},
		{"npm:demo@^1.2.3", Source{}, "source-version-floating"},
		{"npm:demo@1", Source{}, "source-version-floating"},
		{"npm:demo@1.2", Source{}, "source-version-floating"},
		{"npm:demo@1.2.x", Source{}, "source-version-floating"},
		{"npm:demo@1.2.3 || 2.0.0", Source{}, "source-version-floating"},
		{"npm:demo@npm:other@1.2.3", Source{}, "npm-name-invalid"},
		{"npm:@scope/demo", Source{}, "source-version-floating"},
		{"npm:", Source{}, "npm-name-invalid"},
		{"npm:Demo@1.2.3", Source{}, "npm-name-invalid"},
		{"npm:--global@1.2.3", Source{Kind: NPM, Name: "--global", Version: "1.2.3"}, ""}, // never an argument: it stands in package.json
		{"npm:../demo@1.2.3", Source{}, "npm-name-invalid"},
		{"npm:./demo@1.2.3", Source{}, "npm-name-invalid"},
		{"npm:a/b/c@1.2.3", Source{}, "npm-name-invalid"},
		{"https://example.org/a.mcpb", Source{}, "source-remote"},
		{"http://example.org/a.zip", Source{}, "source-remote"},
		{"git+https://example.org/a.git#" + hash, Source{}, "source-remote"},
		{"git+ssh://git@example.org/a.git", Source{}, "source-remote"},
		{"git@example.org:a/b.git", Source{}, "source-remote"},
		{"github:a/b", Source{}, "source-remote"},
		{"ext::sh -c date", Source{}, "source-unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ParseSource(tt.text, cwd)
			if got != tt.want || coded.Of(err) != tt.code {
				t.Errorf("got %+v, %q (%v)\nwant %+v, %q", got, coded.Of(err), err, tt.want, tt.code)
			}
			if e := asCoded(err); e != nil && e.Next == "" {
				t.Error("it does not say what to do")
			}
		})
	}
}

func FuzzParseSource(f *testing.F) {
	for _, text := range []string{"npm:@a/b@1.2.3", "git+file:///x#" + strings.Repeat("a", 40), "x#" + strings.Repeat("a", 40), "/a.zip", "https://x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSource(text, "/nonexistent")
		if err != nil {
			return
		}
		switch s.Kind {
		case NPM:
			if strings.ContainsAny(s.Name+s.Version, " \t\n\"'\\$;") || strings.Contains(s.Name, "..") && strings.Contains(s.Name, "../") {
				t.Errorf("%q is %+v", text, s)
			}
		case Git:
			if !filepath.IsAbs(s.Path) || !fullHash.MatchString(s.Commit) {
				t.Errorf("%q is %+v", text, s)
			}
		default:
			if !filepath.IsAbs(s.Path) {
				t.Errorf("%q is %+v", text, s)
			}
		}
	})
}
