package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

const call1 = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__main__echo","arguments":{}}}`

func TestACallPassesByteForByte(t *testing.T) {
	r := newRig(t, Limits{})
	result := `{"structuredContent":{"n":9007199254740993,"big":1e400,"e":"\u00e9","t":"<>&","z":1,"a":-0.0},"content":[]}`
	r.fake.tools["echo"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
		return json.RawMessage(result), nil
	}
	params := `{ "z":9007199254740993,"name":"demo__main__echo" , "arguments":{"b":1e400,"a":"\u00e9<>&\u0000"},"_meta":{"x":1}}`
	session := r.open("agent", "{}")
	for _, id := range []string{`"init-1"`, `"1"`, `0`, `-5`, `9007199254740993`, `1.50`, `"\u0041"`} {
		answer := r.send("POST", `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":`+params+`}`, session)
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`; answer.body != want || answer.status != 200 {
			t.Errorf("%d %s\nwant %s", answer.status, answer.body, want)
		}
		if kind := answer.header.Get("Content-Type"); kind != jsonType {
			t.Errorf("nothing came before the result, and it is %s", kind)
		}
	}
	want := "demo/main echo " + strings.Replace(params, "demo__main__echo", "echo", 1)
	for _, seen := range r.fake.asked() {
		if seen != want {
			t.Errorf("the server got %s\nwant %s", seen, want)
		}
	}
}
