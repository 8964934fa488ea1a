package health

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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
	// OtherInstance: ours, of the right version, but the start from before or a
	// program that lies elsewhere.
	OtherInstance Outcome = 6
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
	case OtherInstance:
		return "other-instance"
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
	// ExpectInstanceNot is the instance that must not answer any more: the start
	// from before a reinstallation.
	ExpectInstanceNot string
	// ExpectWithin is the folder, of an application for instance, in which the
	// program that answers must lie.
	ExpectWithin string
	// Wait is how long to ask again until the outcome is Healthy; 0 asks once.
	Wait time.Duration
}

// Finding is what it found. Port and URL are where it looked, 0 and "" when
// there was nowhere to look. Version, Instance and Problems are empty unless the
// instance proved itself; PID and Executable also when the discovery file is not
// that instance's.
type Finding struct {
	OK       bool    `json:"ok"` // the outcome is Healthy
	Outcome  Outcome `json:"outcome"`
	Sentence string  `json:"sentence"`
	Port     int     `json:"port,omitempty"`
	URL      string  `json:"url,omitempty"`
	Version  string  `json:"version,omitempty"`
	Instance string  `json:"instance,omitempty"`
	PID      int     `json:"pid,omitempty"`
	// Executable is where the program lay when it started, as far as it knew.
	Executable string `json:"executable,omitempty"`
	Problems   []Code `json:"problems,omitempty"`
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
		// The file is believed only about the instance that has just proved itself.
		if place.Instance == reply.Instance {
			found.PID, found.Executable = place.PID, place.Executable
		}
		found.Outcome, found.Sentence = judge(reply, found.Executable, q)
		found.OK = found.Outcome == Healthy
	}
	return found
}

// judge puts the version before the health: whoever expects a version wants to
// know first whether the old program still answers.
func judge(reply Reply, executable string, q Question) (Outcome, string) {
	switch {
	case q.ExpectVersion != "" && reply.Version != q.ExpectVersion:
		return OtherVersion, fmt.Sprintf("Sallyport %s answers, not %s", reply.Version, q.ExpectVersion)
	case q.ExpectInstanceNot != "" && reply.Instance == q.ExpectInstanceNot:
		return OtherInstance, fmt.Sprintf("Sallyport %s answers, and has not been started again", reply.Version)
	case q.ExpectWithin != "" && !within(executable, q.ExpectWithin):
		return OtherInstance, fmt.Sprintf("Sallyport %s answers, and was started from another folder", reply.Version)
	case !reply.OK:
		return Unhealthy, fmt.Sprintf("Sallyport %s is not healthy: %s", reply.Version, joinCodes(reply.Problems))
	default:
		return Healthy, fmt.Sprintf("Sallyport %s is healthy", reply.Version)
	}
}

// within reports whether the program at path lies in dir, whatever links lead to
// either. A program that is gone, or that nobody knows the place of, does not.
func within(path, dir string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(path) {
		return false
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return false
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false
	}
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest) && rest != "."
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
