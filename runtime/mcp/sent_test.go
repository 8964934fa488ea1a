package mcp

import "testing"

// TestSentSum reads: the sum of these params is that of the plain call, or not.
func TestSentSum(t *testing.T) {
	plain, err := SentSum([]byte(`{"name":"add","arguments":{"n":1},"_meta":{"progressToken":1}}`))
	if err != nil || len(plain) != len("sha256:")+64 {
		t.Fatal(plain, err)
	}
	for _, row := range []struct {
		name, params string
		same         bool
	}{
		{"another token of the agent's", `{"name":"add","arguments":{"n":1},"_meta":{"progressToken":"xyz"}}`, true},
		{"one byte of an argument", `{"name":"add","arguments":{"n":2},"_meta":{"progressToken":1}}`, false},
		{"a space", `{"name":"add", "arguments":{"n":1},"_meta":{"progressToken":1}}`, false},
		{"no token", `{"name":"add","arguments":{"n":1},"_meta":{}}`, false},
		{"a token that is none, and is sent as it is", `{"name":"add","arguments":{"n":1},"_meta":{"progressToken":{}}}`, false},
		{"a token without a value", `{"name":"add","arguments":{"n":1},"_meta":{"progressToken":null}}`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := SentSum([]byte(row.params))
			if err != nil || (got == plain) != row.same {
				t.Errorf("%s (%v)", got, err)
			}
		})
	}
	for _, params := range []string{`[]`, `{"_meta":{"progressToken":1,"progressToken":2}}`, `{"a":`} {
		if _, err := SentSum([]byte(params)); err == nil {
			t.Errorf("%s has a sum", params)
		}
	}
	if _, err := SentSum(nil); err != nil {
		t.Error(err)
	}
}
