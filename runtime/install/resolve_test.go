package install

import (
	"testing"

	"sallyport/internal/coded"
)

func TestAnExactVersionIsNotAskedFor(t *testing.T) {
	i := &Installer{config: Config{Staging: t.TempDir()}, active: map[string]bool{}}
	if got, err := i.ExactVersion(t.Context(), "pkg", "1.2.3"); got != "1.2.3" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for name, c := range map[string]struct{ name, wanted string }{
		"an option as a version": {"pkg", "--registry=x"}, "an address as a version": {"pkg", "https://x"},
		"an option as a name": {"--help", "1"}, "a path as a name": {"../x", ""},
	} {
		if got, err := i.ExactVersion(t.Context(), c.name, c.wanted); coded.Of(err) != "npm-version-unknown" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestTheAnswerOfNpmView(t *testing.T) {
	for said, want := range map[string]string{
		`"1.2.3"`: "1.2.3", `["1.0.0","1.2.0"]`: "1.2.0", `[]`: "", ``: "", `{"error":{}}`: "", `"1.2.3"x`: "",
	} {
		if got := lastVersion(said); got != want {
			t.Errorf("%q says %q, want %q", said, got, want)
		}
	}
}
