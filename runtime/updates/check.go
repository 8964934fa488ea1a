package updates

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"sallyport/internal/coded"
)

// source is where releases of this build are announced, and the keys that sign that:
// "URL,KEY" or "URL,KEY,KEY". It is written by the linker and by nobody else
// (scripts/version ldflags); a build of a developer's has none.
var source string

// Source is an address and whose word counts about it.
type Source struct {
	URL  string
	Keys []ed25519.PublicKey
}

// Compiled is the source that was put into this program.
func Compiled() (Source, error) { return parseSource(source) }

func parseSource(text string) (Source, error) {
	words := strings.Split(text, ",")
	if text == "" || len(words) < 2 {
		return Source{}, &coded.Error{Code: "updates-not-configured", Sentence: "this build of Sallyport does not know where updates are announced",
			Next: "look where you got it from; or name a manifest and its key: sallyport updates check --manifest URL --key KEY"}
	}
	return NewSource(words[0], words[1:]...)
}

// NewSource is a source that somebody names.
func NewSource(address string, keys ...string) (Source, error) {
	if !isAddress(address) {
		return Source{}, &coded.Error{Code: "updates-address-invalid", Sentence: "the address of the manifest is not one of https", Next: "give an address that begins with https://, without a password"}
	}
	s := Source{URL: address}
	for _, text := range keys {
		key, err := ParseKey(text)
		if err != nil {
			return Source{}, err
		}
		s.Keys = append(s.Keys, key)
	}
	if len(s.Keys) == 0 {
		_, err := ParseKey("")
		return Source{}, err
	}
	return s, nil
}

// Host is the name of the machine that is asked.
func (s Source) Host() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// State is what a check finds.
type State string

// The states. Unknown is a program that has no version to compare.
const (
	Newest  State = "newest"
	Newer   State = "newer"
	Unknown State = "unknown"
)

// Result is what a check found. An older or equal version is no update and has no files.
type Result struct {
	State   State
	Version string // the newest that was announced
	Date    time.Time
	Notes   string
	Files   []File // for this system
}

// Checker asks. Client decides where a request may go, and must follow no redirect.
type Checker struct {
	Client   *http.Client
	Now      func() time.Time
	Version  string // of this program
	OS, Arch string
}

// checkTime is how long both requests may take together.
const checkTime = 20 * time.Second

// Check asks a source once.
func (c Checker) Check(ctx context.Context, s Source) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	raw, err := c.get(ctx, s.URL, maxManifest)
	if err != nil {
		return Result{}, err
	}
	signature, err := c.get(ctx, s.URL+SignatureSuffix, maxSignature)
	if err != nil {
		return Result{}, err
	}
	if err := Verify(s.Keys, raw, signature); err != nil {
		return Result{}, err
	}
	m, err := Parse(raw)
	if err != nil {
		return Result{}, err
	}
	if err := m.holds(c.Now()); err != nil {
		return Result{}, err
	}
	return c.compare(m), nil
}

func (m Manifest) holds(now time.Time) error {
	switch {
	case m.Date.After(now.Add(ahead)):
		return &coded.Error{Code: "updates-from-the-future", Sentence: fmt.Sprintf("what the address says about updates is of %s, which is still to come", day(m.Date)),
			Next: "check the clock of this computer, then try again"}
	case !now.Before(m.Expires):
		return &coded.Error{Code: "updates-expired", Sentence: fmt.Sprintf("what the address says about updates held until %s, so it does not tell what is newest", day(m.Expires)),
			Next: "check the clock of this computer; if it is right, look for updates on the project's own page"}
	}
	return nil
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

func (c Checker) compare(m Manifest) Result {
	r := Result{State: Newest, Version: m.Version, Date: m.Date, Notes: m.Notes, Files: []File{}}
	switch {
	case !isVersion(c.Version):
		r.State = Unknown
	case semver.Compare("v"+m.Version, "v"+c.Version) > 0:
		r.State = Newer
	default:
		return r
	}
	for _, f := range m.Files {
		if f.OS == c.OS && slices.Contains([]string{c.Arch, "universal", "all"}, f.Arch) {
			r.Files = append(r.Files, f)
		}
	}
	return r
}

// get reads a small file from an address. What the server writes about a failure is not
// shown.
func (c Checker) get(ctx context.Context, address string, most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, unreachable("the address is no URL", err)
	}
	request.Header.Set("User-Agent", "sallyport") // and no version: who asks is nobody's business
	answer, err := c.Client.Do(request)
	if err != nil {
		var refusal *coded.Error
		if errors.As(err, &refusal) {
			return nil, &coded.Error{Code: "updates-address-refused", Sentence: "the address for updates is not asked: " + refusal.Sentence,
				Next: "check the name resolution of this computer; a machine in your own network is named with --manifest and --key", Err: err}
		}
		return nil, unreachable("it does not answer", err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return nil, &coded.Error{Code: "updates-redirected", Sentence: "the address for updates leads to another one, which is not followed", Next: "name the address that the manifest is really at"}
	case answer.StatusCode != http.StatusOK:
		return nil, unreachable(fmt.Sprintf("it answers with %d", answer.StatusCode), nil)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return nil, unreachable("its answer ends early", err)
	case int64(len(raw)) > most:
		return nil, &coded.Error{Code: "updates-too-large", Sentence: "what the address says about updates is larger than it can be", Next: nextInvalid}
	}
	return raw, nil
}

func unreachable(why string, err error) error {
	return &coded.Error{Code: "updates-unreachable", Sentence: "it cannot be asked whether there is an update: " + why, Next: "check the network connection, and try again later", Err: err}
}
