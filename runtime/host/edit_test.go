package host_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sallyport/runtime/approvals"
)

// Whoever edits config.json and asks at once is asked about what it says now, although
// nobody watches the file.
func TestAQuestionRightAfterAnEditOfTheConfiguration(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	h := r.open()
	defer r.close(h)
	if err := os.MkdirAll(r.places.Config, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"FIRST", "SECOND"} {
		r.write(filepath.Join(r.places.Config, "config.json"), `{"connectors":{"fake/main":{"env":{"`+name+`":"one"}}}}`)
		asked, err := h.Ask(t.Context(), id, operator)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(asked.Fields.Env, func(e approvals.Entry) bool { return e.Name == name }) {
			t.Errorf("it asks about %+v", asked.Fields.Env)
		}
	}
}
