package cli

import "testing"

func TestTimesAreShort(t *testing.T) {
	for seconds, want := range map[int]string{60: "1m", 600: "10m", 1800: "30m", 3600: "1h", 5400: "1h30m", 36000: "10h", 86400: "24h"} {
		if got := shortTime(seconds); got != want {
			t.Errorf("%d s is %s, and not %s", seconds, got, want)
		}
	}
}

func TestTimesAsTheyAreTyped(t *testing.T) {
	for _, row := range []struct {
		question, idle string
		want           [2]int // -2 for none
		refused        bool
	}{
		{"30m", "", [2]int{30, -2}, false},
		{"default", "never", [2]int{-1, 0}, false},
		{"8h", "1h30m", [2]int{480, 90}, false},
		{"never", "", [2]int{}, true},
		{"30s", "", [2]int{}, true},
		{"90s", "", [2]int{}, true},
		{"-1m", "", [2]int{}, true},
		{"", "soon", [2]int{}, true},
	} {
		change, err := timesChange(row.question, row.idle)
		if row.refused != (err != nil) {
			t.Errorf("%q %q: %v", row.question, row.idle, err)
		}
		if err != nil {
			continue
		}
		got := [2]int{-2, -2}
		if change.QuestionMinutes != nil {
			got[0] = *change.QuestionMinutes
		}
		if change.IdleMinutes != nil {
			got[1] = *change.IdleMinutes
		}
		if got != row.want {
			t.Errorf("%q %q is %v, and not %v", row.question, row.idle, got, row.want)
		}
	}
	if change, err := timesChange("", ""); change != nil || err != nil {
		t.Errorf("nothing is %v, %v", change, err)
	}
}
