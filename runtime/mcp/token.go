package mcp

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// A progress token is chosen by an agent, and two agents may choose the same. On
// the way to the server each call's token is replaced by the call's own id, and on
// the way back by the agent's bytes again; nothing else is touched.

// findToken checks the params of a call (sound JSON, an object) and finds the
// value of _meta.progressToken; from equals to where there is none.
func findToken(params []byte) (from, to int, err error) {
	if !utf8.Valid(params) {
		return 0, 0, invalidParams("the parameters are not UTF-8")
	}
	var scan scanner
	scan.reset(params)
	metaFrom, metaTo, twice := 0, 0, false
	sound := scan.members(func(name []byte, start, end int) bool {
		exact, variant := spelled(name, "_meta")
		twice = twice || variant || exact && metaTo > 0
		if exact {
			metaFrom, metaTo = start, end
		}
		return true
	})
	if !sound || !scan.end() {
		return 0, 0, invalidParams("the parameters are not a JSON object")
	}
	if metaTo > 0 && params[metaFrom] == '{' {
		scan.reset(params[metaFrom:metaTo])
		scan.members(func(name []byte, start, end int) bool {
			exact, variant := spelled(name, "progressToken")
			twice = twice || variant || exact && to > 0
			if exact {
				from, to = metaFrom+start, metaFrom+end
			}
			return true
		})
	}
	if twice {
		return 0, 0, invalidParams("_meta or its progressToken is there twice or in two spellings")
	}
	if to > from && !isToken(params[from]) {
		from, to = 0, 0
	}
	return from, to, nil
}

// tokenOf finds the token of a notifications/progress that the server sent.
func tokenOf(params []byte) (id int64, from, to int, ok bool) {
	var scan scanner
	scan.reset(params)
	scan.members(func(name []byte, start, end int) bool {
		if string(name) == "progressToken" {
			from, to = start, end
		}
		return true
	})
	if to == 0 || !isToken(params[from]) {
		return 0, 0, 0, false
	}
	id, err := strconv.ParseInt(string(bytes.Trim(params[from:to], `"`)), 10, 64)
	return id, from, to, err == nil
}

func isToken(first byte) bool {
	return first == '"' || first == '-' || '0' <= first && first <= '9'
}

func invalidParams(sentence string) error {
	return &RPCError{Code: codeInvalidParams, Message: sentence}
}

// splice returns a copy of raw with the bytes between from and to replaced.
func splice(raw []byte, from, to int, with []byte) []byte {
	out := make([]byte, 0, len(raw)-(to-from)+len(with))
	return append(append(append(out, raw[:from]...), with...), raw[to:]...)
}
