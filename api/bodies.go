package api

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// BodyTime is how long a request may take to send its body. Eight MiB over loopback
// are there in milliseconds.
const BodyTime = 30 * time.Second

// TimedBodies bounds how long a body may take, whatever handler reads it, and nothing
// else: answers, long polls and streams take their time.
func TimedBodies(next http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			connection := http.NewResponseController(w)
			if connection.SetReadDeadline(time.Now().Add(within)) == nil {
				r.Body = &timedBody{ReadCloser: r.Body, over: sync.OnceFunc(func() {
					_ = connection.SetReadDeadline(time.Time{}) // it was there a moment ago
				})}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody takes the limit off once the body is whole: the connection is read on, to
// see whether the client has gone, and that must not look like it.
type timedBody struct {
	io.ReadCloser
	over func()
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.over()
	}
	return n, err
}
