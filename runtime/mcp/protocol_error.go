package mcp

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sallyport/internal/coded"
)

// The codes of a ProtocolError (spec/stdio-framing.md 2, 4, 5, 6 and 10).
const (
	FrameTooLarge   = "frame-too-large"
	InvalidUTF8     = "invalid-utf8"
	MalformedJSON   = "malformed-json"
	InvalidMessage  = "invalid-message"
	TransportClosed = "transport-closed"
	WriteFailed     = "write-failed"
	WriteStalled    = "write-stalled"
	Closed          = "closed"
)

// ProtocolError is the reason why a connection ended. The first one settles the
// connection; every call that was pending and every later one fails with the
// same value (spec/stdio-framing.md 6).
type ProtocolError struct {
	// Code is one of the constants above.
	Code string
	// Sentence says what happened, without a byte of what the server wrote.
	Sentence string
	// Limit is the bound that was hit, in bytes; 0 where none was.
	Limit int64
	// Size is the number of bytes seen of the frame at fault; 0 where none was.
	Size int64
	// cause never is or wraps io.EOF: the SDK hides a failure that does.
	cause error
	at    time.Time // when it settled the connection
	child Child
}

// newProtocolError keeps cause unless it is an end of file in any dress.
func newProtocolError(code, sentence string, cause error) *ProtocolError {
	if errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF) {
		cause = nil
	}
	return &ProtocolError{Code: code, Sentence: sentence, cause: cause}
}

// Error returns the sentence with the limit, the size and the exit status that
// are known.
func (e *ProtocolError) Error() string {
	var text strings.Builder
	text.WriteString(e.Sentence)
	if e.Size > 0 && e.Limit > 0 {
		fmt.Fprintf(&text, " (%d bytes, the limit is %d)", e.Size, e.Limit)
	} else if e.Size > 0 {
		fmt.Fprintf(&text, " (%d bytes)", e.Size)
	}
	if exit := e.Exit(); exit != "" && (e.Code == TransportClosed || e.Code == WriteFailed) {
		fmt.Fprintf(&text, " (%s)", exit)
	}
	return text.String()
}

// Stderr returns the end of what the server has written there: untrusted text. It
// may still grow shortly after the failure.
func (e *ProtocolError) Stderr() []string {
	if e.child == nil {
		return nil
	}
	return e.child.Tail()
}

// Exit is how the process ended ("exit status 7"); "" while it is not known. Like
// Stderr it may come to be known shortly after the failure.
func (e *ProtocolError) Exit() string {
	if e.child == nil {
		return ""
	}
	select {
	case <-e.child.Done():
		return e.child.Status()
	default:
		return ""
	}
}

// Unwrap returns the reason given by whoever closed the connection, or the
// system's error behind a failed read or write.
func (e *ProtocolError) Unwrap() error { return e.cause }

// As makes the error one with a stable code for every way out. A refusal that
// closed the connection (a grant that ended) keeps its own code.
func (e *ProtocolError) As(target any) bool {
	out, ok := target.(**coded.Error)
	if !ok {
		return false
	}
	var reason *coded.Error
	if e.cause != nil && errors.As(e.cause, &reason) {
		*out = reason
		return true
	}
	*out = &coded.Error{Code: e.Code, Sentence: e.Error(), Err: e.cause}
	return true
}
