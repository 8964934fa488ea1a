package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/host"
)

// EventPage is the answer of a long poll. Where Complete is false, events were
// missed: read everything anew, then go on from Last.
type EventPage struct {
	Events   []host.Event `json:"events"`
	Last     uint64       `json:"last"`
	Complete bool         `json:"complete"`
}

const longestPoll = 55 * time.Second

var eventRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/events", Access: Watcher,
	Summary: "What changed since a number: a long poll, or server-sent events where the client accepts them.",
	Query:   []string{"after", "wait"}, Answer: EventPage{},
	Media: []string{"text/event-stream"}, Stream: (*Server).events,
}}

func (s *Server) events(_ Caller, w http.ResponseWriter, r *http.Request) {
	after, err := eventNumber(r, s.host.Events.Last())
	if err != nil {
		writeError(w, err)
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		s.streamEvents(w, r, after)
		return
	}
	wait, err := pollTime(r.FormValue("wait"))
	if err != nil {
		writeError(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	events, complete := s.host.Events.Wait(ctx, after)
	if events == nil {
		events = []host.Event{}
	}
	last := after
	if n := len(events); n > 0 {
		last = events[n-1].Seq
	} else if !complete {
		last = s.host.Events.Last()
	}
	writeJSON(w, http.StatusOK, EventPage{Events: events, Last: last, Complete: complete})
}

// streamEvents sends each event as one server-sent event whose id is its number,
// so that a browser reconnects from where it was.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request, after uint64) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	for r.Context().Err() == nil {
		ctx, cancel := context.WithTimeout(r.Context(), 15*time.Second)
		events, complete := s.host.Events.Wait(ctx, after)
		cancel()
		if !complete {
			after, events = s.host.Events.Last(), nil // whoever reads everything anew needs no old ones
			fmt.Fprintf(w, "id: %d\nevent: reset\ndata: {}\n\n", after)
		}
		for _, event := range events {
			after = max(after, event.Seq)
			data, _ := json.Marshal(event)
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", event.Seq, data)
		}
		if complete && len(events) == 0 {
			fmt.Fprint(w, ": still here\n\n")
		}
		if control.Flush() != nil {
			return
		}
	}
}

func eventNumber(r *http.Request, last uint64) (uint64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.FormValue("after")
	}
	if text == "" {
		return last, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, coded.New("bad-request", "after is not a number of an event")
	}
	return n, nil
}

// revisionPoll reads after, the revision that is known (-1 where none is), and wait.
func revisionPoll(r *http.Request) (after int, wait time.Duration, err error) {
	after = -1
	if text := r.FormValue("after"); text != "" {
		if after, err = strconv.Atoi(text); err != nil {
			return 0, 0, coded.New("bad-request", "after is not a number")
		}
	}
	wait, err = pollTime(r.FormValue("wait"))
	return after, wait, err
}

func pollTime(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, coded.New("bad-request", "wait is not a length of time such as 30s")
	}
	return min(wait, longestPoll), nil
}
