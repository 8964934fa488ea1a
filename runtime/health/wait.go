package health

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/loopback"
)

// Outcome is what the health command found. Its value is the exit code
// (spec/local-api.md 5); 2 is usage and no outcome.
type Outcome int

// The outcomes.
const (
	Healthy      Outcome = 0
	Unhealthy    Outcome = 1
	Absent       Outcome = 3 // not running
	OtherProgram Outcome = 4 // another program is on the port
	OtherVersion Outcome = 5 // another version answers
)

// pollEvery is the pause between two tries while waiting.
const pollEvery = 100 * time.Millisecond

// ExitCode returns the exit code of the health command.
func (o Outcome) ExitCode() int { return int(o) }

// String names the outcome for people and JSON.
func (o Outcome) String() string {
	switch o {
	case Healthy:
		return "healthy"
	case Unhealthy:
		return "unhealthy"
	case Absent:
		return NotRunning
	case OtherProgram:
		return Stranger
	case OtherVersion:
		return "other-version"
	default:
		return fmt.Sprintf("outcome-%d", int(o))
	}
}

// MarshalText makes the name the JSON form.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Question is what the health command asks.
type Question struct {
	// StateDir has the discovery file and the key. Required.
	StateDir string
	// ExpectVersion must be the version that answers, where it is set.
	ExpectVersion string
	// Wait is how long to ask again until the outcome is Healthy; 0 asks once.
	Wait time.Duration
}

// Finding is what it found. Port and URL are where it looked, 0 and "" when
// there was nowhere to look. Version, Instance and Problems are empty unless the
// instance proved itself.
type Finding struct {
	OK       bool    `json:"ok"` // the outcome is Healthy
	Outcome  Outcome `json:"outcome"`
	Sentence string  `json:"sentence"`
	Port     int     `json:"port,omitempty"`
	URL      string  `json:"url,omitempty"`
	Version  string  `json:"version,omitempty"`
	Instance string  `json:"instance,omitempty"`
	Problems []Code  `json:"problems,omitempty"`
}

// Ask finds the port in the discovery file, proves the instance and compares the
// version. It reads the file again at every try, because a new start may have
// taken another port.
func Ask(ctx context.Context, q Question) Finding {
	deadline := time.Now().Add(q.Wait)
	for {
		finding := once(ctx, q)
		left := time.Until(deadline)
		if finding.Outcome == Healthy || left <= 0 {
			return finding
		}
		select {
		case <-ctx.Done():
			return finding
		case <-time.After(min(pollEvery, left)):
		}
	}
}

func once(ctx context.Context, q Question) Finding {
	place, err := loopback.ReadDiscovery(q.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return Finding{Outcome: Absent, Sentence: "Sallyport is not running"}
	}
	if err != nil {
		return Finding{Outcome: Absent, Sentence: err.Error()}
	}
	found := Finding{Port: place.Port, URL: place.URL}
	// Without a key nothing can prove itself; whether anything listens is still
	// worth knowing, so an empty key is asked with.
	key, _ := ReadKey(q.StateDir)
	reply, err := Prove(ctx, place.Port, key)
	switch {
	case coded.Of(err) == NotRunning:
		found.Outcome, found.Sentence = Absent, "Sallyport is not running"
	case ctx.Err() != nil:
		found.Outcome, found.Sentence = Absent, "no answer before the end of the wait"
	case err != nil:
		found.Outcome, found.Sentence = OtherProgram, err.Error()
	default:
		found.Version, found.Instance, found.Problems = reply.Version, reply.Instance, reply.Problems
		found.Outcome, found.Sentence = judge(reply, q.ExpectVersion)
		found.OK = found.Outcome == Healthy
	}
	return found
}

// judge puts the version before the health: whoever expects a version wants to
// know first whether the old program still answers.
func judge(reply Reply, expect string) (Outcome, string) {
	switch {
	case expect != "" && reply.Version != expect:
		return OtherVersion, fmt.Sprintf("Sallyport %s answers, not %s", reply.Version, expect)
	case !reply.OK:
		return Unhealthy, fmt.Sprintf("Sallyport %s is not healthy: %s", reply.Version, joinCodes(reply.Problems))
	default:
		return Healthy, fmt.Sprintf("Sallyport %s is healthy", reply.Version)
	}
}

func joinCodes(codes []Code) string {
	text := ""
	for i, c := range codes {
		if i > 0 {
			text += ", "
		}
		text += string(c)
	}
	return text
}
