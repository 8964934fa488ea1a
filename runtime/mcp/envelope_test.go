package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// Clause 4: what is a message, and its parts byte for byte.
func TestEnvelopePartsAreTheBytesOfTheFrame(t *testing.T) {
	for _, row := range []struct {
		name, frame                       string
		kind                              Kind
		id, method, params, result, fault string
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, Request, `1`, "ping", "", "", ""},
		{"string id", `{"jsonrpc":"2.0","id":"init-1","method":"ping"}`, Request, `"init-1"`, "ping", "", "", ""},
		{"a large number as id", `{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}`, Request, `9007199254740993`, "m", "", "", ""},
		{"a negative id", `{"jsonrpc":"2.0","id":-5,"method":"m"}`, Request, `-5`, "m", "", "", ""},
		{"notification", `{"jsonrpc":"2.0","method":"window/logMessage","params":{}}`, Notification, "", "window/logMessage", "{}", "", ""},
		{"null parameters", `{"jsonrpc":"2.0","method":"n","params":null}`, Notification, "", "n", "null", "", ""},
		{"escaped method", `{"jsonrpc":"2.0","method":"\u0070ing"}`, Notification, "", "ping", "", "", ""},
		{"result", `{"id":1,"result":{"b":1.0,"a":1e400,"n":9007199254740993},"jsonrpc":"2.0"}`, Response, `1`, "", "", `{"b":1.0,"a":1e400,"n":9007199254740993}`, ""},
		{"null result", `{"jsonrpc":"2.0","id":1,"result":null}`, Response, "1", "", "", "null", ""},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}`, Response, "1", "", "", "", `{"code":-1,"message":"no"}`},
		{"error with a null id", `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}`, Orphan, "", "", "", "", `{"code":-1,"message":"no"}`},
		{"C07: error without an id", `{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}`, Orphan, "", "", "", "", `{"code":-32601,"message":"no"}`},
		{"white space everywhere", " {\t\"jsonrpc\" : \"2.0\" , \"id\" : 1 , \"result\" : [ 1 , { } ] } \r", Response, "1", "", "", "[ 1 , { } ]", ""},
		{"C17: NUL as an escape inside a value", `{"jsonrpc":"2.0","id":1,"result":"\u0000"}`, Response, "1", "", "", `"\u0000"`, ""},
		{"C12: a lone surrogate passes as it is", `{"jsonrpc":"2.0","id":1,"result":"\ud800x"}`, Response, "1", "", "", `"\ud800x"`, ""},
		{"C11: U+FEFF inside a string stays", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\uFEFF\"}", Response, "1", "", "", "\"\uFEFF\"", ""},
		{"unknown keys are passed over", `{"jsonrpc":"2.0","id":1,"result":1,"x":{},"x":[]}`, Response, "1", "", "", "1", ""},
		{"duplicate keys inside a result are not ours to judge", `{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`, Response, "1", "", "", `{"a":1,"a":2}`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			e, err := new(Parser).Parse([]byte(row.frame))
			if err != nil {
				t.Fatal(err)
			}
			got := []string{string(e.ID), string(e.Method), string(e.Params), string(e.Result), string(e.Error)}
			if want := []string{row.id, row.method, row.params, row.result, row.fault}; e.Kind != row.kind || !reflect.DeepEqual(got, want) {
				t.Errorf("kind %d %q, want %d %q", e.Kind, got, row.kind, want)
			}
		})
	}
}

func TestEnvelopeRefuses(t *testing.T) {
	for _, row := range []struct{ name, frame, code string }{
		{"invalid UTF-8 in a string", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xC3\x28\"}", InvalidUTF8},
		{"C12: CP949 text", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xB0\xA1\"}", InvalidUTF8},
		{"a lone FF", "\xFF", InvalidUTF8},
		{"a surrogate in UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xED\xA0\x80\"}", InvalidUTF8},
		{"a log line", "Server version : 1.2.3", MalformedJSON},
		{"a cut message", `{"jsonrpc":"2.0","id":1,"resu`, MalformedJSON},
		{"trailing junk", `{"jsonrpc":"2.0","id":1,"result":1} x`, MalformedJSON},
		{"two messages in a line", `{"jsonrpc":"2.0","id":1,"result":1}{"jsonrpc":"2.0","id":2,"result":1}`, MalformedJSON},
		{"C17: raw NUL in a string", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\x00\"}", MalformedJSON},
		{"C17: every second byte NUL", "{\x00\"\x00j\x00", MalformedJSON},
		{"a comment", `{"jsonrpc":"2.0",/**/"id":1,"result":1}`, MalformedJSON},
		{"a trailing comma", `{"jsonrpc":"2.0","id":1,"result":1,}`, MalformedJSON},
		{"NaN", `{"jsonrpc":"2.0","id":1,"result":NaN}`, MalformedJSON},
		{"C16: first line of pretty-printed JSON", `{`, MalformedJSON},
		{"C16: a batch", `[{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`, InvalidMessage},
		{"C16: an empty batch", `[]`, InvalidMessage},
		{"C16: a number", `42`, InvalidMessage},
		{"C16: version 1.0", `{"jsonrpc":"1.0","id":4,"method":"ping"}`, InvalidMessage},
		{"C16: no version", `{"id":5,"method":"ping"}`, InvalidMessage},
		{"a number as version", `{"jsonrpc":2.0,"id":5,"method":"ping"}`, InvalidMessage},
		{"something else", `{"hello":"world"}`, InvalidMessage},
		{"a key twice", `{"jsonrpc":"2.0","id":1,"id":2,"result":1}`, InvalidMessage},
		{"a key in other case", `{"jsonrpc":"2.0","id":1,"Result":1}`, InvalidMessage},
		{"a key in other case beside the key", `{"jsonrpc":"2.0","id":1,"result":1,"RESULT":2}`, InvalidMessage},
		{"a key with a folded letter", `{"jsonrpc":"2.0","id":1,"reſult":1}`, InvalidMessage},
		{"a key written with an escape", `{"jsonrpc":"2.0","id":1,"\u0072esult":1}`, InvalidMessage},
		{"a key with NUL", `{"jsonrpc":"2.0","id":1,"result":1,"x\u0000":1}`, InvalidMessage},
		{"id true", `{"jsonrpc":"2.0","id":true,"method":"m"}`, InvalidMessage},
		{"id object", `{"jsonrpc":"2.0","id":{},"result":1}`, InvalidMessage},
		{"a request with a null id", `{"jsonrpc":"2.0","id":null,"method":"m"}`, InvalidMessage},
		{"a result with a null id", `{"jsonrpc":"2.0","id":null,"result":1}`, InvalidMessage},
		{"a result without an id", `{"jsonrpc":"2.0","result":1}`, InvalidMessage},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`, InvalidMessage},
		{"neither", `{"jsonrpc":"2.0","id":1}`, InvalidMessage},
		{"a method and a result", `{"jsonrpc":"2.0","id":1,"method":"m","result":1}`, InvalidMessage},
		{"parameters of a result", `{"jsonrpc":"2.0","id":1,"params":{},"result":1}`, InvalidMessage},
		{"a method that is no string", `{"jsonrpc":"2.0","id":1,"method":1}`, InvalidMessage},
		{"parameters that are a string", `{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}`, InvalidMessage},
		{"an error that is a string", `{"jsonrpc":"2.0","id":1,"error":"no"}`, InvalidMessage},
		{"a huge id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 2000) + `","method":"m"}`, InvalidMessage},
		{"deeper than any reader goes", strings.Repeat("[", 20000) + strings.Repeat("]", 20000), MalformedJSON},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := new(Parser).Parse([]byte(row.frame))
			var fault *ProtocolError
			if !errors.As(err, &fault) || fault.Code != row.code {
				t.Errorf("got %v, want %s", err, row.code)
			}
			if fault != nil && len(row.frame) > 12 && strings.Contains(fault.Error(), row.frame) {
				t.Error("the message shows what the server wrote")
			}
		})
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	frame, parser := frameOf(10<<10), new(Parser)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := parser.Parse(frame); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// FuzzEnvelope: what is accepted is sound JSON for encoding/json too, and the
// parts put together again are the same message; what is refused as malformed
// JSON is refused by encoding/json.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,2.5e-3,"\u00e9\\",null,true]}}}`,
		`{"jsonrpc":"2.0","id":"a","result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`,
		`{"jsonrpc":"2.0","id":null,"error":{}}`, `[]`, `{"jsonrpc":"2.0","id":-0.1E+5,"result":-0}`, ` {"jsonrpc" : "2.0" ,"method":"x"} `,
	} {
		f.Add([]byte(seed))
	}
	parser := new(Parser)
	f.Fuzz(func(t *testing.T, frame []byte) {
		e, err := parser.Parse(frame)
		valid := utf8.Valid(frame) && json.Valid(frame)
		if err != nil {
			code := err.(*ProtocolError).Code
			if valid != (code == InvalidMessage) {
				t.Fatalf("%q: %s, and valid JSON is %v", frame, code, valid)
			}
			return
		}
		if !valid {
			t.Fatalf("accepted %q", frame)
		}
		again, err := new(Parser).Parse(join(e))
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%q: %+v became %+v, %v", frame, e, again, err)
		}
		var strict struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  *string         `json:"method"`
			Params  json.RawMessage `json:"params"`
			Result  json.RawMessage `json:"result"`
			Error   json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(frame, &strict); err != nil {
			t.Fatalf("%q: %v", frame, err)
		}
		if strict.Version != "2.0" || !bytes.Equal(strict.Result, e.Result) || !bytes.Equal(strict.Error, e.Error) ||
			e.Kind != Orphan && !bytes.Equal(strict.ID, e.ID) || !bytes.Equal(strict.Params, e.Params) {
			t.Fatalf("%q: %+v, and encoding/json has %+v", frame, e, strict)
		}
	})
}

// join writes an envelope's parts as a message again.
func join(e Envelope) []byte {
	out := []byte(`{"jsonrpc":"2.0"`)
	add := func(key string, raw []byte) {
		if raw != nil {
			out = append(append(out, `,"`+key+`":`...), raw...)
		}
	}
	add("id", e.ID)
	if e.Method != nil {
		method, _ := json.Marshal(string(e.Method))
		add("method", method)
	}
	add("params", e.Params)
	add("result", e.Result)
	add("error", e.Error)
	return append(out, '}')
}

// frameOf returns an answer of about size bytes.
func frameOf(size int) []byte {
	head, tail := `{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":"`, `"}]}}`
	return []byte(head + strings.Repeat("x", max(1, size-len(head)-len(tail))) + tail)
}
