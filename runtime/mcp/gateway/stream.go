package gateway

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"sallyport/runtime/mcp"
)

// stream is an agent behind newline-delimited messages. Both generations may be
// mixed on it, as each request says which one it is of.
type stream struct {
	g   *Gateway
	s   *session
	rw  io.ReadWriteCloser
	box outbox
	all sync.WaitGroup // requests in flight
	// unanswered counts requests whose answer has not been written. An agent that
	// asks and does not read is not read either, once it is far enough behind.
	unanswered atomic.Int64
}

func (st *stream) post(message []byte) bool { return st.box.post(message) }

func (g *Gateway) serveStream(ctx context.Context, client ClientInfo, rw io.ReadWriteCloser) error {
	defer rw.Close()
	st := &stream{g: g, rw: rw, s: g.newSession(ctx, client.Name)}
	st.box = outbox{
		write: st.write, flush: func() error { return nil }, overflow: st.overflow,
		maxMessages: g.limits.Messages, maxBytes: g.limits.Bytes,
	}
	g.mu.Lock()
	closing := g.ctx.Err() != nil
	if !closing {
		g.streams[st.s] = struct{}{}
	}
	g.mu.Unlock()
	if closing {
		st.s.cancel(nil)
		return errClosing
	}
	st.s.take(st, nil)
	// The end of the session, for whatever reason, ends the reading.
	stop := context.AfterFunc(st.s.ctx, func() { rw.Close() })
	defer stop()
	err := st.serve()
	if ended := context.Cause(st.s.ctx); ended != nil && err != nil {
		err = ended
	}
	g.end(st.s, "the agent closed its stream")
	st.all.Wait()
	st.box.close()
	return err
}

// serve reads until the input ends. A message that is none is answered and the
// next one is served; only a frame over the limit cannot be survived.
func (st *stream) serve() error {
	framer := mcp.NewFramer(st.rw, int(st.g.limits.Body))
	defer framer.Free()
	for {
		frame, err := framer.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			var fault *mcp.ProtocolError
			if errors.As(err, &fault) {
				st.answer(failure(nil, refuse(codeInvalidRequest, "Invalid request: the message is over the size limit", nil).Raw))
			}
			return err
		}
		// Parts of it live on in the request; the framer reuses its buffer.
		st.take(append([]byte(nil), frame...))
	}
}

func (st *stream) take(frame []byte) {
	oneLine(frame)
	e, id, err := parse(frame)
	if err != nil {
		st.answer(failure(id, st.g.errorObject("", err)))
		return
	}
	if e.Kind != mcp.Request {
		st.s.receive(e)
		return
	}
	c := st.s.newCall(e, nil)
	c.out = st
	if err := st.admit(c); err != nil {
		c.cancel(nil)
		st.answer(failure(e.ID, st.g.errorObject(c.method, err)))
		return
	}
	if c.method == "initialize" { // in order: what follows depends on it
		st.run(c)
		return
	}
	st.all.Add(1)
	st.unanswered.Add(1)
	go func() {
		defer st.all.Done()
		defer st.unanswered.Add(-1)
		st.run(c)
	}()
}

// admit tells the generation of a request and registers it. Its refusal is written
// by the reader, which waits with it for an agent that does not read.
func (st *stream) admit(c *call) error {
	if st.unanswered.Load() >= 2*int64(st.g.limits.InFlight) {
		return errInFlight
	}
	if _, stated := modernMeta(c.params); stated || c.method == "server/discover" || c.method == "subscriptions/listen" {
		c.modern = true
		if err := c.readModern(""); err != nil {
			return err
		}
	} else if c.method != "initialize" && c.method != "ping" && !st.s.initialized() {
		return refuse(codeInvalidRequest, "The session is not initialized", nil)
	}
	return st.s.begin(c)
}

func (st *stream) run(c *call) {
	defer st.s.done(c)
	result, err := st.g.dispatch(c)
	st.s.release(c)
	if context.Cause(c.ctx) == errWithdrawn { // which is not answered
		return
	}
	if st.s.ctx.Err() == nil {
		st.answer(st.g.response(c, result, err))
	}
}

// answer writes a message after everything queued before it.
func (st *stream) answer(parts [][]byte) {
	size := 1
	for _, part := range parts {
		size += len(part)
	}
	message := make([]byte, 0, size)
	for _, part := range parts {
		message = append(message, part...)
	}
	oneLine(message)
	message = append(message, '\n')
	if err := st.box.with(func() error { return st.writeAll(message) }); err != nil {
		st.s.cancel(err)
	}
}

func (st *stream) write(message []byte) error {
	line := append(message[:len(message):len(message)], '\n')
	oneLine(line[:len(line)-1])
	return st.writeAll(line)
}

func (st *stream) writeAll(line []byte) error {
	_, err := st.rw.Write(line)
	if err != nil {
		st.s.cancel(err)
	}
	return err
}

var errSlow = ended("the agent does not read what it is sent")

func (st *stream) overflow() {
	st.g.log.Warn("stream closed", "reason", "the agent does not read what it is sent")
	st.s.cancel(errSlow)
}
