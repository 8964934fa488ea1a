package host_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/host"
)

func minutes(n int) *int { return &n }

// TestTheOperatorChoosesHowLongThingsWait: within bounds, kept in config.json beside what
// else is there, on record, and taken back.
func TestTheOperatorChoosesHowLongThingsWait(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	usual := host.Times{Question: approvals.DefaultDecisionTTL, Idle: host.IdleAfter}
	if got := h.Times(); got != usual {
		t.Fatalf("where nobody chose it is %v", got)
	}
	for _, row := range []struct {
		says   string
		change host.ConfiguredTimes
		want   host.Times
		code   string
	}{
		{"a longer question", host.ConfiguredTimes{QuestionMinutes: minutes(60)}, host.Times{Question: time.Hour, Idle: host.IdleAfter}, ""},
		{"servers that are never stopped", host.ConfiguredTimes{IdleMinutes: minutes(0)}, host.Times{Question: time.Hour}, ""},
		{"a question that waits no time", host.ConfiguredTimes{QuestionMinutes: minutes(0)}, host.Times{Question: time.Hour}, "time-invalid"},
		{"a question that waits for days", host.ConfiguredTimes{QuestionMinutes: minutes(1441)}, host.Times{Question: time.Hour}, "time-invalid"},
		{"a number that overflows", host.ConfiguredTimes{QuestionMinutes: minutes(1 << 60)}, host.Times{Question: time.Hour}, "time-invalid"},
		{"servers that wait for weeks", host.ConfiguredTimes{IdleMinutes: minutes(7*24*60 + 1)}, host.Times{Question: time.Hour}, "time-invalid"},
		{"nothing", host.ConfiguredTimes{}, host.Times{Question: time.Hour}, "bad-request"},
		{"back to the usual", host.ConfiguredTimes{QuestionMinutes: minutes(-1), IdleMinutes: minutes(-1)}, usual, ""},
		{"back again", host.ConfiguredTimes{QuestionMinutes: minutes(-1)}, usual, ""},
	} {
		if err := h.SetTimes(t.Context(), row.change, operator); coded.Of(err) != row.code {
			t.Errorf("%s: %v", row.says, err)
		}
		if got := h.Times(); got != row.want {
			t.Errorf("after %s it is %v, and not %v", row.says, got, row.want)
		}
	}
}

// TestAQuestionWaitsAsLongAsChosen: those that are asked after it.
func TestAQuestionWaitsAsLongAsChosen(t *testing.T) {
	r := newRig(t)
	id := r.install("demo", "polite")
	h := r.open()
	defer r.close(h)
	if err := h.SetTimes(t.Context(), host.ConfiguredTimes{QuestionMinutes: minutes(90)}, operator); err != nil {
		t.Fatal(err)
	}
	d, err := h.Ask(t.Context(), id, operator)
	if err != nil || d.ExpiresAt.Sub(d.CreatedAt) != 90*time.Minute {
		t.Errorf("it waits for %s, %v", d.ExpiresAt.Sub(d.CreatedAt), err)
	}
}

// TestTimesThatAreNoneAreSaid: what somebody wrote into config.json counts within its
// bounds; otherwise what held before goes on, and health says so.
func TestTimesThatAreNoneAreSaid(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	if err := os.WriteFile(h.Places.ConfigFile(), []byte(`{"times": {"questionMinutes": 100000}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.Times().Question; got != approvals.DefaultDecisionTTL {
		t.Errorf("a question waits for %s", got)
	}
	said := false
	for _, problem := range h.Health.Problems() {
		said = said || strings.HasPrefix(string(problem.Code), "config")
	}
	if !said {
		t.Errorf("health says %+v", h.Health.Problems())
	}
}
