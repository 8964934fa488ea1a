package audit

import (
	"fmt"
	"testing"
	"time"
)

var typical = Record{
	Action: Call, Result: OK, Actor: "ada", Via: "mcp", Plugin: "everything", Version: "1.2.3", Binding: "main",
	Target: "search_files", Identity: "i1:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	Client: "agent-1", DurationMs: 12,
}

func BenchmarkAppend(b *testing.B) {
	l, _ := newLog(b, Config{})
	for b.Loop() {
		mustAppend(b, l, typical)
	}
}

func BenchmarkAppendWithHeadFile(b *testing.B) {
	l, _ := newLog(b, Config{Head: fileHead(b.TempDir() + "/head")})
	for b.Loop() {
		mustAppend(b, l, typical)
	}
}

func BenchmarkCallGrouped(b *testing.B) {
	l, _ := newLog(b, Config{})
	for b.Loop() {
		l.Call(typical)
	}
	must(b, l.Flush(b.Context()))
}

func BenchmarkHash(b *testing.B) {
	r := newRow(typical)
	r.Prev = genesis
	for b.Loop() {
		r.sum()
	}
}

func BenchmarkQueryLast100Of200k(b *testing.B) {
	l, _ := newLog(b, Config{})
	for i := range 200 {
		for plugin := range 5 {
			r := typical
			r.Plugin, r.Client = fmt.Sprint("plugin", plugin), fmt.Sprint("client", plugin)
			if plugin == 3 && i%20 == 0 {
				r.Reason = "artifact-changed"
			}
			fill(b, l, 200, r)
		}
	}
	for name, f := range map[string]Filter{
		"plugin": {Plugin: "plugin3"}, "client": {Client: "client3"}, "reason": {Reason: "artifact-changed"},
		"plugin and reason": {Plugin: "plugin3", Reason: "artifact-changed"},
		"nothing":           {}, "absent plugin": {Plugin: "x"}, "until long ago": {Until: time.Unix(0, 0)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				mustQuery(b, l, f)
			}
		})
	}
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			_, err := l.Verify(b.Context())
			must(b, err)
		}
	})
}
