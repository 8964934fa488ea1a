package jcs

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
)

// RFC 8785 appendix B: the bits of a double and how it is written.
var numberVectors = []struct {
	bits uint64
	want string
}{
	{0x0000000000000000, "0"},
	{0x8000000000000000, "0"},
	{0x0000000000000001, "5e-324"},
	{0x8000000000000001, "-5e-324"},
	{0x7fefffffffffffff, "1.7976931348623157e+308"},
	{0xffefffffffffffff, "-1.7976931348623157e+308"},
	{0x4340000000000000, "9007199254740992"},
	{0xc340000000000000, "-9007199254740992"},
	{0x4430000000000000, "295147905179352830000"},
	{0x44b52d02c7e14af5, "9.999999999999997e+22"},
	{0x44b52d02c7e14af6, "1e+23"},
	{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
	{0x444b1ae4d6e2ef4e, "999999999999999700000"},
	{0x444b1ae4d6e2ef4f, "999999999999999900000"},
	{0x444b1ae4d6e2ef50, "1e+21"},
	{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
	{0x3eb0c6f7a0b5ed8d, "0.000001"},
	{0x41b3de4355555553, "333333333.3333332"},
	{0x41b3de4355555554, "333333333.33333325"},
	{0x41b3de4355555555, "333333333.3333333"},
	{0x41b3de4355555556, "333333333.3333334"},
	{0x41b3de4355555557, "333333333.33333343"},
	{0xbecbf647612f3696, "-0.0000033333333333333333"},
	{0x43143ff3c1cb0959, "1424953923781206.2"},
}

func TestNumbersAreWrittenAsRFC8785AppendixB(t *testing.T) {
	for _, v := range numberVectors {
		text := strconv.FormatFloat(math.Float64frombits(v.bits), 'e', 20, 64)
		got, err := Canonical([]byte(text))
		if err != nil || string(got) != v.want {
			t.Errorf("%016x (%s): got %s, %v; want %s", v.bits, text, got, err, v.want)
		}
	}
}

func TestCanonicalVectors(t *testing.T) {
	for _, v := range []struct{ name, in, want string }{
		{"RFC 8785 3.2.2, the whole example",
			`{ "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			   "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
			   "literals": [null, true, false] }`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"RFC 8785 3.2.3, names sort by UTF-16 unit and not by code point",
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"},
		{"control characters have the short escape where there is one",
			`"\u0000\u0008\u0009\u000a\u000b\u000c\u000d\u001f\u007f"`, "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\u007f\""},
		{"line separators and HTML are not escaped", `"\u2028\u2029\u003c\u0026\/"`, "\"\u2028\u2029<&/\""},
		{"nothing is normalised: a composed and a combining letter stay apart", `["\u00e5","a\u030a"]`, "[\"å\",\"a\u030a\"]"},
		{"names sort inside nested objects, arrays keep their order",
			`{"b":[{"z":1,"a":2},3,1],"a":{"y":{},"x":[]}}`, `{"a":{"x":[],"y":{}},"b":[{"a":2,"z":1},3,1]}`},
		{"white space goes", " \t\r\n[ 1 ,\n2 ] ", `[1,2]`},
		{"the empty name sorts first", `{"a":1,"":2}`, `{"":2,"a":1}`},
		{"a scalar is a value", `"x"`, `"x"`},
	} {
		got, err := Canonical([]byte(v.in))
		if err != nil || string(got) != v.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", v.name, got, err, v.want)
		}
	}
}

func TestWhatHasNoSingleReadingIsRefused(t *testing.T) {
	for _, v := range []struct{ name, in string }{
		{"nothing", ``},
		{"only white space", ` `},
		{"a repeated key", `{"a":1,"a":1}`},
		{"a repeated key, spelled with an escape", `{"a":1,"\u0061":2}`},
		{"a repeated key deep down", `[{"b":{"a":1,"a":2}}]`},
		{"broken UTF-8", "\"\xff\""},
		{"an overlong encoding", "\"\xc0\xaf\""},
		{"a surrogate in UTF-8", "\"\xed\xa0\x80\""},
		{"a lone high surrogate", `"\ud83d"`},
		{"a lone low surrogate", `"\ude00"`},
		{"surrogates in the wrong order", `"\ude00\ud83d"`},
		{"a lone surrogate in a name", `{"\ud800":1}`},
		{"a second value behind the first (C79)", `{"a":1}{"b":2}`},
		{"the tail of an older, longer file (C79)", `{"a":1}tale":true}}`},
		{"a value cut short", `{"a":[1`},
		{"a number that overflows", `{"a":1e400}`},
		{"a number that overflows downwards", `-1e400`},
		{"a byte order mark", "\ufeff{}"},
		{"NaN", `NaN`},
		{"a leading zero", `01`},
		{"a comment", `{} // x`},
		{"a trailing comma", `[1,]`},
	} {
		if got, err := Canonical([]byte(v.in)); err == nil {
			t.Errorf("Canonical took %s and gave %s", v.name, got)
		}
		if err := Exact([]byte(v.in)); err == nil {
			t.Errorf("Exact took %s", v.name)
		}
	}
}

func TestExact(t *testing.T) {
	for _, v := range []struct {
		in   string
		want error
	}{
		{`0`, nil}, {`-0`, nil}, {`0.0`, nil}, {`0e999999999999999999999`, nil}, {`1`, nil}, {`-1.5`, nil},
		{`0.1`, nil}, {`3.14`, nil}, {`0.30000000000000004`, nil}, {`1.10`, nil}, {`1e2`, nil}, {`1E-7`, nil},
		{`9007199254740991`, nil},
		{`9007199254740992`, nil},
		{`9007199254740993`, ErrInexact},
		{`-9007199254740993`, ErrInexact},
		{`9007199254740994`, nil},
		{`9007199254740993.0`, ErrInexact},
		{`9007199254740993e0`, ErrInexact},
		{`90071992547409930e-1`, ErrInexact},
		{`9223372036854775807`, ErrInexact},
		{`9223372036854775808`, nil},
		{`18446744073709551615`, ErrInexact},
		{`18446744073709551616`, nil},
		{`18446744073709552000`, ErrInexact},
		{`1.8446744073709552e19`, nil},
		{`1e23`, nil},
		{`100000000000000000000000`, ErrInexact},
		{`1.7976931348623157e308`, nil},
		{`3.4028234663852886e38`, nil},
		{`1e400`, ErrRange}, {`-1e400`, ErrRange}, {`1e99999999999999999999`, ErrRange},
		{`1e-400`, ErrInexact}, {`1e-99999999999999999999`, ErrInexact},
		{`1.5e-99999999999999999999`, ErrInexact}, {`-1.5e-9223372036854775808`, ErrInexact}, {`0.00e-9223372036854775808`, nil},
		{`0.` + strings.Repeat("0", 400) + `1e401`, nil},
		{`5e-324`, nil},
		{`0.10000000000000000001`, ErrInexact},
		{`3.14159265358979323846`, ErrInexact},
		{strings.Repeat("9", 400), ErrRange},
		{"1" + strings.Repeat("0", 308), ErrInexact},
	} {
		for _, doc := range []string{v.in, `{"a":[` + v.in + `]}`} {
			if err := Exact([]byte(doc)); !errors.Is(err, v.want) || (err == nil) != (v.want == nil) {
				t.Errorf("Exact(%.40s) = %v, want %v", doc, err, v.want)
			}
		}
	}
}

func TestMarshalRefusesStringsThatAreNotUTF8(t *testing.T) {
	for _, bad := range []any{"\xff", []string{"a\xc3"}, map[string]int{"\xff": 1}, struct{ A string }{`\` + "\xff"}} {
		if got, err := Marshal(bad); err == nil {
			t.Errorf("Marshal(%q) = %s", bad, got)
		}
	}
	for in, want := range map[string]string{
		"\ufffd":                    "\"\ufffd\"",
		`\ufffd`:                    `"\\ufffd"`,
		"<a href=\"x\">&\u2028</a>": "\"<a href=\\\"x\\\">&\u2028</a>\"",
	} {
		if got, err := Marshal(in); err != nil || string(got) != want {
			t.Errorf("Marshal(%q) = %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestSumIsThePrefixAndTheHexOfTheCanonicalForm(t *testing.T) {
	a, err := Sum("x1:", map[string]any{"b": 1, "a": []int{}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Sum("x1:", json.RawMessage(` {"a":[], "b":1.0} `))
	if err != nil {
		t.Fatal(err)
	}
	if a != b || !strings.HasPrefix(a, "x1:") || len(a) != len("x1:")+64 {
		t.Errorf("got %s and %s", a, b)
	}
	// printf '{}' | sha256sum
	if got, _ := Sum("", struct{}{}); got != "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" {
		t.Errorf("sum of {} is %s", got)
	}
}

func TestCanonicalLeavesItsArgumentAlone(t *testing.T) {
	raw := []byte(`{"b":1, "a":2}`)
	before := bytes.Clone(raw)
	if _, err := Canonical(raw); err != nil || !bytes.Equal(raw, before) {
		t.Errorf("argument is now %s, %v", raw, err)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, v := range numberVectors {
		f.Add([]byte(v.want))
	}
	f.Add([]byte(`{"b":[1,2.50,{"z":null,"a":"\u00e9\ud83d\ude00"}],"a":1e21}`))
	f.Add([]byte(`{"a":1}tale":true}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		exact := Exact(raw)
		once, err := Canonical(raw)
		if err != nil {
			if exact == nil {
				t.Fatalf("exact but not canonical: %v", err)
			}
			if !json.Valid(raw) {
				return
			}
			return
		}
		twice, err := Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("canonical of canonical differs: %s, %s, %v", once, twice, err)
		}
		// An equal value, spelled as encoding/json spells it, gives equal bytes.
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			t.Fatalf("encoding/json refuses what we took: %v", err)
		}
		again, err := Marshal(value)
		if err != nil || !bytes.Equal(once, again) {
			t.Fatalf("equal values, different bytes:\n%s\n%s, %v", once, again, err)
		}
	})
}
