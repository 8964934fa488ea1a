package mcp

import (
	"encoding/json"
	"time"

	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
)

// EventKind is what an Event tells.
type EventKind string

// The kinds of events.
const (
	Started     EventKind = "started"
	Stopped     EventKind = "stopped" // on purpose: Err is the reason
	Crashed     EventKind = "crashed" // Err is the cause, Retry when it may start again
	ParkedEvent EventKind = "parked"  // it crashed too often: see Unpark
	ListChanged EventKind = "list-changed"
	Exceeded    EventKind = "over-budget" // a call was refused: Err says which budget
	Denied      EventKind = "denied"      // the server asked for what is not permitted: Method, Err
	Notified    EventKind = "notified"    // a notification that belongs to no call
)

// Event is something that happened to a session.
type Event struct {
	Kind   EventKind
	ID     plugins.ID
	PID    int
	Err    error
	Retry  time.Time
	Tools  []approvals.ToolState // of Started and ListChanged
	Method string                // of Notified and Denied
	Params json.RawMessage
}
