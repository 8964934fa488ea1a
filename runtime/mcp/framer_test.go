package mcp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// drain returns every frame, copied, and the error at the end.
func drain(f *Framer) (frames []string, err error) {
	for {
		frame, err := f.Next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, string(frame))
	}
}

// Clause 1 and 5: what is a frame.
func TestFramesAreTheBytesBeforeALineFeed(t *testing.T) {
	for _, row := range []struct{ name, in, want string }{
		{"two messages in one read", "a\nbb\n", "a|bb"},
		{"a trailing carriage return is dropped", "a\r\nb\r\n", "a|b"},
		{"only one of them", "a\r\r\n", "a\r"},
		{"one inside stays", "a\rb\n", "a\rb"},
		{"empty lines are skipped", "\n\r\n\na\n\n", "a"},
		{"a byte order mark is dropped", "\xEF\xBB\xBFa\n\xEF\xBB\xBFb\n", "a|b"},
		{"only one of them", "\xEF\xBB\xBF\xEF\xBB\xBFa\n", "\xEF\xBB\xBFa"},
		{"one inside stays", "a\xEF\xBB\xBF\n", "a\xEF\xBB\xBF"},
		{"a line of only a mark is empty", "\xEF\xBB\xBF\r\na\n", "a"},
		{"U+2028 and U+0085 end nothing", "a\u2028b\u0085c\n", "a\u2028b\u0085c"},
		{"the last one needs no line feed", "a\nb", "a|b"},
		{"nothing", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			for name, source := range map[string]io.Reader{
				"whole":         strings.NewReader(row.in),
				"byte by byte":  iotest.OneByteReader(strings.NewReader(row.in)),
				"data with EOF": iotest.DataErrReader(strings.NewReader(row.in)),
			} {
				frames, err := drain(NewFramer(source, 0))
				if got := strings.Join(frames, "|"); got != row.want || err != io.EOF {
					t.Errorf("%s: got %q, %v; want %q", name, got, err, row.want)
				}
			}
		})
	}
}

func TestACutFrameIsKnownAsSuch(t *testing.T) {
	f := NewFramer(strings.NewReader("a\nb"), 0)
	for _, want := range []bool{false, true} {
		if _, err := f.Next(); err != nil || f.Cut() != want {
			t.Fatalf("cut is %v, err %v; want %v", f.Cut(), err, want)
		}
	}
}

// Clause 2, C03: one limit, the same verdict however the bytes are cut.
func TestTheLimitIsDecidedOnTheByte(t *testing.T) {
	for _, limit := range []int{1, 7, 1000, smallBlock, smallBlock + 1, mediumBlock, mediumBlock + 1, DefaultMaxFrame} {
		for _, chunk := range []int{1, limit, limit + 1, 4096, 1 << 30} {
			if chunk == 1 && limit > smallBlock {
				continue // 4 million reads of one byte say nothing new
			}
			exact := "ok\n" + strings.Repeat("x", limit) + "\n"
			frames, err := drain(NewFramer(&chunked{data: exact, size: chunk}, limit))
			if limit > 1 && (len(frames) != 2 || len(frames[1]) != limit || err != io.EOF) {
				t.Fatalf("limit %d, chunks of %d: a frame of exactly the limit: %d frames, %v", limit, chunk, len(frames), err)
			}
			// The byte after the last one must not be asked for: it never comes.
			over := &chunked{data: exact[:len(exact)-1] + "y", size: chunk, then: errors.New("read on after the verdict")}
			frames, err = drain(NewFramer(over, max(limit, 2)))
			var fault *ProtocolError
			if limit > 1 && (len(frames) != 1 || frames[0] != "ok" || !errors.As(err, &fault)) {
				t.Fatalf("limit %d, chunks of %d: one byte over: %d frames, %v", limit, chunk, len(frames), err)
			}
			if fault != nil && (fault.Code != FrameTooLarge || fault.Limit != int64(limit) || fault.Size != int64(limit)+1) {
				t.Fatalf("limit %d: %+v", limit, fault)
			}
		}
	}
}

func TestAFaultyFramerStaysFaulty(t *testing.T) {
	f := NewFramer(strings.NewReader("toolong\nok\n"), 3)
	_, first := f.Next()
	if _, second := f.Next(); first == nil || second != first {
		t.Fatalf("%v, then %v", first, second)
	}
}

func TestAReaderThatGivesNothingEnds(t *testing.T) {
	if _, err := NewFramer(nothing{}, 0).Next(); err != io.ErrNoProgress {
		t.Fatal(err)
	}
}

// Clause 3: the buffer never exceeds the limit, and goes back after a large frame.
func TestTheBufferIsBoundedAndGivenBack(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	go func() {
		out.Write([]byte(strings.Repeat("x", 3<<20) + "\n"))
		out.Write([]byte("small\n"))
		out.Write(bytes.Repeat([]byte("x"), 5<<20))
	}()
	f := NewFramer(in, 0)
	if frame, err := f.Next(); err != nil || len(frame) != 3<<20 || len(f.buf) != DefaultMaxFrame {
		t.Fatal(len(frame), err, len(f.buf))
	}
	if _, err := f.Next(); err != nil || len(f.buf) != smallBlock {
		t.Fatalf("after a small frame the buffer is %d bytes, %v", len(f.buf), err)
	}
	if _, err := f.Next(); err == nil || cap(f.buf) > DefaultMaxFrame {
		t.Fatalf("buffer %d, %v", cap(f.buf), err)
	}
	f.Free()
	if _, err := f.Next(); err != io.EOF || f.buf != nil {
		t.Fatal("a freed framer holds something")
	}
}

// Clause 3: the peak is the limit and less than one MiB.
func TestAnEndlessLineCostsTheLimit(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := NewFramer(endless{}, 0).Next()
	runtime.ReadMemStats(&after)
	var fault *ProtocolError
	if !errors.As(err, &fault) || fault.Code != FrameTooLarge {
		t.Fatal(err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > DefaultMaxFrame+1<<20 {
		t.Fatalf("%d bytes were allocated in all", grown)
	}
}

func TestNoAllocationPerFrame(t *testing.T) {
	for _, size := range []int{100, 10 << 10, 1 << 20} {
		f := NewFramer(&repeating{line: append(bytes.Repeat([]byte("x"), size), '\n')}, 0)
		perRun := testing.AllocsPerRun(40, func() {
			if _, err := f.Next(); err != nil {
				t.Fatal(err)
			}
		})
		if perRun != 0 {
			t.Errorf("%d bytes: %v allocations a frame", size, perRun)
		}
	}
}

// FuzzFramer: the frames are the same for every way of cutting the stream, and
// joining them again gives the lines of the stream.
func FuzzFramer(f *testing.F) {
	f.Add([]byte("a\r\n\n\xEF\xBB\xBFb\nccc"), uint8(4), uint64(1))
	f.Add([]byte("aaaa\naaaaa\n"), uint8(4), uint64(2))
	f.Add([]byte("\xEF\xBB\xBF\r\n"), uint8(1), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, small uint8, seed uint64) {
		limit := int(small) + 1
		want, wantErr := reference(string(data), limit)
		for _, source := range []io.Reader{
			bytes.NewReader(data),
			iotest.OneByteReader(bytes.NewReader(data)),
			iotest.DataErrReader(bytes.NewReader(data)),
			&chunked{data: string(data), random: rand.New(rand.NewPCG(seed, 0))},
		} {
			got, err := drain(NewFramer(source, limit))
			if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
				t.Fatalf("%q (limit %d): %q, want %q", data, limit, got, want)
			}
			if (err == io.EOF) != (wantErr == io.EOF) {
				t.Fatalf("%q (limit %d): %v, want %v", data, limit, err, wantErr)
			}
		}
	})
}

// reference is the contract written the slow way.
func reference(data string, limit int) (frames []string, err error) {
	for _, line := range strings.Split(data, "\n") {
		if len(line) > limit {
			return frames, errors.New("too large")
		}
		line = strings.TrimPrefix(strings.TrimSuffix(line, "\r"), "\xEF\xBB\xBF")
		if line != "" {
			frames = append(frames, line)
		}
	}
	return frames, io.EOF
}

// chunked hands out data in pieces of a size, or of random sizes.
type chunked struct {
	data   string
	size   int
	random *rand.Rand
	then   error
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.data == "" {
		if c.then != nil {
			return 0, c.then
		}
		return 0, io.EOF
	}
	size := c.size
	if c.random != nil {
		size = c.random.IntN(9)
	}
	n := copy(p, c.data[:min(size, len(c.data))])
	c.data = c.data[n:]
	return n, nil
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'A'
	}
	return len(p), nil
}

// repeating gives the same line for ever.
type repeating struct {
	line []byte
	at   int
}

func (r *repeating) Read(p []byte) (n int, err error) {
	for n < len(p) {
		c := copy(p[n:], r.line[r.at:])
		n += c
		if r.at += c; r.at == len(r.line) {
			r.at = 0
		}
	}
	return n, nil
}
