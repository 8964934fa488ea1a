package approvals

import (
	"encoding/json"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// Decision is a durable question to the operator (spec/approval.md 4).
type Decision struct {
	Schema     int           `json:"schema"`
	ID         string        `json:"id"`
	Kind       string        `json:"kind"`   // KindApproval or KindCall
	Stage      Stage         `json:"stage"`  // may it run, or which tools
	Action     string        `json:"action"` // "install", "upgrade", "reconnect", "tools"; of a bundle: ActInstall …
	Plugin     string        `json:"plugin"`
	Server     string        `json:"server"`
	Options    []string      `json:"options"`
	CreatedAt  time.Time     `json:"createdAt"`
	ExpiresAt  time.Time     `json:"expiresAt"`
	State      DecisionState `json:"state"`
	Code       string        `json:"code,omitempty"` // why it is closed, where nobody answered
	Answer     string        `json:"answer,omitempty"`
	AnsweredBy *By           `json:"answeredBy,omitempty"`
	AnsweredAt *time.Time    `json:"answeredAt,omitempty"`
	AskedBy    By            `json:"askedBy"`
	Next       string        `json:"next,omitempty"` // the decision that took its place or follows
	// Identity and Fields are what was shown: an answer is for exactly these.
	Identity Identity     `json:"identity"`
	Fields   Fields       `json:"fields"`
	Path     string       `json:"path"`
	Offered  *storedOffer `json:"offer,omitempty"` // stage tools
	Tools    []string     `json:"tools,omitempty"` // chosen
	// Bundle is what a decision of the stage bundle is about; Fields and Path are then
	// empty, and so is Server.
	Bundle *BundleQuestion `json:"bundle,omitempty"`
	// Call is what a decision of the kind call is about; Fields, Path and Stage are
	// then empty. For is how long its allow holds.
	Call *CallQuestion `json:"call,omitempty"`
	For  Lasting       `json:"for,omitempty"`
}

// KindApproval is the kind of a decision whether a connector may run, and with which
// tools.
const KindApproval = "approval"

// Stage is which of the two questions it is.
type Stage string

// The stages, in order.
const (
	StageRun   Stage = "run"
	StageTools Stage = "tools"
)

// DecisionState is where a decision is in its life. Every state but the first
// three is final.
type DecisionState string

// The states of a decision.
const (
	DecisionOpen        DecisionState = "open"
	DecisionProbing     DecisionState = "probing"  // allowed to run, being tried
	DecisionApplying    DecisionState = "applying" // a bundle is being put in place or removed
	DecisionAllowed     DecisionState = "allowed"
	DecisionDenied      DecisionState = "denied"
	DecisionExpired     DecisionState = "expired"
	DecisionSuperseded  DecisionState = "superseded"
	DecisionChanged     DecisionState = "changed"      // changed-since-asked
	DecisionProbeFailed DecisionState = "probe-failed" // allowed, but it did not come up
	DecisionFailed      DecisionState = "failed"       // allowed, but it could not be done
	DecisionInterrupted DecisionState = "interrupted"  // Sallyport ended meanwhile
)

// The options and answers of an approval (spec/approval.md 4.1).
const (
	Allow = "allow"
	Deny  = "deny"
)

// Subject is the connector that the decision is about.
func (d Decision) Subject() plugins.ID { return plugins.ID{Plugin: d.Plugin, Server: d.Server} }

// Offer is what the server provided, for the stage tools; zero before.
func (d Decision) Offer() Offer {
	if d.Offered == nil {
		return Offer{}
	}
	return d.Offered.offer()
}

// Open reports whether an answer is awaited or being carried out.
func (d Decision) Open() bool {
	return d.State == DecisionOpen || d.State == DecisionProbing || d.State == DecisionApplying
}

// closed returns d in a final state. What was on offer is dropped: what was chosen
// of it is in the approval, and a thousand old questions are not to be kept whole.
func (d Decision) closed(state DecisionState, code string) Decision {
	d.State, d.Code, d.Offered = state, code, nil
	return d.withoutArguments()
}

// withoutArguments drops the arguments of a call, which are for whoever answers: what
// is kept is their sum, which says which call it was.
func (d Decision) withoutArguments() Decision {
	if d.Call != nil {
		call := *d.Call
		call.Arguments, call.LeftOut = "", false
		d.Call = &call
	}
	return d
}

// JournalEntry is one thing that happened to a decision.
type JournalEntry struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	By     string    `json:"by"`
	Detail string    `json:"detail"`
}

func decodeDecision(body []byte) (*Decision, error) {
	var d Decision
	err := json.Unmarshal(body, &d)
	return &d, err
}

func decisionClosed(d Decision) error {
	return &coded.Error{Code: "decision-closed", Sentence: "the decision is closed (" + string(d.State) + ")",
		Next: "look at the connector's state; ask again if needed"}
}

var errNoDecision = coded.Error{Code: "decision-unknown", Sentence: "there is no such decision", Next: "see the open ones: sallyport decisions list"}
