package host

import (
	"context"
	"testing"

	"sallyport/runtime/plugins"
)

// A secret that is changed while a server starts with the old value: the start is
// found when it has ended, also where the new value was read by a trial meanwhile.
func TestAStartThatReadASecretBeforeItsChange(t *testing.T) {
	var h Host
	id := plugins.ID{Plugin: "p", Server: "s"}
	read := func(probe bool) *oneStart {
		start := h.forStart(context.Background(), id, probe).Value(startKey{}).(*reading)
		start.counts["A"] = h.changes.count("A")
		return start.oneStart
	}
	read(false)
	if h.changes.after(h.changes.started(id)) {
		t.Error("nothing was changed")
	}
	h.changes.note("B")
	if h.changes.after(h.changes.started(id)) {
		t.Error("it does not use what was changed")
	}
	h.changes.note("A")
	read(true)
	if !h.changes.after(h.changes.started(id)) {
		t.Error("its secret was changed after it was read")
	}
	read(false)
	if h.changes.after(h.changes.started(id)) {
		t.Error("the next start has the new value")
	}
}
