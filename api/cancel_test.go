package api_test

import (
	"strings"
	"testing"
	"time"
)

// A call that was given a name ends when that name is cancelled, and not when another is;
// a name is one call's while that is under way.
func TestACallIsCancelledByItsName(t *testing.T) {
	r := newRig(t)
	r.approve("slow", "echo")
	call := func(body string) answer {
		return r.send(request{method: "POST", path: "/v1/plugins/fake/main/call", as: "operator", body: body})
	}
	const underWay = "a call of that name is under way"
	ended := make(chan answer, 1)
	go func() {
		got := answer{body: underWay}
		for strings.Contains(got.body, underWay) { // the question below had the name just then
			got = call(`{"tool":"slow","args":{"ms":20000},"call":"one"}`)
		}
		ended <- got
	}()
	for deadline := time.Now().Add(15 * time.Second); !strings.Contains(call(`{"tool":"absent","args":{},"call":"one"}`).body, underWay); {
		if time.Now().After(deadline) {
			t.Fatal("the call has not begun")
		}
	}
	for _, name := range []string{"other", ""} {
		r.into(nil, "POST", "/v1/plugins/fake/main/call/cancel", `{"call":"`+name+`"}`)
	}
	select {
	case got := <-ended:
		t.Fatalf("ended by another name: %d %s", got.status, got.body)
	default:
	}
	r.into(nil, "POST", "/v1/plugins/fake/main/call/cancel", `{"call":"one"}`)
	if got := <-ended; r.refused(t, "the cancelled call", got) != "cancelled" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := call(`{"tool":"echo","args":{"text":"again"},"call":"one"}`); got.status != 200 {
		t.Errorf("the name is free again: %d %s", got.status, got.body)
	}
}
