package client

import (
	"io"
	"net/http"
)

// direct is a transport without a wire: it calls the handler and hands its
// answer over as it is written.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err // as a wire does: what was given up is not sent
	}
	body, into := io.Pipe()
	answer := &pipeWriter{header: http.Header{}, into: into, started: make(chan struct{})}
	incoming := r.Clone(r.Context())
	incoming.Host = r.URL.Host
	if incoming.Body == nil {
		incoming.Body = http.NoBody
	}
	go func() {
		err := serve(d.handler, answer, incoming)
		answer.start(http.StatusOK)
		into.CloseWithError(err)
	}()
	select {
	case <-answer.started:
	case <-r.Context().Done():
	}
	if r.Context().Err() != nil {
		into.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: answer.status, Header: answer.sent, Body: body, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1}, nil
}

// serve calls the handler. One that aborts cuts its answer short, as it does on a
// wire; any other panic is a fault and stays one.
func serve(handler http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch reason := recover(); reason {
		case nil:
		case http.ErrAbortHandler:
			err = io.ErrUnexpectedEOF
		default:
			panic(reason)
		}
	}()
	handler.ServeHTTP(w, r)
	return nil
}

type pipeWriter struct {
	header, sent http.Header
	status       int
	into         *io.PipeWriter
	started      chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) { w.start(status) }

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.start(http.StatusOK)
	return w.into.Write(p)
}

func (w *pipeWriter) Flush() { w.start(http.StatusOK) }

// start is called by the handler's goroutine only.
func (w *pipeWriter) start(status int) {
	if w.status != 0 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
	close(w.started)
}
