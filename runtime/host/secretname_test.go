package host_test

import (
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
)

// A value that is pasted where the name belongs is refused before anything of it
// is on record, and the refusal does not repeat it.
func TestAValueGivenAsANameIsNotKept(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	by := approvals.By{User: "tester", Via: approvals.ViaCLI}
	for _, pasted := range []string{
		"gh" + "p_" + strings.Repeat("a1B2", 9), // a token that would do for a name
		"correct horse battery",                 // no name at all
		"",
	} {
		for what, err := range map[string]error{
			"set":    h.SetSecret(t.Context(), pasted, []byte("x"), by),
			"delete": h.DeleteSecret(t.Context(), pasted, by),
		} {
			if coded.Of(err) != "secret-name-invalid" {
				t.Errorf("%s is %v", what, err)
			}
			if pasted != "" && err != nil && strings.Contains(err.Error(), pasted) {
				t.Errorf("%s repeats what was pasted", what)
			}
		}
	}
	page, err := h.Audit.Query(t.Context(), audit.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range page.Records {
		if record.Action == audit.SecretSet || record.Action == audit.SecretDelete {
			t.Errorf("the audit holds %q", record.Target)
		}
	}
}
