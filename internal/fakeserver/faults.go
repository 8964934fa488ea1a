package fakeserver

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"time"
)

const collectedCalls = 200

// misbehave is the tool "go".
func (s *server) misbehave(m message, p callParams) {
	s.noise()
	if s.is("spills") {
		spill()
	}
	for _, mode := range s.modes {
		if fault := faults[mode]; fault != nil {
			fault(s, m, p)
			return
		}
	}
	s.answer(m.ID, text("ok", nil))
}

var faults = map[string]func(s *server, m message, p callParams){
	"endless": func(s *server, _ message, _ callParams) {
		s.forever("", 'A')
	},
	"endless-string": func(s *server, m message, _ callParams) {
		s.forever(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"x":"`, 'A')
	},
	"endless-stderr": func(s *server, m message, _ callParams) {
		s.answer(m.ID, text("ok", nil))
		block := bytes.Repeat([]byte("E"), 64<<10)
		for {
			os.Stderr.Write(block)
		}
	},
	"stderr-burst": func(s *server, m message, _ callParams) {
		os.Stderr.Write(bytes.Repeat([]byte("burst "), 256<<10/6))
		s.answer(m.ID, text("ok", nil))
	},
	"malformed": func(s *server, m message, _ callParams) {
		s.line([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"resu`))
	},
	"notrpc": func(s *server, _ message, _ callParams) { s.line([]byte(`{"hello":"world"}`)) },
	"trailing": func(s *server, m message, _ callParams) {
		s.line(append(answerLine(m.ID, text("ok", nil)), " junk"...))
	},
	"badutf8": func(s *server, m message, _ callParams) {
		s.line([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + ",\"result\":{\"x\":\"\xC3\x28\"}}"))
	},
	"dupkeys": func(s *server, m message, _ callParams) {
		s.line([]byte(`{"jsonrpc":"2.0","id":99,"id":` + string(m.ID) + `,"result":{}}`))
	},
	"batch": func(s *server, m message, _ callParams) {
		s.line([]byte("[" + string(answerLine(m.ID, object{})) + "]"))
	},
	"pretty": func(s *server, m message, _ callParams) {
		s.line([]byte("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": " + string(m.ID) + ",\n  \"result\": {}\n}"))
	},
	"split": func(s *server, m message, _ callParams) {
		line := append(answerLine(m.ID, text("語 🖥️", nil)), '\n')
		for i := range line {
			s.raw(line[i : i+1])
			time.Sleep(time.Millisecond)
		}
	},
	"exit-mid-call": func(*server, message, callParams) { os.Exit(7) },
	"cut-exit": func(s *server, m message, _ callParams) {
		s.raw([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"x":"cu`))
		os.Exit(1)
	},
	"unterminated": func(s *server, m message, _ callParams) {
		s.raw(answerLine(m.ID, text("ok", nil)))
		os.Exit(0)
	},
	"answers-then-exit": func(s *server, m message, _ callParams) {
		if calls := s.collect(m, collectedCalls); calls != nil {
			for _, call := range calls {
				s.answer(call.ID, text("ok", nil))
			}
			os.Exit(0)
		}
	},
	"eats-memory": func(*server, message, callParams) {
		var hoard [][]byte
		for { // until somebody ends it
			hoard = append(hoard, bytes.Repeat([]byte("x"), 8<<20)) //nolint:staticcheck // it is kept so that the memory is in use
			time.Sleep(20 * time.Millisecond)
		}
	},
	"eats-processor": func(*server, message, callParams) {
		for n := 0; ; n++ {
			_ = n
		}
	},
	"breeds": func(s *server, m message, _ callParams) {
		for range 8 {
			_, _ = s.breed(true) // fewer would be told by the test
		}
	},
	"closes-stdout": func(s *server, _ message, _ callParams) { s.out.Close() },
	"closes-stdin": func(s *server, m message, _ callParams) {
		os.Stdin.Close()
		s.answer(m.ID, text("ok", nil))
	},
	"deaf": func(*server, message, callParams) {},
	"forks": func(s *server, m message, _ callParams) {
		s.fork(m, false)
	},
	"setsid": func(s *server, m message, _ callParams) {
		s.fork(m, true)
	},
	"second-answer": func(s *server, m message, _ callParams) {
		s.answer(m.ID, text("first", nil))
		s.answer(m.ID, text("second", nil))
	},
	"null-id": func(s *server, m message, _ callParams) {
		s.line([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"who was that"}}`))
		s.answer(m.ID, text("ok", nil))
	},
	"unknown-id": func(s *server, m message, _ callParams) {
		s.line(answerLine([]byte("987654321"), object{}))
		s.answer(m.ID, text("ok", nil))
	},
	"out-of-order": func(s *server, m message, p callParams) {
		calls := s.collect(m, max(p.Arguments.Count, 2))
		for i := len(calls) - 1; i >= 0; i-- {
			s.answer(calls[i].ID, text("ok", object{"id": calls[i].ID, "params": calls[i].Params}))
		}
	},
	"late": func(s *server, m message, _ callParams) {
		<-s.cancelled(string(m.ID))
		s.answer(m.ID, text("late", nil))
	},
	"ask-flood": func(s *server, _ message, _ callParams) {
		s.reading.Lock()
		for i := 0; ; i++ {
			s.line([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, i)))
		}
	},
}

func (s *server) forever(head string, letter byte) {
	s.writing.Lock() // for good: nothing else is written any more
	s.out.WriteString(head)
	block := bytes.Repeat([]byte{letter}, 64<<10)
	for {
		if _, err := s.out.Write(block); err != nil && !s.is("ignores-eof") {
			os.Exit(9)
		}
	}
}

// collect keeps a call and returns all of them once there are n.
func (s *server) collect(m message, n int) []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collected = append(s.collected, m)
	if len(s.collected) < n {
		return nil
	}
	calls := s.collected
	s.collected = nil
	return calls
}

// fork starts a copy of this program that holds stdout and does nothing.
func (s *server) fork(m message, session bool) {
	pid, err := s.breed(session)
	if err != nil {
		s.fail(m.ID, -32603, err.Error(), nil)
		return
	}
	s.answer(m.ID, text("ok", object{"pid": pid}))
}

// breed starts a child that stays.
func (s *server) breed(session bool) (pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child := exec.Command(self, "sleeper+ignores-eof")
	child.Stdout, child.Stderr = s.out, os.Stderr
	if session {
		ownSession(child)
	}
	held, err := child.StdinPipe() // never written, so that it waits
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return 0, err
	}
	_ = held
	s.notePID(child.Process.Pid)
	return child.Process.Pid, nil
}
