package gateway

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
)

// local reports whether a request was meant for this machine and not sent by a
// page from elsewhere. api checks more than this, and the port, in front of it.
func local(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host != "localhost" && host != "127.0.0.1" && host != "::1" && host != "[::1]" {
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" || origin == "http://"+r.Host
}

func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	plain(w, http.StatusMethodNotAllowed, "Method not allowed")
}

// plain is a refusal below JSON-RPC, still in its form, for agents that show it.
func plain(w http.ResponseWriter, status int, message string) {
	refuseHTTP(w, status, nil, refuse(codeInvalidRequest, message, nil).Raw)
}

func isJSON(contentType string) bool {
	if contentType == jsonType {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == jsonType
}

// readBody reads a body of a known length into just that much.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	limit := g.limits.Body
	if r.ContentLength > limit {
		return nil, http.StatusRequestEntityTooLarge
	}
	var err error
	limited := http.MaxBytesReader(w, r.Body, limit)
	if r.ContentLength >= 0 {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(limited, body)
	} else {
		body, err = io.ReadAll(limited)
	}
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout
	case err != nil:
		return nil, http.StatusBadRequest
	}
	return body, 0
}

// accepts reports whether the agent takes the media type. One that says nothing
// takes anything (RFC 9110 12.5.1).
func accepts(r *http.Request, want string) bool {
	values := r.Header.Values("Accept")
	major, _, _ := strings.Cut(want, "/")
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			kind, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case want, major + "/*", "*/*":
				return true
			}
		}
	}
	return len(values) == 0
}
