package audit

import (
	"testing"
	"time"
)

func TestActivityCountsCallsAndRefusalsByHours(t *testing.T) {
	l := mixed(t) // one record a minute from noon: every fourth refused
	mustAppend(t, l, Record{At: noon.Add(90 * time.Minute), Action: Call, Result: Failed, Reason: "x", Count: 3})
	mustAppend(t, l, Record{At: noon.Add(91 * time.Minute), Action: Start, Result: OK})
	got, err := l.Activity(t.Context(), noon.Add(30*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	want := []Hour{{At: noon, Calls: 23, Refused: 7}, {At: noon.Add(time.Hour), Calls: 3, Failed: 3}}
	if len(got) != len(want) {
		t.Fatalf("%+v, not %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("hour %d is %+v, not %+v", i, got[i], want[i])
		}
	}
	if got, err := l.Activity(t.Context(), noon.Add(24*time.Hour)); err != nil || got == nil || len(got) != 0 {
		t.Errorf("a day later: %v, %v", got, err)
	}
}
