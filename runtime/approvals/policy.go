package approvals

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// Verdict is what a policy says about a call.
type Verdict string

// The verdicts (spec/permissions.md 3). MustAsk opens a decision of the kind call.
const (
	MayCall  Verdict = "allow"
	MustAsk  Verdict = "ask"
	NotAtAll Verdict = "deny"
)

// Rule is one line of the policy: about a class or about a tool, for every client
// or for one.
type Rule struct {
	Class   permissions.Class `json:"class,omitempty"`
	Tool    string            `json:"tool,omitempty"` // PLUGIN/SERVER:TOOL
	Client  string            `json:"client,omitempty"`
	Verdict Verdict           `json:"verdict"`
	At      time.Time         `json:"at"`
	By      By                `json:"by"`
}

// Standing is an answer to one call that holds for later ones: of this tool, by
// this client, as long as the tools are those that were approved then.
type Standing struct {
	Tool   string  `json:"tool"` // PLUGIN/SERVER:TOOL
	Client string  `json:"client"`
	For    Lasting `json:"for"`
	// Until ends ForHours; zero otherwise.
	Until    time.Time `json:"until,omitzero"`
	Approval string    `json:"approval"` // the decision that chose the tools
	At       time.Time `json:"at"`
	By       By        `json:"by"`
}

// Lasting is how long an allow of one call holds.
type Lasting string

// The lengths of an allow. Only ForOnce is for the bytes that were shown.
const (
	ForOnce    Lasting = "once"
	ForSession Lasting = "session" // until Sallyport ends: in memory only
	ForHours   Lasting = "8h"
	ForAlways  Lasting = "always"
)

// StandingTime is how long the answer "for 8 hours" holds.
const StandingTime = 8 * time.Hour

// policyID is the sealed document that holds rules and standing answers.
const policyID = "policy"

type policyDocument struct {
	Schema   int        `json:"schema"`
	Rules    []Rule     `json:"rules"`
	Standing []Standing `json:"standing"`
}

// policy is what calls read, without a lock; it is replaced, never changed.
type policy struct {
	policyDocument
	session []Standing
	// doubtful is a stored policy that does not verify: everything is asked.
	doubtful bool
}

// callFacts are what a verdict depends on.
type callFacts struct {
	id       plugins.ID
	tool     string
	client   string
	class    permissions.Class // confirmed; "" is unknown
	always   bool              // the approval says: call without asking
	approval string
	now      time.Time
}

// verdict resolves a policy for one call, the most specific line first: a standing
// answer, the rule of this client and tool, of the tool, of this client and class,
// of the class, and then the default (spec/permissions.md 3). The operator's rule
// about a tool comes before what its approval says.
func (p *policy) verdict(c callFacts) Verdict {
	if p.doubtful {
		return MustAsk
	}
	tool := toolName(c.id, c.tool)
	standing := func(s Standing) bool { return s.Client == c.client && s.Tool == tool && s.holds(c.approval, c.now) }
	if slices.ContainsFunc(p.Standing, standing) || slices.ContainsFunc(p.session, standing) {
		return MayCall
	}
	if v := p.rule("", tool, c.client); v != "" {
		return v
	}
	if v := p.rule("", tool, ""); v != "" {
		return v
	}
	if c.always {
		return MayCall
	}
	class := cmp.Or(c.class, permissions.Unknown)
	return cmp.Or(p.rule(class, "", c.client), p.rule(class, "", ""), defaultVerdict(class))
}

func (p *policy) rule(class permissions.Class, tool, client string) Verdict {
	for _, r := range p.Rules {
		if r.Class == class && r.Tool == tool && r.Client == client {
			return r.Verdict
		}
	}
	return ""
}

func defaultVerdict(class permissions.Class) Verdict {
	if class == permissions.Read {
		return MayCall
	}
	return MustAsk
}

// holds reports whether a standing answer counts. A clock that went back must not
// make it last longer (C80).
func (s Standing) holds(approval string, now time.Time) bool {
	switch {
	case s.Approval != approval:
		return false
	case s.For == ForHours:
		return now.Before(s.Until) && !s.At.After(now.Add(time.Minute))
	}
	return s.For == ForSession || s.For == ForAlways
}

func toolName(id plugins.ID, tool string) string { return id.String() + ":" + tool }

// Verdict says what the policy holds of a call that this grant permits. The
// operator's own calls are not asked: it is the operator who makes them.
func (g *Gate) Verdict(c CallGrant) Verdict {
	if c.client == Operator {
		return MayCall
	}
	return g.policy.Load().verdict(g.factsOf(c))
}

func (g *Gate) factsOf(c CallGrant) callFacts {
	facts := callFacts{id: c.grant.ID(), tool: c.tool, client: c.client, now: g.now()}
	if c.grant.state == nil || c.grant.state.approved == nil {
		return facts
	}
	approved := c.grant.state.approved
	facts.approval = approved.Decision
	for _, p := range approved.Tools {
		if p.Name == c.tool {
			facts.class, facts.always = p.Class, p.Always
		}
	}
	return facts
}

// takeOverPolicy publishes the stored policy, for calls to read. g.mu is held.
func (g *Gate) takeOverPolicy() {
	next := &policy{}
	if old := g.policy.Load(); old != nil {
		next.session = old.session
	}
	body, ok, problem := g.docs.get(settingKind, policyID)
	if problem != nil || ok && json.Unmarshal(body, &next.policyDocument) != nil {
		next.policyDocument, next.doubtful = policyDocument{}, true
	}
	g.policy.Store(next)
}

// Policy is everything that decides whether a call is asked about.
type Policy struct {
	Rules    []Rule     `json:"rules"`
	Standing []Standing `json:"standing"`
	// Approved are the tools whose approval says that they are called without asking.
	Approved []string `json:"approved"`
}

// Policy lists what counts now.
func (g *Gate) Policy() Policy {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.policy.Load()
	out := Policy{Rules: slices.Clone(p.Rules), Standing: g.standingNow(append(slices.Clone(p.Standing), p.session...)), Approved: []string{}}
	for id, r := range g.records {
		if r.Tools == nil {
			continue
		}
		for _, tool := range r.Tools.Tools {
			if tool.Always {
				out.Approved = append(out.Approved, toolName(id, tool.Name))
			}
		}
	}
	slices.Sort(out.Approved)
	return out
}

// standingNow returns those that hold now. g.mu is held.
func (g *Gate) standingNow(all []Standing) []Standing {
	out := []Standing{}
	for _, s := range all {
		of, _, _ := entry(s.Tool)
		r := g.records[parseID(of)]
		if r != nil && r.Tools != nil && s.holds(r.Tools.Decision, g.now()) {
			out = append(out, s)
		}
	}
	return out
}

// SetRule adds a rule, in the place of the one about the same. At and By are the
// gate's to set.
func (g *Gate) SetRule(ctx context.Context, rule Rule, by By) error {
	if err := rule.check(); err != nil {
		return err
	}
	if !slices.Contains([]Verdict{MayCall, MustAsk, NotAtAll}, rule.Verdict) {
		return policyInvalid("a rule says allow, ask or deny")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := by.mayAnswer(g.docs.guiOnly()); err != nil {
		return err
	}
	if rule.Client != "" && (*g.clients.Load())[rule.Client] == nil {
		return unknownClient()
	}
	rule.At, rule.By = g.now(), by
	next := g.policy.Load().policyDocument
	next.Rules = append(slices.DeleteFunc(slices.Clone(next.Rules), rule.same), rule)
	if len(next.Rules) > maxRules {
		return policyInvalid(fmt.Sprintf("a policy has at most %d rules", maxRules))
	}
	return g.writePolicy(ctx, newTransaction(), next, rule, by)
}

// RemoveRule takes away a rule, and with one of a client and a tool the standing
// answers for them: what is left decides from then on.
func (g *Gate) RemoveRule(ctx context.Context, rule Rule, by By) error {
	if err := rule.check(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := by.mayAnswer(g.docs.guiOnly()); err != nil {
		return err
	}
	now := g.policy.Load()
	answered := func(s Standing) bool { return rule.Tool != "" && s.Tool == rule.Tool && s.Client == rule.Client }
	next := now.policyDocument
	next.Rules = slices.DeleteFunc(slices.Clone(next.Rules), rule.same)
	next.Standing = slices.DeleteFunc(slices.Clone(next.Standing), answered)
	session := slices.DeleteFunc(slices.Clone(now.session), answered)
	if len(next.Rules) == len(now.Rules) && len(next.Standing) == len(now.Standing) && len(session) == len(now.session) {
		return &coded.Error{Code: "rule-unknown", Sentence: "there is no such rule or answer", Next: "look at sallyport policy list"}
	}
	if err := g.writePolicy(ctx, newTransaction(), next, rule, by); err != nil {
		return err
	}
	g.setSession(session)
	return nil
}

const maxRules = 1000

// writePolicy commits t with next as the policy. g.mu is held.
func (g *Gate) writePolicy(ctx context.Context, t *transaction, next policyDocument, about Rule, by By) error {
	if err := t.putPolicy(next); err != nil {
		return err
	}
	t.audit = append(t.audit, audit.Record{Action: audit.Setting, Result: audit.OK, Target: "policy " + cmp.Or(about.Tool, string(about.Class)),
		Client: about.Client, Actor: by.User, Via: by.Via})
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	g.tell(Event{Kind: "settings", Code: policyID})
	return nil
}

func (t *transaction) putPolicy(next policyDocument) error {
	next.Schema = schemaVersion
	return t.batch.put(settingKind, policyID, next)
}

// setSession replaces the answers that end with Sallyport. g.mu is held.
func (g *Gate) setSession(session []Standing) {
	next := *g.policy.Load()
	next.session = session
	g.policy.Store(&next)
}

// withoutClient returns the policy after a client was removed: another one may get
// its name, and gets nothing of it.
func (p policyDocument) withoutClient(name string) (next policyDocument, changed bool) {
	next = p
	next.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r Rule) bool { return r.Client == name })
	next.Standing = slices.DeleteFunc(slices.Clone(p.Standing), func(s Standing) bool { return s.Client == name })
	return next, len(next.Rules) != len(p.Rules) || len(next.Standing) != len(p.Standing)
}

func (r Rule) same(other Rule) bool {
	return r.Class == other.Class && r.Tool == other.Tool && r.Client == other.Client
}

func (r Rule) check() error {
	if (r.Class == "") == (r.Tool == "") {
		return policyInvalid("a rule is about a class or about a tool")
	}
	if r.Tool != "" {
		id, tool, whole := entry(r.Tool)
		if _, err := plugins.ParseID(id); err != nil || whole || tool == "" || Visible(r.Tool) != r.Tool {
			return policyInvalid(fmt.Sprintf("%q is not PLUGIN/SERVER:TOOL", Visible(r.Tool)))
		}
		return nil
	}
	return checkClass(r.Class)
}

func policyInvalid(sentence string) error { return coded.New("policy-invalid", sentence) }
