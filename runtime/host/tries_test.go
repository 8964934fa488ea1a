package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/host"
)

// tried is an allow that is being carried out.
type tried struct {
	decision approvals.Decision
	next     chan approvals.Decision
	err      chan error
}

// allow asks about a plugin and allows it to run, in the background.
func (r *rig) allow(h *host.Host, behaviour string) tried {
	r.t.Helper()
	asked, err := h.Ask(r.t.Context(), r.install("fake", behaviour), operator)
	if err != nil {
		r.t.Fatal(err)
	}
	out := tried{asked, make(chan approvals.Decision, 1), make(chan error, 1)}
	go func() {
		next, err := h.Answer(r.t.Context(), asked.ID, approvals.Answer{Allow: true}, operator)
		out.next <- next
		out.err <- err
	}()
	return out
}

// until follows a try until it is as wanted.
func until(t *testing.T, h *host.Host, decision string, wanted func(host.Try) bool) host.Try {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	after := -1
	for {
		now, err := h.Probe(ctx, decision, after)
		if coded.Of(err) == "no-probe" && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
			continue // not begun yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if wanted(now) {
			return now
		}
		if now.Over || ctx.Err() != nil {
			t.Fatalf("the try never is as wanted: %+v", now)
		}
		after = now.Revision
	}
}

func doing(now host.Try) []string {
	var all []string
	for _, step := range now.Steps {
		all = append(all, step.Doing)
	}
	return all
}

// TestAFirstTryThatIsCancelled: it tells what it does and what it writes; the cancel ends
// the whole tree, also of one that ignores polite words; nothing is approved, nothing is
// denied, the journal says who did it, and it may be asked again.
func TestAFirstTryThatIsCancelled(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	allowed := r.allow(h, "ignores-eof+never-ready")
	now := until(t, h, allowed.decision.ID, func(now host.Try) bool { return len(now.Stderr) >= 2 })
	if want := []string{"checking", "starting", "handshake"}; !slices.Equal(doing(now), want) || now.Stderr[0] != "still waiting, 1" {
		t.Errorf("it tells of %v and %q", doing(now), now.Stderr)
	}
	closed, err := h.CancelProbe(t.Context(), allowed.decision.ID, operator)
	if err != nil || closed.State != approvals.DecisionProbeFailed || closed.Code != "probe-cancelled" || closed.Next != "" {
		t.Errorf("the decision is %s %s %q, %v", closed.State, closed.Code, closed.Next, err)
	}
	if err := <-allowed.err; coded.Of(err) != "probe-cancelled" {
		t.Errorf("who allowed it hears %v", err)
	}
	if left := h.Processes.Children(); len(left) != 0 {
		t.Errorf("of the try %d processes are left", len(left))
	}
	id := allowed.decision.Subject()
	if now := h.Gate.Status(t.Context(), id); now.State != approvals.ApprovalRequired || now.Reason != "probe-cancelled" || now.Approved != nil || now.Decision != "" {
		t.Errorf("it stands at %+v", now)
	}
	journal, err := h.Gate.Journal(t.Context(), allowed.decision.ID)
	if last := journal[len(journal)-1]; err != nil || last.By != "tester via cli" || last.Detail != "probe-cancelled" {
		t.Errorf("the journal ends with %+v, %v", last, err)
	}
	if last := until(t, h, allowed.decision.ID, func(now host.Try) bool { return now.Over }); len(last.Stderr) == 0 || coded.Of(last.Err) != "probe-cancelled" {
		t.Errorf("afterwards it tells of %q, %v", last.Stderr, last.Err)
	}
	if _, err := h.CancelProbe(t.Context(), allowed.decision.ID, operator); coded.Of(err) != "no-probe" {
		t.Errorf("a second cancel: %v", err)
	}
	again, err := h.Ask(t.Context(), id, operator)
	if err != nil || again.State != approvals.DecisionOpen || again.Stage != approvals.StageRun {
		t.Errorf("asked again it is %+v, %v", again, err)
	}
	if _, err := h.CancelProbe(t.Context(), again.ID, operator); coded.Of(err) != "no-probe" {
		t.Errorf("a question that nobody answered is cancelled: %v", err)
	}
}

// TestAFirstTryIsNotCancelledByAnAgent, nor by who may only watch.
func TestAFirstTryIsNotCancelledByAnAgent(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	allowed := r.allow(h, "never-ready")
	until(t, h, allowed.decision.ID, func(now host.Try) bool { return len(now.Stderr) > 0 })
	for _, via := range []string{approvals.ViaAgent, "companion", ""} {
		if _, err := h.CancelProbe(t.Context(), allowed.decision.ID, approvals.By{User: "x", Via: via}); coded.Of(err) != "answer-not-allowed" {
			t.Errorf("by %q: %v", via, err)
		}
	}
	if now, err := h.Probe(t.Context(), allowed.decision.ID, -1); err != nil || now.Over {
		t.Errorf("the try is %+v, %v", now, err)
	}
	if _, err := h.CancelProbe(t.Context(), allowed.decision.ID, operator); err != nil {
		t.Error(err)
	}
	<-allowed.err
}

// TestAFirstTryThatComesToNothing says why, what to do next, and what it wrote last.
func TestAFirstTryThatComesToNothing(t *testing.T) {
	for _, row := range []struct{ behaviour, code, sentence, next, wrote string }{
		{"fails", "transport-closed", "exit status 3", "last error output", "cannot start, as asked"},
		{"noise-flood", "malformed-json", "", "does not speak MCP", ""},
	} {
		t.Run(row.behaviour, func(t *testing.T) {
			r := newRig(t)
			h := r.open()
			defer r.close(h)
			allowed := r.allow(h, row.behaviour)
			err := <-allowed.err
			told, next := "", ""
			var why *coded.Error
			if errors.As(err, &why) {
				told, next = why.Sentence, why.Next
			}
			if coded.Of(err) != row.code || !strings.Contains(told, row.sentence) || !strings.Contains(next, row.next) {
				t.Errorf("it is %v: %q, next %q", err, told, next)
			}
			now := until(t, h, allowed.decision.ID, func(now host.Try) bool { return now.Over })
			if coded.Of(now.Err) != row.code || !strings.Contains(strings.Join(now.Stderr, "\n"), row.wrote) {
				t.Errorf("it tells of %v, %q", now.Err, now.Stderr)
			}
			if left := h.Processes.Children(); len(left) != 0 {
				t.Errorf("%d processes are left", len(left))
			}
		})
	}
}

// TestAFirstTryThatComesUp goes through every step and leads to the next question.
func TestAFirstTryThatComesUp(t *testing.T) {
	r := newRig(t)
	h := r.open()
	defer r.close(h)
	allowed := r.allow(h, "polite")
	if err := <-allowed.err; err != nil {
		t.Fatal(err)
	}
	if next := <-allowed.next; next.Stage != approvals.StageTools {
		t.Errorf("the next question is %+v", next)
	}
	now := until(t, h, allowed.decision.ID, func(now host.Try) bool { return now.Over })
	if want := []string{"checking", "starting", "handshake", "listing", "stopping"}; !slices.Equal(doing(now), want) || now.Err != nil {
		t.Errorf("it went through %v, %v", doing(now), now.Err)
	}
	if _, err := h.Probe(t.Context(), "d-absent", 0); coded.Of(err) != "decision-unknown" {
		t.Errorf("of no decision: %v", err)
	}
}
