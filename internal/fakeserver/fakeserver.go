package fakeserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Main runs the server on the process's own stdio and returns the exit status.
func Main(args []string) int {
	s := &server{
		args:    args,
		out:     os.Stdout,
		answers: map[string]chan message{},
		cancels: map[string]chan struct{}{},
	}
	if len(args) > 1 {
		s.modes = strings.Split(args[1], "+")
	}
	flags := flag.NewFlagSet("fakeserver", flag.ContinueOnError)
	flags.IntVar(&s.tools, "tools", 0, "number of further tools")
	flags.StringVar(&s.pidFile, "pid-file", "", "file for process ids")
	flags.StringVar(&s.name, "name", "fakeserver", "name of the server")
	if len(args) > 2 && flags.Parse(args[2:]) != nil {
		return 2
	}
	s.notePID(os.Getpid())
	return s.run(os.Stdin)
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

type server struct {
	args    []string
	modes   []string
	tools   int
	name    string
	pidFile string
	work    sync.WaitGroup
	reading sync.Mutex // held for ever by a behaviour that stops reading

	writing sync.Mutex
	out     *os.File

	mu        sync.Mutex
	asked     int
	answers   map[string]chan message
	cancels   map[string]chan struct{}
	changes   int
	collected []message
}

func (s *server) is(mode string) bool {
	for _, m := range s.modes {
		if m == mode {
			return true
		}
	}
	return false
}

func (s *server) run(in *os.File) int {
	if s.is("ignores-eof") {
		ignoreTermination()
	}
	if status, over := s.start(); over {
		return status
	}
	reader := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var m message
			if json.Unmarshal(line, &m) == nil {
				s.take(m)
			}
		}
		if m := s.is("no-read"); m && bytes.Contains(line, []byte("notifications/initialized")) {
			rest()
		}
		s.reading.Lock()
		s.reading.Unlock() //nolint:staticcheck // only waits while a method holds it
		if err != nil {
			break
		}
	}
	if s.is("ignores-eof") || s.is("closes-stdin") {
		rest()
	}
	s.finish()
	return 0
}

// rest does nothing for ever; an empty select would be found to be a deadlock.
func rest() {
	for {
		time.Sleep(time.Hour)
	}
}

// finish gives answers under way a moment.
func (s *server) finish() {
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(200 * time.Millisecond):
	}
}

func (s *server) start() (status int, over bool) {
	if s.is("spills") {
		spill()
	}
	switch {
	case s.is("fails"):
		fmt.Fprintln(os.Stderr, "fakeserver: cannot start, as asked")
		return 3, true
	case s.is("never-ready"):
		for n := 1; ; n++ {
			fmt.Fprintf(os.Stderr, "still waiting, %d\n", n)
			time.Sleep(100 * time.Millisecond)
		}
	case s.is("no-handshake"):
		io.Copy(io.Discard, os.Stdin)
		return 0, true
	case s.is("noise-flood"):
		for {
			s.raw([]byte("still logging, still logging, still logging\n"))
		}
	case s.is("stderr-start"):
		os.Stderr.Write(bytes.Repeat([]byte("progress\r"), 2<<20/9))
	}
	s.noise()
	s.chat()
	return 0, false
}

func (s *server) noise() {
	if s.is("noise") {
		s.raw([]byte("Server version : 1.2.3\n🖥️ mode: STDIO\n- item\n- item\n- item\n{\"level\":30,\"msg\":\"up\"}\n"))
	}
}

func (s *server) chat() {
	if s.is("chatty") {
		s.raw([]byte(`{"jsonrpc":"2.0","method":"window/logMessage","params":{}}` + "\n" +
			`{"jsonrpc":"2.0","method":"codex/event","params":{"x":1}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/stderr","params":{"content":"x"}}` + "\n"))
	}
}

// take handles one message; requests each in a goroutine of its own.
func (s *server) take(m message) {
	switch {
	case m.Method == "":
		s.mu.Lock()
		waiting := s.answers[string(m.ID)]
		delete(s.answers, string(m.ID))
		s.mu.Unlock()
		if waiting != nil {
			waiting <- m
		}
	case len(m.ID) == 0:
		if s.is("chatty") {
			s.raw([]byte(`{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}` + "\n"))
			s.chat()
		}
		if m.Method == "notifications/cancelled" {
			var params struct {
				RequestID json.RawMessage `json:"requestId"`
			}
			json.Unmarshal(m.Params, &params)
			close(s.cancelled(string(params.RequestID)))
		}
	default:
		s.work.Go(func() { s.serve(m) })
	}
}

func (s *server) cancelled(id string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancels[id] == nil {
		s.cancels[id] = make(chan struct{})
	}
	return s.cancels[id]
}

// answer sends a result, in the dress that the behaviour asks for.
func (s *server) answer(id json.RawMessage, result any) {
	s.line(answerLine(s.dress(id), result))
}

func (s *server) dress(id json.RawMessage) json.RawMessage {
	switch {
	case id[0] == '"':
	case s.is("string-ids"):
		return json.RawMessage(`"` + string(id) + `"`)
	case s.is("float-ids"):
		return json.RawMessage(string(id) + ".0")
	}
	return id
}

func answerLine(id json.RawMessage, result any) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + string(encode(result)) + `}`)
}

func (s *server) fail(id json.RawMessage, code int, text string, data any) {
	s.line([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s,"data":%s}}`, s.dress(id), code, encode(text), encode(data))))
}

func (s *server) notify(method string, params any) {
	s.line([]byte(`{"jsonrpc":"2.0","method":` + string(encode(method)) + `,"params":` + string(encode(params)) + `}`))
}

// ask sends a request to the client and waits for its answer.
func (s *server) ask(method string, params json.RawMessage) message {
	s.mu.Lock()
	s.asked++
	id := string(encode(fmt.Sprintf("s%d", s.asked)))
	answer := make(chan message, 1)
	s.answers[id] = answer
	s.mu.Unlock()
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	s.line([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":` + string(encode(method)) + `,"params":` + string(params) + `}`))
	return <-answer
}

func (s *server) line(text []byte) {
	if s.is("bom") {
		text = append([]byte("\xEF\xBB\xBF"), text...)
	}
	end := "\n"
	if s.is("crlf") {
		end = "\r\n"
	}
	if s.is("blank") {
		end += "\n\r\n\n"
	}
	s.raw(append(text, end...))
}

func (s *server) raw(text []byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if _, err := s.out.Write(text); err != nil && !s.is("ignores-eof") && !s.is("closes-stdout") {
		os.Exit(9)
	}
}

func (s *server) notePID(pid int) {
	if s.pidFile == "" {
		return
	}
	if f, err := os.OpenFile(s.pidFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(f, pid)
		f.Close()
	}
}

// encode writes JSON without touching raw parts or escaping HTML.
func encode(v any) []byte {
	if raw, ok := v.(json.RawMessage); ok {
		return raw
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimSpace(out.Bytes())
}
