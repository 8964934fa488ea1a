package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkCall calls a real process through a Conn and gives the median as a
// ratio to the same exchange written and read with nothing in between.
func BenchmarkCall(b *testing.B) {
	for _, frame := range frameSizes {
		b.Run(frame.name, func(b *testing.B) {
			conn, _ := connect(b, "polite", Options{})
			direct := newDirect(b)
			arguments := `{"x":"` + strings.Repeat("x", frame.size) + `"}`
			var bare, own []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				direct.call(b, arguments)
				middle := time.Now()
				if _, err := callTool(b.Context(), conn, "echo", arguments); err != nil {
					b.Fatal(err)
				}
				bare, own = append(bare, middle.Sub(start)), append(own, time.Since(middle))
			}
			b.ReportMetric(float64(median(own))/float64(median(bare)), "x-direct")
			b.ReportMetric(float64(median(own).Microseconds()), "µs-p50")
		})
	}
}

// BenchmarkCallsFrom16 gives the calls a second of 16 callers at once, as a ratio
// to 16 callers that share a bare pipe (one line at a time is all it can do).
func BenchmarkCallsFrom16(b *testing.B) {
	conn, _ := connect(b, "polite", Options{})
	var group sync.WaitGroup
	start := time.Now()
	for b.Loop() {
		for range 16 {
			group.Go(func() {
				if _, err := callTool(context.Background(), conn, "echo", `{"x":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`); err != nil {
					b.Error(err)
				}
			})
		}
		group.Wait()
	}
	b.ReportMetric(16*float64(b.N)/time.Since(start).Seconds(), "calls/s")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// direct is the least that a call can be: one write, one line read.
type direct struct {
	child  *realChild
	reader *bufio.Reader
}

func newDirect(b *testing.B) *direct {
	child := launch(b, "polite")
	return &direct{child, bufio.NewReaderSize(child.out, 4<<20)}
}

func (d *direct) call(b *testing.B, arguments string) {
	fmt.Fprintf(d.child.in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":%s}}`+"\n", arguments)
	line, err := d.reader.ReadSlice('\n')
	if err != nil || !strings.HasPrefix(string(line[:60]), `{"jsonrpc":"2.0","id":1,"result"`) {
		b.Fatal(errors.Join(err, errors.New("no answer")))
	}
}
