package artifact

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func someLeaves() []Leaf {
	return []Leaf{
		{Path: "a", Kind: KindDir},
		{Path: "a-b", Kind: KindFile, Mode: 0o100, Size: 3, Sum: [32]byte{1, 2}},
		{Path: "a/b", Kind: KindFile, Size: 1 << 40, Sum: [32]byte{3}},
		{Path: "a/bc", Kind: KindLink, Target: "../a-b"},
		{Path: "décembre", Kind: KindFile, Mode: 0o7100},
	}
}

func TestLeavesComeBack(t *testing.T) {
	for _, leaves := range [][]Leaf{{}, someLeaves()} {
		got, err := DecodeLeaves(EncodeLeaves(leaves))
		if err != nil || !slices.Equal(got, leaves) {
			t.Errorf("got %v, %v", got, err)
		}
		if DigestOf(got) != DigestOf(leaves) {
			t.Error("another digest")
		}
	}
}

func TestLeavesThatNoTreeHasAreRefused(t *testing.T) {
	sum := [32]byte{1}
	tests := map[string][]Leaf{
		"out of order":           {{Path: "b", Kind: KindDir}, {Path: "a", Kind: KindDir}},
		"twice":                  {{Path: "a", Kind: KindDir}, {Path: "a", Kind: KindDir}},
		"an absolute path":       {{Path: "/a", Kind: KindDir}},
		"a path upwards":         {{Path: "../a", Kind: KindDir}},
		"a path not clean":       {{Path: "a//b", Kind: KindDir}},
		"dot dot":                {{Path: "..", Kind: KindDir}},
		"a path decomposed":      {{Path: "de\u0301cembre", Kind: KindDir}},
		"a path not UTF-8":       {{Path: "a\xff", Kind: KindDir}},
		"a NUL":                  {{Path: "a\x00", Kind: KindDir}},
		"a path too long":        {{Path: strings.Repeat("a", maxPath+1), Kind: KindDir}},
		"a path too deep":        {{Path: strings.Repeat("a/", maxDepth) + "a", Kind: KindDir}},
		"an unknown kind":        {{Path: "a", Kind: 'x'}},
		"bits that do not count": {{Path: "a", Kind: KindFile, Mode: 0o644, Sum: sum}},
		"an empty link":          {{Path: "a", Kind: KindLink}},
		"no path":                {{Path: "", Kind: KindDir}},
	}
	for name, leaves := range tests {
		if got, err := DecodeLeaves(EncodeLeaves(leaves)); err == nil {
			t.Errorf("%s: accepted as %v", name, got)
		}
	}
	good := EncodeLeaves(someLeaves())
	for i := range good {
		if got, err := DecodeLeaves(good[:i]); err == nil {
			t.Errorf("cut at %d: accepted as %v", i, got)
		}
	}
	if _, err := DecodeLeaves(append(good, 0)); err == nil {
		t.Error("accepted with a byte more")
	}
}

func FuzzDecodeLeaves(f *testing.F) {
	f.Add(EncodeLeaves(nil))
	f.Add(EncodeLeaves(someLeaves()))
	f.Add([]byte(leavesMagic + "\x01d\x00\x01a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		leaves, err := DecodeLeaves(data)
		if err != nil {
			return
		}
		if again := EncodeLeaves(leaves); !bytes.Equal(again, data) {
			t.Fatalf("decodes to %v, which encodes to %q", leaves, again)
		}
	})
}

func FuzzDecodeCache(f *testing.F) {
	e := cacheEncoder{}
	e.begin("/r", 1)
	f.Add(slices.Clone(e.buf))
	e.dir("a", []*entry{{raw: "b"}, {raw: "c"}})
	f.Add(slices.Clone(e.buf))
	f.Fuzz(func(t *testing.T, body []byte) {
		e := cacheEncoder{buf: body}
		r := &reuse{}
		if r.decode(e.end(), "/r") != nil {
			return
		}
		for _, dir := range r.dirs { // whatever is accepted can be searched
			for i := range dir.len() {
				dir.find(dir.name(i))
				dir.identity(i, r.dev)
				dir.sum(i)
			}
		}
	})
}

func TestCompare(t *testing.T) {
	old := someLeaves()
	new := someLeaves()
	new[1].Mode = 0
	new[2].Sum[0]++
	new[3] = Leaf{Path: "a/bc", Kind: KindDir}
	new[4].Path = "e"
	type row struct {
		path string
		kind ChangeKind
	}
	var got []row
	for _, c := range Compare(old, new) {
		got = append(got, row{c.Path, c.Kind})
	}
	want := []row{{"a-b", ModeChanged}, {"a/b", Modified}, {"a/bc", Modified}, {"décembre", Removed}, {"e", Added}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if changes := Compare(old, someLeaves()); changes != nil {
		t.Errorf("got %v for equal trees", changes)
	}
}

func TestDigestForms(t *testing.T) {
	good := "a1:" + strings.Repeat("0f", 32)
	if d := Digest(good); !d.Valid() || d.Short() != "a1:0f0f…0f" {
		t.Errorf("%q: valid is %v, short is %q", d, d.Valid(), d.Short())
	}
	bad := []string{"", "a1:", "a2:" + good[3:], good + "0", good[:66], strings.ToUpper(good), "a1:" + strings.Repeat("0g", 32), " " + good}
	for _, s := range bad {
		if Digest(s).Valid() {
			t.Errorf("accepted %q", s)
		}
	}
	if d, ok := digestOfFolder(Digest(good).folder()); !ok || string(d) != good {
		t.Errorf("folder name gives %q", d)
	}
}
