package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"
)

var frameSizes = []struct {
	name string
	size int
}{{"100B", 100}, {"10KiB", 10 << 10}, {"1MiB", 1 << 20}}

const streamBytes = 64 << 20

// stream is frames of about size bytes, streamBytes in all.
func stream(size int) []byte {
	line := append(frameOf(size), '\n')
	return bytes.Repeat(line, streamBytes/len(line))
}

// BenchmarkFraming cuts 64 MiB into frames and gives each way's time as a ratio
// to a bare IndexByte over the same bytes in the same run (goal for the framer:
// 2.2 at most).
func BenchmarkFraming(b *testing.B) {
	ways := []struct {
		name string
		cut  func(data []byte) (frames int)
	}{
		{"framer", cutWithFramer}, {"scanner", cutWithScanner}, {"decoder", cutWithDecoder},
	}
	for _, frame := range frameSizes {
		data := stream(frame.size)
		want := cutWithIndexByte(data)
		for _, way := range ways {
			b.Run(fmt.Sprintf("%s/%s", way.name, frame.name), func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				var bare, own time.Duration
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for b.Loop() {
					start := time.Now()
					cutWithIndexByte(data)
					middle := time.Now()
					if got := way.cut(data); got != want {
						b.Fatalf("%d frames, want %d", got, want)
					}
					bare, own = bare+middle.Sub(start), own+time.Since(middle)
				}
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(own)/float64(bare), "x-IndexByte")
				b.ReportMetric(float64((after.Mallocs-before.Mallocs)/uint64(b.N*want)), "allocs/frame")
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, frame := range frameSizes {
		b.Run(frame.name, func(b *testing.B) {
			data, parser := frameOf(frame.size), new(Parser)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parser.Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func cutWithIndexByte(data []byte) (frames int) {
	for {
		at := bytes.IndexByte(data, '\n')
		if at < 0 {
			return frames
		}
		frames++
		data = data[at+1:]
	}
}

func cutWithFramer(data []byte) (frames int) {
	for f := NewFramer(bytes.NewReader(data), 0); ; frames++ {
		if _, err := f.Next(); err != nil {
			return frames
		}
	}
}

func cutWithScanner(data []byte) (frames int) {
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(make([]byte, 64<<10), DefaultMaxFrame)
	for scanner.Scan() {
		frames++
	}
	return frames
}

func cutWithDecoder(data []byte) (frames int) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil {
			return frames
		}
		frames++
	}
}
