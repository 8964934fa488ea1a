package fakeserver

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"
)

type callParams struct {
	Name      string `json:"name"`
	Arguments struct {
		MS     int             `json:"ms"`
		Steps  int             `json:"steps"`
		Bytes  int             `json:"bytes"`
		Count  int             `json:"count"`
		N      int             `json:"n"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	} `json:"arguments"`
	Meta struct {
		ProgressToken json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

func text(s string, structured any) object {
	result := object{"content": []any{object{"type": "text", "text": s}}}
	if structured != nil {
		result["structuredContent"] = structured
	}
	return result
}

func (s *server) call(m message) {
	var p callParams
	json.Unmarshal(m.Params, &p)
	switch p.Name {
	case "go":
		s.misbehave(m, p)
	case "echo":
		s.answer(m.ID, json.RawMessage(`{"content":[],"structuredContent":{"params":`+string(m.Params)+`}}`))
	case "env":
		vars := os.Environ()
		sort.Strings(vars)
		s.answer(m.ID, text(strings.Join(vars, "\n"), object{"env": vars}))
	case "args":
		s.answer(m.ID, text(strings.Join(s.args, "\n"), object{"args": s.args}))
	case "pid":
		s.answer(m.ID, text(fmt.Sprint(os.Getpid()), object{"pid": os.Getpid()}))
	case "cwd":
		dir, _ := os.Getwd()
		s.answer(m.ID, text(dir, object{"cwd": dir}))
	case "slow":
		time.Sleep(time.Duration(p.Arguments.MS) * time.Millisecond)
		s.answer(m.ID, text("ok", nil))
	case "progress":
		s.progress(m, p)
	case "big":
		s.answer(m.ID, json.RawMessage(`{"content":[{"type":"text","text":"`+strings.Repeat("x", p.Arguments.Bytes)+`"}]}`))
	case "ask":
		answer := s.ask(p.Arguments.Method, p.Arguments.Params)
		s.answer(m.ID, text("answered", object{"result": orNull(answer.Result), "error": orNull(answer.Error)}))
	case "take-back":
		s.takeBack(m, p)
	case "log":
		for i := range p.Arguments.N {
			s.notify("notifications/message", object{"level": "info", "data": i})
		}
		s.answer(m.ID, text("ok", nil))
	case "change":
		s.mu.Lock()
		s.changes++
		s.mu.Unlock()
		s.answer(m.ID, text("ok", nil))
		s.notify("notifications/tools/list_changed", object{})
	case "fail":
		s.fail(m.ID, -32042, "it failed", json.RawMessage(`{"n":9007199254740993,"f":1.0}`))
	case "hang":
	case "order":
		s.answer(m.ID, order(m.Params))
	default:
		s.fail(m.ID, -32602, "unknown tool", nil)
	}
}

// takeBack asks, takes the question back, and answers.
func (s *server) takeBack(m message, p callParams) {
	s.line([]byte(`{"jsonrpc":"2.0","id":"back","method":` + string(encode(p.Arguments.Method)) + `,"params":{}}`))
	time.Sleep(time.Duration(p.Arguments.MS) * time.Millisecond)
	s.notify("notifications/cancelled", object{"requestId": "back"})
	time.Sleep(time.Duration(p.Arguments.MS) * time.Millisecond)
	s.answer(m.ID, text("ok", nil))
}

func (s *server) progress(m message, p callParams) {
	for i := range p.Arguments.Steps {
		if len(p.Meta.ProgressToken) > 0 {
			s.notify("notifications/progress", object{"progressToken": p.Meta.ProgressToken, "progress": i + 1, "total": p.Arguments.Steps})
		}
	}
	s.answer(m.ID, text("ok", nil))
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// orderTool takes a bit of everything that a schema says, with a name that tries to be
// markup.
const orderTool = `{"name":"order","title":"Order","description":"orders <b>something</b> \u202e and more","inputSchema":{"type":"object",
"required":["name","count"],"additionalProperties":false,"$defs":{"place":{"type":"object","properties":{"street":{"type":"string"},"floor":{"type":"integer"}}}},
"properties":{
"name":{"type":"string","title":"Name <img src=x onerror=alert(1)>","minLength":2,"description":"who orders"},
"count":{"type":"integer","minimum":1},
"size":{"enum":["small","large"],"default":"small"},
"gift":{"type":"boolean"},
"note":{"type":["string","null"]},
"place":{"$ref":"#/$defs/place"},
"tags":{"type":"array","items":{"type":"string"},"maxItems":2},
"kind":{"const":"order"},
"extra":{"oneOf":[{"type":"string"},{"type":"number"}]}}}}`

// order answers with the arguments as they came, in text, in a picture's place and as a
// structure; one by "nobody" fails as a tool does.
func order(params json.RawMessage) json.RawMessage {
	var p struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(params, &p)
	var who struct{ Name string }
	_ = json.Unmarshal(p.Arguments, &who)
	failed := fmt.Sprint(who.Name == "nobody")
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(encode("ordered: "+string(p.Arguments))) +
		`},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"text","text":"` + strings.Repeat("long ", 1000) +
		`"}],"structuredContent":{"ordered":` + string(p.Arguments) + `},"isError":` + failed + `}`)
}
