package health

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ready returns a tracker that has nothing to say.
func ready() *Tracker {
	t := NewTracker()
	t.Clear(Starting, "")
	return t
}

func codes(problems []Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, strings.TrimSuffix(string(p.Code)+"/"+p.Subject, "/"))
	}
	return strings.Join(all, " ")
}

func TestNothingIsHealthyBeforeItSaysSo(t *testing.T) {
	tracker := NewTracker()
	if got := fmt.Sprint(tracker.Failing()); got != "[starting]" {
		t.Errorf("a new tracker fails with %s, want [starting]", got)
	}
	tracker.Clear(Starting, "")
	if got := tracker.Failing(); len(got) != 0 || got == nil {
		t.Errorf("once started it fails with %v, want an empty list", got)
	}
}

func TestProblemsAreShownFailingFirstThenByName(t *testing.T) {
	tracker := ready()
	tracker.Set(LeftoversEnded, "", Args{"count": "2"})
	tracker.Set(ServerParked, "b/main", Args{"plugin": "b/main"})
	tracker.Set(ServerParked, "a/main", Args{"plugin": "a/main"})
	tracker.Set(PortChanged, "", Args{"old": "1", "port": "2"})
	tracker.Set(StoreDamaged, "", nil)
	want := "store-damaged port-changed server-parked/a/main server-parked/b/main leftovers-ended"
	if got := codes(tracker.Problems()); got != want {
		t.Errorf("shown %s\nwant  %s", got, want)
	}
	tracker.ClearAll(ServerParked)
	tracker.Clear(StoreDamaged, "")
	tracker.Clear(StoreDamaged, "never set")
	if got := codes(tracker.Problems()); got != "port-changed leftovers-ended" {
		t.Errorf("after clearing: %s", got)
	}
}

func TestUnknownCodeIsNotHarmless(t *testing.T) {
	tracker := ready()
	tracker.Set("made-up", "", nil)
	if got := fmt.Sprint(tracker.Failing()); got != "[made-up]" {
		t.Errorf("failing %s, want [made-up]", got)
	}
}

func TestProblemThatMayPassIsShownOnlyWhenItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := ready()
		changed, stop := tracker.Subscribe()
		defer stop()

		tracker.Set(WatchLimited, "a", Args{"folder": "a"})
		time.Sleep(4 * time.Second)
		tracker.Set(WatchLimited, "a", Args{"folder": "a"}) // again: the time goes on
		if got := codes(tracker.Problems()); got != "" {
			t.Errorf("after 4 s: %s, want nothing", got)
		}
		tracker.Set(WatchLimited, "b", Args{"folder": "b"})
		tracker.Clear(WatchLimited, "b")
		select {
		case <-changed:
			t.Error("told of a change that is not shown")
		default:
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := codes(tracker.Problems()); got != "watch-limited/a" {
			t.Errorf("after 5 s: %s, want the one that lasted", got)
		}
		select {
		case <-changed:
		default:
			t.Error("not told when it was shown")
		}
	})
}

func TestSubscriberHearsOfChangesAndOneThatSleepsDelaysNobody(t *testing.T) {
	tracker := ready()
	asleep, stop := tracker.Subscribe()
	defer stop()
	awake, stopAwake := tracker.Subscribe()

	for i := range 1000 {
		tracker.Set(ServerParked, fmt.Sprint(i), Args{"plugin": "p"})
	}
	<-awake
	<-asleep
	tracker.Set(ServerParked, "0", Args{"plugin": "p"}) // the same again: no news
	select {
	case <-awake:
		t.Error("told of a problem that is as it was")
	default:
	}
	tracker.Set(ServerParked, "0", Args{"plugin": "other words"})
	<-awake
	stopAwake()
	tracker.ClearAll(ServerParked)
	select {
	case <-awake:
		t.Error("told after stop")
	default:
	}
}

func TestProblemKeepsItsTimeWhenSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := ready()
		tracker.Set(PortChanged, "", Args{"old": "1", "port": "2"})
		since := tracker.Problems()[0].Since
		time.Sleep(time.Minute)
		tracker.Set(PortChanged, "", Args{"old": "1", "port": "3"})
		if p := tracker.Problems()[0]; !p.Since.Equal(since) || !strings.Contains(p.Text, "3") {
			t.Errorf("since %v with %q, want %v and the new text", p.Since, p.Text, since)
		}
	})
}

func TestCloseStopsTimersAndKeepsTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := ready()
		tracker.Set(StoreDamaged, "", nil)
		tracker.Set(WatchLimited, "", Args{"folder": "a"})
		tracker.Close()
		tracker.Set(AuditUnwritable, "", nil)
		time.Sleep(time.Hour)
		if got := codes(tracker.Problems()); got != "store-damaged" {
			t.Errorf("after Close: %s", got)
		}
	})
}

func TestTrackerIsSafeFromManyGoroutines(t *testing.T) {
	tracker := ready()
	defer tracker.Close()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				tracker.Set(WatchLimited, fmt.Sprint(i), nil)
				tracker.Set(ServerParked, fmt.Sprint(i), nil)
				tracker.Problems()
				_, stop := tracker.Subscribe()
				stop()
				tracker.ClearAll(ServerParked)
				tracker.Clear(WatchLimited, fmt.Sprint(i))
			}
		})
	}
	wg.Wait()
	if got := codes(tracker.Problems()); got != "" {
		t.Errorf("left over: %s", got)
	}
}

func TestEveryKnownProblemIsDescribedOnce(t *testing.T) {
	seen := map[Code]bool{}
	for _, k := range Kinds() {
		if seen[k.Code] {
			t.Errorf("%s is listed twice", k.Code)
		}
		seen[k.Code] = true
		if k.Title == "" || strings.HasSuffix(k.Title, ".") {
			t.Errorf("%s: title %q is empty or a sentence", k.Code, k.Title)
		}
		if text := k.Text(nil); !strings.HasSuffix(text, ".") || strings.ContainsAny(text, "{}") {
			t.Errorf("%s: text %q is not a sentence or shows a placeholder", k.Code, text)
		}
		if k.Severity == Failing && k.VisibleAfter != 0 {
			t.Errorf("%s fails but counts only after %v", k.Code, k.VisibleAfter)
		}
		if k.Severity != Info && k.Next == "" && k.Code != Starting && k.Code != SealKeyFile {
			t.Errorf("%s says nothing about what to do", k.Code)
		}
		if kindOf(k.Code).Title != k.Title {
			t.Errorf("%s is not found", k.Code)
		}
	}
}

func TestArgumentOfAProblemIsNotATemplate(t *testing.T) {
	got := with("{a} and {b}")(Args{"a": "{b}", "b": "x"})
	if got != "{b} and x" {
		t.Errorf("got %q", got)
	}
}
