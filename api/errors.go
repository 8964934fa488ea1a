package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/mcp"
)

// Error is the body of every answer that is not a success. Clients branch on
// Code, never on Message.
type Error struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Details Details `json:"details"`
}

// Details says what to do next and what the code is about.
type Details struct {
	Next string `json:"next,omitempty"`
	Path string `json:"path,omitempty"`
}

// statusOf maps codes that HTTP has a better word for than 409. A refusal is an
// ordinary result with a code; 500 is kept for what cannot happen.
var statusOf = map[string]int{
	"bad-request":          http.StatusBadRequest,
	"id-invalid":           http.StatusBadRequest,
	"client-name-invalid":  http.StatusBadRequest,
	"scope-invalid":        http.StatusBadRequest,
	"audit-invalid":        http.StatusBadRequest,
	"policy-invalid":       http.StatusBadRequest,
	"class-invalid":        http.StatusBadRequest,
	"answer-invalid":       http.StatusBadRequest,
	"rule-unknown":         http.StatusNotFound,
	"file-unknown":         http.StatusNotFound,
	"login-unknown":        http.StatusNotFound,
	"token-missing":        http.StatusUnauthorized,
	"token-unknown":        http.StatusUnauthorized,
	"not-allowed":          http.StatusForbidden,
	"answer-not-allowed":   http.StatusForbidden,
	"link-of-another-user": http.StatusForbidden,
	"host-refused":         http.StatusForbidden,
	"origin-refused":       http.StatusForbidden,
	"permission-denied":    http.StatusForbidden,
	"not-found":            http.StatusNotFound,
	"plugin-unknown":       http.StatusNotFound,
	"plugin-ambiguous":     http.StatusConflict,
	"decision-unknown":     http.StatusNotFound,
	"installation-unknown": http.StatusNotFound,
	"client-unknown":       http.StatusNotFound,
	"client-removed":       http.StatusForbidden,
	"method-not-allowed":   http.StatusMethodNotAllowed,
	"body-too-large":       http.StatusRequestEntityTooLarge,
	"body-too-slow":        http.StatusRequestTimeout,
	"content-type":         http.StatusUnsupportedMediaType,
	"server-error":         http.StatusBadGateway,
	"store-unreadable":     http.StatusServiceUnavailable,
	"seal-key-unavailable": http.StatusServiceUnavailable,
	"store-damaged":        http.StatusServiceUnavailable,
	"store-newer":          http.StatusServiceUnavailable,
	"store-missing":        http.StatusServiceUnavailable,
	"starting":             http.StatusServiceUnavailable,
	"sidecar-ended":        http.StatusServiceUnavailable,
	"not-running":          http.StatusServiceUnavailable,
	"not-answering":        http.StatusServiceUnavailable,
	"internal":             http.StatusInternalServerError,
	"program-unknown":      http.StatusNotFound,
	"project-invalid":      http.StatusBadRequest,
	"connector-unknown":    http.StatusNotFound,
	"setting-unknown":      http.StatusNotFound,
	"literal-unknown":      http.StatusNotFound,
	"setting-invalid":      http.StatusBadRequest,
	"setting-sensitive":    http.StatusBadRequest,
	"console-unknown":      http.StatusNotFound,
	"console-size":         http.StatusBadRequest,
	"console-term":         http.StatusBadRequest,
}

// errorBody turns any error into what a client sees. An error without a code is
// a fault of ours: its text may hold paths, so it goes to the log, not out.
func errorBody(err error) (int, Error) {
	var e *coded.Error
	var server *mcp.RPCError
	switch {
	case errors.As(err, &e):
	case errors.As(err, &server):
		e = &coded.Error{Code: "server-error", Sentence: cut(approvals.Visible(server.Error()), 500),
			Next: "that is the server's own answer; look at the arguments of the call"}
	case errors.Is(err, context.Canceled):
		e = coded.New("cancelled", "the request was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		e = coded.New("timed-out", "it took too long")
	default:
		e = &coded.Error{Code: "internal", Sentence: "something went wrong inside Sallyport",
			Next: "see the log, and report it with the time"}
	}
	status, ok := statusOf[e.Code]
	if !ok {
		status = http.StatusConflict
	}
	return status, Error{Code: e.Code, Message: e.Sentence, Details: Details{Next: e.Next, Path: e.Path}}
}

// cut shortens text to n characters.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"code":"internal","message":"cannot encode the answer","details":{}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n'))
}

// WriteError answers with a refusal, for what stands in front of the routes.
func WriteError(w http.ResponseWriter, err error) { writeError(w, err) }

func writeError(w http.ResponseWriter, err error) {
	status, body := errorBody(err)
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="sallyport"`)
	}
	writeJSON(w, status, body)
}
