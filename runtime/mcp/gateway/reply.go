package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// reply is the answer to one HTTP request: a JSON object where nothing came in
// front of the result, an event stream from the first message that did.
type reply struct {
	g       *Gateway
	w       http.ResponseWriter
	control *http.ResponseController
	box     outbox
	stream  bool // the event stream has begun
	slow    func()
	givenUp atomic.Bool
	alive   *time.Timer
}

func (g *Gateway) newReply(w http.ResponseWriter, slow func()) *reply {
	r := &reply{g: g, w: w, control: http.NewResponseController(w), slow: slow}
	r.box = outbox{
		write: r.event, flush: r.control.Flush, overflow: r.overflow,
		maxMessages: g.limits.Messages, maxBytes: g.limits.Bytes,
	}
	r.box.writing.Lock() // comment waits for it
	r.alive = time.AfterFunc(g.limits.KeepAlive, r.comment)
	r.box.writing.Unlock()
	return r
}

func (r *reply) post(message []byte) bool { return r.box.post(message) }

// overflow ends the stream of a reader that does not read. Nothing can be said to
// it any more, so the reason goes to the log.
func (r *reply) overflow() {
	r.g.log.Warn("stream closed", "reason", "the agent does not read what it is sent")
	r.givenUp.Store(true)
	_ = r.control.SetWriteDeadline(time.Now())
	r.slow()
}

// deadline gives a write its time, unless the reader was given up meanwhile: then
// the write that is under way must not win new time.
func (r *reply) deadline() {
	_ = r.control.SetWriteDeadline(time.Now().Add(r.g.limits.WriteTime))
	if r.givenUp.Load() {
		_ = r.control.SetWriteDeadline(time.Now())
	}
}

// begin sends the head of an event stream.
func (r *reply) begin() {
	if r.stream {
		return
	}
	r.stream = true
	header := r.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	r.w.WriteHeader(http.StatusOK)
}

// event writes one message as a server-sent event.
func (r *reply) event(message []byte) error { return r.eventOf([][]byte{message}) }

func (r *reply) eventOf(parts [][]byte) error {
	r.deadline()
	r.begin()
	if _, err := r.w.Write([]byte("event: message\ndata: ")); err != nil {
		return err
	}
	for _, part := range parts {
		if err := r.data(part); err != nil {
			return err
		}
	}
	_, err := r.w.Write([]byte("\n\n"))
	return err
}

// data writes a part of an event's data. A raw line break, which in JSON is white
// space, would end the line: it becomes a space.
func (r *reply) data(part []byte) error {
	if bytes.IndexByte(part, '\n') >= 0 || bytes.IndexByte(part, '\r') >= 0 {
		part = bytes.Clone(part)
		oneLine(part)
	}
	_, err := r.w.Write(part)
	return err
}

// open starts the event stream before there is a message.
func (r *reply) open() error {
	return r.box.with(func() error {
		r.deadline()
		r.begin()
		return r.control.Flush()
	})
}

// comment keeps a reply alive on which nothing happens. Some agents give up when
// not even a head has come for minutes, so it begins the event stream.
func (r *reply) comment() {
	_ = r.box.with(func() error {
		r.deadline()
		r.begin()
		if _, err := r.w.Write([]byte(": \n\n")); err != nil {
			return err
		}
		r.alive.Reset(r.g.limits.KeepAlive)
		return r.control.Flush()
	})
}

// answer ends the reply with a message. status counts only where no event stream
// has begun.
func (r *reply) answer(status int, parts [][]byte) {
	r.alive.Stop()
	err := r.box.finish(func() error {
		if r.stream {
			return r.last(r.eventOf(parts))
		}
		if sizeOf(parts) <= smallAnswer {
			return writeJSON(r.w, status, parts)
		}
		r.deadline()
		return r.last(writeJSON(r.w, status, parts))
	})
	if err != nil {
		r.g.log.Debug("cannot answer the agent", "error", err)
	}
}

// end ends the reply without a message: the agent withdrew the request.
func (r *reply) end() {
	r.alive.Stop()
	_ = r.box.finish(func() error {
		r.begin()
		return r.last(nil)
	})
}

// last sends what is buffered while the deadline stands, and then takes it away:
// it would outlive this answer and fail a later one on the same connection.
func (r *reply) last(err error) error {
	if err == nil {
		err = r.control.Flush()
	}
	if !r.givenUp.Load() {
		_ = r.control.SetWriteDeadline(time.Time{})
	}
	return err
}

// smallAnswer is what fits into any connection's buffers, so that no deadline is
// needed to write it.
const smallAnswer = 2048

func sizeOf(parts [][]byte) (size int) {
	for _, part := range parts {
		size += len(part)
	}
	return size
}

func writeJSON(w http.ResponseWriter, status int, parts [][]byte) error {
	size := sizeOf(parts)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(status)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// refuseHTTP answers a request that is refused as a whole.
func refuseHTTP(w http.ResponseWriter, status int, id []byte, errorObject json.RawMessage) {
	_ = writeJSON(w, status, failure(id, errorObject))
}
