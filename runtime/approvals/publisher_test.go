package approvals_test

import (
	"testing"

	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/plugins"
)

// A signature is of the bytes that were installed: a tree that was edited in place is
// nobody's, and says so.
func TestAnEditedTreeHasNoPublisher(t *testing.T) {
	r := approvalstest.New(t)
	signed := r.Ask().Fields.Artifact
	r.Edit(func(c *plugins.Connector) { c.Publisher, c.SignedTree = `sha256:1 "Jane"`, signed })
	if got := r.Ask().Fields.Publisher; got != `sha256:1 "Jane"` {
		t.Fatalf("what was signed is by %q", got)
	}
	if seen, err := r.Gate.Review(t.Context(), r.ID); err != nil || seen.Publisher != `sha256:1 "Jane"` {
		t.Errorf("the review says it is by %q, %v", seen.Publisher, err)
	}
	r.Approve(offer, "read_notes")
	r.Write("server.js", "// edited\n", 0o644)
	if got := r.Ask().Fields.Publisher; got != "" {
		t.Errorf("what was edited is by %q", got)
	}
	var codes []string
	for _, change := range r.Gate.Status(t.Context(), r.ID).Changes {
		codes = append(codes, change.Code)
	}
	if len(codes) != 2 || codes[0] != "publisher-changed" || codes[1] != "artifact-changed" {
		t.Errorf("the reasons are %q", codes)
	}
}
