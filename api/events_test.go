package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/api"
	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
)

var fake = plugins.ID{Plugin: "fake", Server: "main"}

// toggle makes n events about fake/main.
func (r *rig) toggle(n int) {
	r.t.Helper()
	by := approvals.By{User: "tester", Via: "api"}
	for i := range n {
		act := r.host.Gate.Disable
		if i%2 == 1 {
			act = r.host.Gate.Enable
		}
		before := r.host.Events.Last()
		if err := act(r.t.Context(), fake, by); err != nil {
			r.t.Fatal(err)
		}
		r.await(before)
	}
}

// await waits until there is an event after before.
func (r *rig) await(before uint64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	if events, _ := r.host.Events.Wait(ctx, before); len(events) == 0 {
		r.t.Fatal("no event within 20 s")
	}
}

func TestLongPoll(t *testing.T) {
	r := newRig(t)
	r.approve("echo")
	r.await(0)
	var first, page api.EventPage
	r.into(&first, "GET", "/v1/events?after=0", "")
	if !first.Complete || len(first.Events) == 0 || first.Last != first.Events[len(first.Events)-1].Seq {
		t.Fatalf("from the start: %+v", first)
	}
	last := r.host.Events.Last()
	r.into(&page, "GET", fmt.Sprintf("/v1/events?after=%d", last), "")
	if page.Events == nil || len(page.Events) != 0 || page.Last != last || !page.Complete {
		t.Errorf("nothing new is %+v", page)
	}

	waited := make(chan answer, 1)
	go func() {
		waited <- r.send(request{method: "GET", path: fmt.Sprintf("/v1/events?after=%d&wait=25s", last), as: "companion"})
	}()
	r.toggle(3)
	page = api.EventPage{}
	if got := <-waited; json.Unmarshal([]byte(got.body), &page) != nil || len(page.Events) == 0 || page.Events[0].Seq != last+1 || page.Events[0].Kind != "connector" {
		t.Errorf("a poll that waits got %d %s", got.status, got.body)
	}
	page = api.EventPage{}
	r.into(&page, "GET", fmt.Sprintf("/v1/events?after=%d", last), "")
	for i, event := range page.Events {
		if event.Seq != last+1+uint64(i) || event.ID != "fake/main" {
			t.Errorf("event %d is %+v", i, event)
		}
	}
	r.into(&page, "GET", "/v1/events?after=999999", "")
	if page.Complete || page.Last != r.host.Events.Last() {
		t.Errorf("a number of another run is answered with %+v", page)
	}
	r.play([]scenario{
		{name: "no number", request: get("/v1/events?after=x"), status: 400, code: "bad-request"},
		{name: "a negative number", request: get("/v1/events?after=-1"), status: 400, code: "bad-request"},
		{name: "a wait that is none", request: get("/v1/events?wait=soon"), status: 400, code: "bad-request"},
		{name: "a wait backwards", request: get("/v1/events?wait=-5s"), status: 400, code: "bad-request"},
		{name: "SSE with a number that is none", status: 400, code: "bad-request",
			request: request{method: "GET", path: "/v1/events", header: map[string]string{"Accept": "text/event-stream", "Last-Event-ID": "x"}}},
	})
}

// sse is one server-sent event.
type sse struct{ id, event, data string }

// stream reads events from a number on, as a browser's EventSource does.
func (r *rig) stream(lastID string) (next func() sse, stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	q, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://127.0.0.1:%d/v1/events?after=0", r.port), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+r.tokens["companion"])
	q.Header.Set("Accept", "text/event-stream")
	if lastID != "" {
		q.Header.Set("Last-Event-ID", lastID)
	}
	response, err := loner.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	if kind := response.Header.Get("Content-Type"); response.StatusCode != 200 || kind != "text/event-stream" {
		r.t.Fatalf("the stream is %d %s", response.StatusCode, kind)
	}
	lines := bufio.NewScanner(response.Body)
	next = func() sse {
		r.t.Helper()
		var one sse
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				one.id = value
			case "event":
				one.event = value
			case "data":
				one.data = value
			case "":
				if lines.Text() == "" && one.id != "" {
					return one
				}
			}
		}
		r.t.Fatalf("the stream ended: %v", lines.Err())
		return one
	}
	return next, func() { cancel(); response.Body.Close() }
}

// TestServerSentEvents: in order, without a gap, and on from Last-Event-ID.
func TestServerSentEvents(t *testing.T) {
	r := newRig(t)
	r.approve("echo")
	r.toggle(4)
	next, stop := r.stream("")
	var ids []string
	for want := uint64(1); want <= 5; want++ {
		one := next()
		if one.id != strconv.FormatUint(want, 10) || one.event != "" {
			t.Fatalf("event %d is %+v", want, one)
		}
		var event struct{ Seq uint64 }
		if json.Unmarshal([]byte(one.data), &event) != nil || event.Seq != want {
			t.Errorf("event %d says %s", want, one.data)
		}
		ids = append(ids, one.id)
	}
	stop()

	next, stop = r.stream(ids[2])
	if one := next(); one.id != ids[3] {
		t.Errorf("after %s comes %+v", ids[2], one)
	}
	stop()

	next, stop = r.stream("999999")
	defer stop()
	reset := next()
	if reset.event != "reset" || reset.id != strconv.FormatUint(r.host.Events.Last(), 10) {
		t.Fatalf("a number of another run is answered with %+v", reset)
	}
	r.toggle(1)
	if one := next(); one.event != "" || one.id <= reset.id && len(one.id) <= len(reset.id) {
		t.Errorf("after a reset to %s comes %+v", reset.id, one)
	}
}

// TestTooFarBehind: who is behind more than is kept is told to start over, and
// told so once.
func TestTooFarBehind(t *testing.T) {
	r := newRig(t)
	r.approve("echo")
	for r.host.Events.Last() < 1030 {
		r.toggle(2)
	}
	var page api.EventPage
	r.into(&page, "GET", "/v1/events?after=1", "")
	if page.Complete || len(page.Events) != 1024 || page.Last != page.Events[1023].Seq {
		t.Errorf("complete %v, %d events, last %d", page.Complete, len(page.Events), page.Last)
	}
	next, stop := r.stream("1")
	defer stop()
	reset := next()
	if reset.event != "reset" {
		t.Errorf("the stream begins with %+v", reset)
	}
	r.toggle(1)
	if one := next(); one.event != "" || one.id != strconv.FormatUint(r.host.Events.Last(), 10) {
		t.Errorf("after a reset to %s comes %+v", reset.id, one)
	}
}
