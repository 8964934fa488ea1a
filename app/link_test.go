package app

import (
	"strings"
	"testing"
)

func TestALinkLeadsToAQuestionOrNowhere(t *testing.T) {
	const id = "d-abcdefghijkl2345"
	for link, want := range map[string]string{
		"sallyport://review/" + id:                         "#/review/" + id,
		"sallyport://review/" + id + "/":                   "#/review/" + id,
		"":                                                 "",
		"sallyport://":                                     "",
		"sallyport://settings":                             "",
		"sallyport://review/":                              "#/review",
		"sallyport://review/" + id + "x":                   "",
		"sallyport://review/" + id[:15]:                    "",
		"sallyport://review/d-ABCDEFGHIJKL2345":            "",
		"sallyport://review/" + id + "?answer=allow":       "",
		"sallyport://review/" + id + "#/x":                 "",
		"sallyport://review/" + id + "\n":                  "",
		"sallyport://review/" + id + "';alert(1)//":        "",
		"sallyport://review/../" + id:                      "",
		"sallyport://review/%64-abcdefghijkl2345":          "",
		"SALLYPORT://review/" + id:                         "",
		"https://review/" + id:                             "",
		"sallyport://user@review/" + id:                    "",
		"sallyport://review/" + strings.Repeat("d", 1<<16): "",
	} {
		if got, ok := page(link); got != want || ok != (want != "") {
			t.Errorf("%.60q leads to %q, want %q", link, got, want)
		}
	}
}

func TestWhatOpensTheWindow(t *testing.T) {
	for _, row := range []struct {
		args []string
		want bool
	}{
		{[]string{"sallyport://review/d-abcdefghijkl2345"}, true},
		{[]string{"sallyport://anything"}, true}, // it is shown and goes nowhere
		{nil, false}, {[]string{"serve"}, false}, {[]string{"--help"}, false},
		{[]string{"sallyport://a", "--home"}, false}, {[]string{"--home", "sallyport://a"}, false},
	} {
		if got := IsLink(row.args); got != row.want {
			t.Errorf("%q: %v", row.args, got)
		}
	}
}

func FuzzLink(f *testing.F) {
	f.Add("sallyport://review/d-abcdefghijkl2345")
	f.Add("sallyport://review/d-abcdefghijkl234'")
	f.Fuzz(func(t *testing.T, link string) {
		hash, ok := page(link)
		if ok && hash != "#/review" && (strings.Trim(strings.TrimPrefix(hash, "#/review/d-"), "abcdefghijklmnopqrstuvwxyz234567") != "" || len(hash) != 27) {
			t.Errorf("%q leads to %q", link, hash)
		}
	})
}
