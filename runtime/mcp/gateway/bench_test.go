package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sallyport/runtime/mcp"
	"sallyport/runtime/plugins"
)

// echoServer in the environment turns the test binary into a server that answers
// every request with a small result, as fast as it can.
const echoServer = "SALLYPORT_TEST_ECHO"

func serveEcho() {
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		id, _ := lookup(line, "id")
		fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"echo"}]}}`+"\n", id)
	}
}

// echoChild is the test binary as that server.
type echoChild struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	done chan struct{}
}

func startEcho(b *testing.B) *echoChild {
	b.Helper()
	c := &echoChild{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	c.cmd.Env = []string{echoServer + "=1"}
	c.in, _ = c.cmd.StdinPipe()
	c.out, _ = c.cmd.StdoutPipe()
	if err := c.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() {
		_, _ = c.cmd.Process.Wait()
		close(c.done)
	}()
	b.Cleanup(func() {
		c.in.Close()
		<-c.done
	})
	return c
}

func (c *echoChild) PID() int              { return c.cmd.Process.Pid }
func (c *echoChild) Stdin() io.WriteCloser { return c.in }
func (c *echoChild) Stdout() io.Reader     { return c.out }
func (c *echoChild) Tail() []string        { return nil }
func (c *echoChild) Done() <-chan struct{} { return c.done }
func (c *echoChild) Status() string        { return "" }
func (c *echoChild) Kill()                 { _ = c.cmd.Process.Kill() }

func (c *echoChild) Stop(context.Context, error) error {
	c.in.Close()
	<-c.done
	return nil
}

// direct is a Backend that passes calls to one connection and decides nothing.
type direct struct {
	*fake
	conn *mcp.Conn
}

func (d direct) Call(ctx context.Context, _ string, _ plugins.ID, _ string, params json.RawMessage, up Upstream) (json.RawMessage, error) {
	return d.conn.Call(ctx, "tools/call", params, up)
}

// pipeClient speaks lines and takes answers by their number.
type pipeClient struct {
	mu      sync.Mutex
	out     io.Writer
	last    int64
	waiting map[int64]chan struct{}
}

func newPipeClient(in io.Reader, out io.Writer) *pipeClient {
	c := &pipeClient{out: out, waiting: map[int64]chan struct{}{}}
	go func() {
		lines := bufio.NewReaderSize(in, 1<<16)
		for {
			line, err := lines.ReadSlice('\n')
			if err != nil {
				return
			}
			raw, _ := lookup(line, "id")
			id := int64(0)
			for _, digit := range raw {
				id = id*10 + int64(digit-'0')
			}
			c.mu.Lock()
			wake := c.waiting[id]
			delete(c.waiting, id)
			c.mu.Unlock()
			if wake != nil {
				wake <- struct{}{}
			}
		}
	}()
	return c
}

func (c *pipeClient) call(b *testing.B, method, params string) {
	wake := make(chan struct{}, 1)
	c.mu.Lock()
	c.last++
	c.waiting[c.last] = wake
	line := []byte(request(fmt.Sprint(c.last), method, params) + "\n")
	_, err := c.out.Write(line)
	c.mu.Unlock()
	if err != nil {
		b.Error(err)
		return
	}
	<-wake
}

const benchParams = `{"name":"demo__main__echo","arguments":{"text":"hello, this is a small call"}}`

func run(b *testing.B, call func()) {
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	b.Run("sixteen", func(b *testing.B) {
		b.ReportAllocs()
		var all sync.WaitGroup
		left := atomic.Int64{}
		left.Store(int64(b.N))
		for range 16 {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					call()
				}
			})
		}
		all.Wait()
	})
}

// BenchmarkDirect is the call straight to the server, the floor of the others.
func BenchmarkDirect(b *testing.B) {
	child := startEcho(b)
	client := newPipeClient(child.out, child.in)
	run(b, func() { client.call(b, "tools/call", benchParams) })
}

func benchGateway(b *testing.B) *Gateway {
	child := startEcho(b)
	conn := mcp.Connect(child, mcp.Options{})
	f := newFake()
	f.set("agent", Catalog{Connectors: []Exposed{offer(demo, "echo")}})
	g := New(Config{Backend: direct{f, conn}, Version: "1", Client: func(*http.Request) (ClientInfo, bool) { return ClientInfo{Name: "agent"}, true }})
	b.Cleanup(func() {
		g.Close()
		conn.Close(nil)
		<-conn.Gone()
	})
	return g
}

func BenchmarkStream(b *testing.B) {
	g := benchGateway(b)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = g.ServeStream(context.Background(), ClientInfo{Name: "agent"}, conn)
		}
		done <- err
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	client := newPipeClient(conn, conn)
	client.call(b, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)
	run(b, func() { client.call(b, "tools/call", benchParams) })
	conn.Close()
	<-done
}

// BenchmarkHandler is the gateway's own part of a call over HTTP.
func BenchmarkHandler(b *testing.B) {
	f := newFake()
	f.set("agent", Catalog{Connectors: []Exposed{offer(demo, "echo")}})
	result := json.RawMessage(`{"content":[]}`)
	f.tools["echo"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) { return result, nil }
	g := New(Config{Backend: quick{f, result}, Client: func(*http.Request) (ClientInfo, bool) { return ClientInfo{Name: "agent"}, true }})
	defer g.Close()
	s, err := g.open("agent")
	if err != nil {
		b.Fatal(err)
	}
	s.version = latestLegacy
	body, with := modern("1", "tools/call", benchParams, "{}")
	for _, row := range []struct {
		name, body string
		with       headers
	}{{latestLegacy, request("1", "tools/call", benchParams), headers{sessionHeader: s.id}}, {modernVersion, body, with}} {
		b.Run(row.name, func(b *testing.B) {
			r, _ := http.NewRequest("POST", "http://127.0.0.1/mcp", nil)
			r.Header = http.Header{"Content-Type": {jsonType}, "Accept": {jsonType + ", " + eventType}}
			for key, value := range row.with {
				r.Header.Set(key, value)
			}
			r.ContentLength = int64(len(row.body))
			w := &nowhere{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				r.Body = io.NopCloser(strings.NewReader(row.body))
				g.Handler().ServeHTTP(w, r)
			}
			if w.status != 200 {
				b.Error(w.status)
			}
		})
	}
}

type quick struct {
	*fake
	result json.RawMessage
}

func (q quick) Call(context.Context, string, plugins.ID, string, json.RawMessage, Upstream) (json.RawMessage, error) {
	return q.result, nil
}

type nowhere struct {
	header http.Header
	status int
}

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (w *nowhere) WriteHeader(status int)      { w.status = status }

func BenchmarkHTTP(b *testing.B) {
	for _, generation := range []string{"2025-11-25", modernVersion} {
		b.Run(generation, func(b *testing.B) { benchHTTP(b, generation) })
	}
}

func benchHTTP(b *testing.B, version string) {
	g := benchGateway(b)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: g.Handler()}
	go server.Serve(listener)
	defer server.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	client := &http.Client{Transport: transport}
	defer transport.CloseIdleConnections()
	r := &rig{t: b, url: "http://" + listener.Addr().String()}
	body, with := modern("1", "tools/call", benchParams, "{}")
	if version != modernVersion {
		body, with = "", r.open("agent", "{}")
	}
	http.DefaultClient.CloseIdleConnections()
	var last atomic.Int64
	run(b, func() {
		text := body
		if text == "" {
			text = request(fmt.Sprint(last.Add(1)), "tools/call", benchParams)
		}
		request, _ := http.NewRequest("POST", r.url, bytes.NewBufferString(text))
		request.Header = http.Header{"Content-Type": {jsonType}, "Accept": {jsonType + ", " + eventType}}
		for key, value := range with {
			request.Header.Set(key, value)
		}
		response, err := client.Do(request)
		if err != nil {
			b.Error(err)
			return
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != 200 {
			b.Error(response.StatusCode, err)
		}
		response.Body.Close()
	})
}
