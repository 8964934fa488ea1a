package approvals_test

import (
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
)

// A store that counts has nothing to accept, and nobody's access ends by asking.
func TestAStoreThatCountsIsNotAccepted(t *testing.T) {
	r := approvalstest.New(t)
	token, err := r.Gate.AddClient(t.Context(), "added-since", approvals.Scope{All: true}, operator)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Gate.AcceptRollback(t.Context(), false, operator); coded.Of(err) != "nothing-to-accept" {
		t.Errorf("accepting a store that counts says %v", err)
	}
	if _, ok := r.Gate.ClientByToken(token); !ok {
		t.Error("a client that was there before is gone")
	}
}
