package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"sallyport/internal/coded"
)

// Record is one line of the audit: identifiers only (spec/audit.md 1). There is
// no field for arguments, results or any other free text, and a value that is
// longer than an identifier is cut.
type Record struct {
	Seq uint64 // order and name of the record, from 1 without a gap; set by the log
	At  time.Time
	// Actor is who (an operating-system user, a client, "sallyport") and Via the
	// way in ("gui", "cli", "api", "mcp", …).
	Actor, Via string
	Action     string
	// Plugin, Version and Binding name a connector, Target what of it or of
	// Sallyport: a tool, a secret's name, a setting.
	Plugin, Version, Binding, Target string
	Result                           string
	Reason                           string // a code, empty where nothing was refused or failed
	Identity                         string // the approved identity's digest
	Decision                         string // a decision's id
	Client                           string // a client's name
	Count                            int    // how many equal events this stands for, at least 1
	DurationMs                       int64
	Prev, Hash                       string // the chain; set by the log
}

// Actions, spec/audit.md 2.
const (
	Install      = "install"
	Enable       = "enable"
	Disable      = "disable"
	Update       = "update"
	Uninstall    = "uninstall"
	Ask          = "ask"
	Allow        = "allow"
	Deny         = "deny"
	Expire       = "expire"
	Revoke       = "revoke"
	Start        = "start"
	Stop         = "stop"
	Crash        = "crash"
	Park         = "park"
	Call         = "call"
	Refuse       = "refuse"
	SecretSet    = "secret.set"
	SecretDelete = "secret.delete"
	SecretUse    = "secret.use"
	OAuthLogin   = "oauth.login"
	OAuthLogout  = "oauth.logout"
	OAuthRefresh = "oauth.refresh"
	ClientAdd    = "client.add"
	ClientRemove = "client.remove"
	ClientGrant  = "client.grant"
	ClientRevoke = "client.revoke"
	ClientRotate = "client.rotate"
	Import       = "import"
	Connect      = "connect"
	Console      = "console"
	Setting      = "setting"
	Export       = "export"
	Retain       = "retain"
)

// Results, spec/audit.md 2.
const (
	OK      = "ok"
	Refused = "refused"
	Failed  = "failed"
)

// Actions returns every action in the contract's order.
func Actions() []string {
	return []string{
		Install, Enable, Disable, Update, Uninstall, Ask, Allow, Deny, Expire, Revoke,
		Start, Stop, Crash, Park, Call, Refuse, SecretSet, SecretDelete, SecretUse,
		OAuthLogin, OAuthLogout, OAuthRefresh,
		ClientAdd, ClientRemove, ClientGrant, ClientRevoke, ClientRotate, Import, Connect, Console, Setting, Export, Retain,
	}
}

// Results returns every result in the contract's order.
func Results() []string { return []string{OK, Refused, Failed} }

// genesis is the first record's prev.
var genesis = strings.Repeat("0", hex.EncodedLen(sha256.Size))

const (
	timeFormat = "2006-01-02T15:04:05.000Z" // RFC 3339, UTC, milliseconds
	maxField   = 512                        // bytes of one value
	cutMark    = "…"                        // ends a value that was cut
	pathMark   = "(path)"                   // stands for an absolute path
	maxNumber  = 1<<53 - 1                  // what JCS writes exactly
)

// check refuses a record of an action or result that the contract does not name.
func (r Record) check() error {
	if !slices.Contains(Actions(), r.Action) || !slices.Contains(Results(), r.Result) {
		return coded.New(CodeInvalid, fmt.Sprintf("there is no audit record with action %q and result %q", shown(r.Action), shown(r.Result)))
	}
	return nil
}

// tidy returns r as it is kept: values bounded, the time in UTC milliseconds.
func (r Record) tidy(now time.Time) Record {
	for _, value := range r.values() {
		*value = shown(*value)
	}
	if r.At.IsZero() {
		r.At = now
	}
	r.At = r.At.UTC().Truncate(time.Millisecond)
	if r.At.Year() < 0 || r.At.Year() > 9999 { // no RFC 3339 form
		r.At = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	r.Count = min(max(r.Count, 1), maxNumber)
	r.DurationMs = min(max(r.DurationMs, 0), maxNumber)
	return r
}

func (r *Record) values() []*string {
	return []*string{
		&r.Actor, &r.Via, &r.Action, &r.Plugin, &r.Version, &r.Binding, &r.Target,
		&r.Result, &r.Reason, &r.Identity, &r.Decision, &r.Client,
	}
}

// shown bounds one value. An absolute path in it is a mistake of the caller that
// must not reach the audit.
func shown(value string) string {
	value = strings.ToValidUTF8(value, "\ufffd")
	if isAbsolute(value) {
		return pathMark
	}
	if rest, is := strings.CutPrefix(value, "file:"); is && isAbsolute(rest) {
		return "file:" + pathMark
	}
	if len(value) <= maxField {
		return value
	}
	cut := maxField - len(cutMark)
	for !utf8.RuneStart(value[cut]) {
		cut--
	}
	return value[:cut] + cutMark
}

// isAbsolute reports whether value begins as a path of any system does.
func isAbsolute(value string) bool {
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, `\\`) || strings.HasPrefix(value, "~/") {
		return true
	}
	letter := len(value) > 2 && (value[0]|0x20) >= 'a' && (value[0]|0x20) <= 'z'
	return letter && value[1] == ':' && (value[2] == '\\' || value[2] == '/')
}

// row is a record as it is in the database, at still being text: what is
// verified are the bytes that are there.
type row struct {
	Record
	at string
}

func newRow(r Record) row { return row{r, r.At.Format(timeFormat)} }

// sum is the record's hash: SHA-256 over prev and the JCS form of the record
// without hash, in lower-case hex (spec/audit.md 4). Values that are not UTF-8
// have no JCS form; ok is then false.
func (r row) sum() (hash string, ok bool) {
	buf := make([]byte, 0, 1024)
	buf = append(buf, r.Prev...)
	buf, ok = r.appendJCS(buf)
	if !ok {
		return "", false
	}
	sum := sha256.Sum256(buf)
	return hex.EncodeToString(sum[:]), true
}

// appendJCS writes the members in the order of JCS; a test compares it with
// internal/jcs.
func (r row) appendJCS(buf []byte) ([]byte, bool) {
	ok := true
	text := func(name, value string) {
		buf = append(buf, name...)
		quoted, err := jsontext.AppendQuote(buf, value)
		buf, ok = quoted, ok && err == nil
	}
	number := func(name string, value int64) {
		buf = append(buf, name...)
		buf = strconv.AppendInt(buf, value, 10)
		ok = ok && value <= maxNumber && value >= -maxNumber
	}
	text(`{"action":`, r.Action)
	text(`,"actor":`, r.Actor)
	text(`,"at":`, r.at)
	text(`,"binding":`, r.Binding)
	text(`,"client":`, r.Client)
	number(`,"count":`, int64(r.Count))
	text(`,"decision":`, r.Decision)
	number(`,"durationMs":`, r.DurationMs)
	text(`,"identity":`, r.Identity)
	text(`,"plugin":`, r.Plugin)
	text(`,"prev":`, r.Prev)
	text(`,"reason":`, r.Reason)
	text(`,"result":`, r.Result)
	number(`,"seq":`, int64(r.Seq))
	text(`,"target":`, r.Target)
	text(`,"version":`, r.Version)
	text(`,"via":`, r.Via)
	return append(buf, '}'), ok
}

// wire is a record's JSON, members in the contract's order.
type wire struct {
	Seq        uint64 `json:"seq"`
	At         string `json:"at"`
	Actor      string `json:"actor"`
	Via        string `json:"via"`
	Action     string `json:"action"`
	Plugin     string `json:"plugin"`
	Version    string `json:"version"`
	Binding    string `json:"binding"`
	Target     string `json:"target"`
	Result     string `json:"result"`
	Reason     string `json:"reason"`
	Identity   string `json:"identity"`
	Decision   string `json:"decision"`
	Client     string `json:"client"`
	Count      int    `json:"count"`
	DurationMs int64  `json:"durationMs"`
	Prev       string `json:"prev"`
	Hash       string `json:"hash"`
}

// MarshalJSON writes the names of spec/audit.md 1 and the time as it is hashed.
func (r Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{
		r.Seq, r.At.UTC().Format(timeFormat), r.Actor, r.Via, r.Action, r.Plugin, r.Version, r.Binding,
		r.Target, r.Result, r.Reason, r.Identity, r.Decision, r.Client, r.Count, r.DurationMs, r.Prev, r.Hash,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Record) UnmarshalJSON(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	at, err := time.Parse(timeFormat, w.At)
	if err != nil {
		return fmt.Errorf("cannot read audit record %d: %w", w.Seq, err)
	}
	*r = Record{
		w.Seq, at, w.Actor, w.Via, w.Action, w.Plugin, w.Version, w.Binding, w.Target,
		w.Result, w.Reason, w.Identity, w.Decision, w.Client, w.Count, w.DurationMs, w.Prev, w.Hash,
	}
	return nil
}
