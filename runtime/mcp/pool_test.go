package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
)

var demo = plugins.ID{Plugin: "demo", Server: "main"}

// pass is a permit of the tests'.
type pass struct {
	id       plugins.ID
	identity approvals.Identity
	launch   approvals.Launch
	probe    bool
	ctx      context.Context
}

func (p *pass) ID() plugins.ID               { return p.id }
func (p *pass) Identity() approvals.Identity { return p.identity }
func (p *pass) Done() <-chan struct{}        { return p.ctx.Done() }
func (p *pass) Probe() bool                  { return p.probe }
func (p *pass) Err() error                   { return context.Cause(p.ctx) }

func (p *pass) Launch() (approvals.Launch, error) { return p.launch, p.Err() }

// gatehouse is a guard whose children are fakeservers.
type gatehouse struct {
	t     *testing.T
	mode  atomic.Value // string
	flags []string

	mu       sync.Mutex
	refusal  error
	end      context.CancelCauseFunc
	grants   int
	children []*realChild
	offers   []approvals.Offer
	pinned   map[string]string // tool: definition; nil takes the first offer
	options  plugins.Options
}

func (g *gatehouse) grant(ctx context.Context, id plugins.ID) (permit, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grants++
	if g.refusal != nil {
		return nil, g.refusal
	}
	var p *pass
	p, g.end = newPass(id, plugins.Stdio, "")
	p.launch.Options = g.options
	return p, nil
}

func newPass(id plugins.ID, transport plugins.Transport, url string) (*pass, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(context.Background())
	return &pass{id: id, identity: "i1:x", ctx: ctx, launch: approvals.Launch{ID: id, Transport: transport, URL: url}}, end
}

func (g *gatehouse) live(_ permit, offer approvals.Offer) []approvals.ToolState {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.offers = append(g.offers, offer)
	if g.pinned == nil {
		g.pinned = definitions(offer)
	}
	return nil
}

func (g *gatehouse) mayCall(_ context.Context, _ permit, tool, _ string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := definitions(g.offers[len(g.offers)-1])[tool]; now == "" || now != g.pinned[tool] {
		return coded.New("tool-changed", "the definition changed")
	}
	return nil
}

func (g *gatehouse) mayRefer(_ permit, about referent) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	first, now := g.offers[0], g.offers[len(g.offers)-1]
	was, is := first.Templates, now.Templates
	if about.prompt {
		was, is = first.Prompts, now.Prompts
	}
	if fmt.Sprintf("%s", was) != fmt.Sprintf("%s", is) {
		return coded.New("tool-changed", "the definition changed")
	}
	return nil
}

func (g *gatehouse) start(context.Context, permit) (Child, error) {
	child := launch(g.t, g.mode.Load().(string), g.flags...)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.children = append(g.children, child)
	return child, nil
}

func (g *gatehouse) count() (grants, starts int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.grants, len(g.children)
}

func definitions(offer approvals.Offer) map[string]string {
	all := map[string]string{}
	for _, raw := range offer.Tools {
		var tool struct{ Name string }
		if json.Unmarshal(raw, &tool) == nil {
			all[tool.Name] = string(raw)
		}
	}
	return all
}

func newTestPool(t *testing.T, mode string, c Config, flags ...string) (*Pool, *gatehouse) {
	t.Helper()
	g := &gatehouse{t: t, flags: flags}
	g.mode.Store(mode)
	p := newPool(c, g)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p, g
}

// use gets the session and calls a tool in it.
func use(ctx context.Context, p *Pool, tool, arguments string) (json.RawMessage, error) {
	s, err := p.Session(ctx, demo)
	if err != nil {
		return nil, err
	}
	return p.call(ctx, s.permit, s, tool, "tester", args(tool, arguments), agent(nil))
}

func TestAServerStartsOnFirstUseAndIsShared(t *testing.T) {
	p, g := newTestPool(t, "polite", Config{})
	if grants, starts := g.count(); grants+starts != 0 || len(p.Running()) != 0 {
		t.Fatal("something started by itself")
	}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := use(t.Context(), p, "echo", "{}"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if grants, starts := g.count(); grants != 1 || starts != 1 {
		t.Fatalf("%d grants, %d starts", grants, starts)
	}
	running := p.Running()
	if len(running) != 1 || running[0].ID != demo || running[0].PID == 0 || running[0].InFlight != 0 || running[0].Stats.Messages == 0 {
		t.Fatalf("%+v", running)
	}
}

func TestARefusalOfTheGateStartsNothing(t *testing.T) {
	p, g := newTestPool(t, "polite", Config{})
	g.refusal = coded.New("artifact-changed", "a file changed")
	for range 10 {
		if _, err := p.Session(t.Context(), demo); coded.Of(err) != "artifact-changed" {
			t.Fatal(err)
		}
	}
	if grants, starts := g.count(); grants != 10 || starts != 0 {
		t.Fatalf("%d grants, %d starts", grants, starts)
	}
}

// spec/approval.md 5.3.
func TestASessionEndsWithItsGrant(t *testing.T) {
	p, g := newTestPool(t, "polite", Config{})
	s, err := p.Session(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	pending := make(chan error, 1)
	go func() { _, err := use(t.Context(), p, "hang", "{}"); pending <- err }()
	within(t, 5*time.Second, "the call to be in flight", func() bool { return s.conn.InFlight() == 1 })
	g.end(coded.New("artifact-changed", "a file changed"))
	if err := <-pending; coded.Of(err) != "artifact-changed" {
		t.Fatal(err)
	}
	if _, err := s.Request(t.Context(), "resources/list", nil, nil); coded.Of(err) != "artifact-changed" {
		t.Fatal(err)
	}
	<-s.conn.Gone()
	if alive(g.children[0].PID()) {
		t.Fatal("it runs on")
	}
	if _, err := use(t.Context(), p, "echo", "{}"); err != nil { // under a new grant
		t.Fatal(err)
	}
	if grants, starts := g.count(); grants != 2 || starts != 2 {
		t.Fatalf("%d grants, %d starts", grants, starts)
	}
}

// The process may be gone before the pool hears of the grant's end: the reason is
// still the grant's.
func TestTheGrantsReasonIsPreferred(t *testing.T) {
	conn, child := connect(t, "polite", Options{Ended: func() error { return coded.New("revoked", "the approval was revoked") }})
	child.Kill()
	<-conn.Done()
	if coded.Of(conn.Cause()) != "revoked" {
		t.Fatal(conn.Cause())
	}
}

func TestRestartsAskTheGateAndAreHeldBack(t *testing.T) {
	var clock atomic.Int64
	start := time.Now()
	events := make(chan Event, 64)
	p, g := newTestPool(t, "exit-mid-call", Config{
		Now:    func() time.Time { return start.Add(time.Duration(clock.Load())) },
		Events: func(e Event) { events <- e },
	})
	for failure := 1; failure <= 5; failure++ {
		if _, err := use(t.Context(), p, "go", "{}"); coded.Of(err) != TransportClosed {
			t.Fatal(failure, err)
		}
		if e := <-events; e.Kind != Started || e.PID == 0 {
			t.Fatalf("%+v", e)
		}
		e := <-events
		if failure == 5 {
			if e.Kind != ParkedEvent || coded.Of(e.Err) != "parked" {
				t.Fatalf("%+v", e)
			}
			break
		}
		wait := e.Retry.Sub(p.config.Now())
		if e.Kind != Crashed || wait != time.Second<<(failure-1) {
			t.Fatalf("failure %d: %+v, wait %v", failure, e, wait)
		}
		if wait > patience {
			if _, err := use(t.Context(), p, "echo", "{}"); coded.Of(err) != "restarting" {
				t.Fatal(err)
			}
		}
		clock.Add(int64(wait))
	}
	clock.Add(int64(time.Hour))
	if _, err := use(t.Context(), p, "echo", "{}"); coded.Of(err) != "parked" {
		t.Fatal(err)
	}
	if grants, starts := g.count(); grants != 5 || starts != 5 {
		t.Fatalf("%d grants, %d starts", grants, starts)
	}
	p.Unpark(demo)
	if _, err := use(t.Context(), p, "echo", "{}"); err != nil {
		t.Fatal(err)
	}
}

// A call that comes while the crash is not even counted yet is held back as well.
func TestNoRestartOvertakesTheAccounting(t *testing.T) {
	start := time.Now()
	p, g := newTestPool(t, "exit-mid-call", Config{Now: func() time.Time { return start }})
	if _, err := use(t.Context(), p, "go", "{}"); coded.Of(err) != TransportClosed {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := p.Session(ctx, demo); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if grants, starts := g.count(); grants != 1 || starts != 1 {
		t.Fatalf("%d grants, %d starts", grants, starts)
	}
}

func TestLiveStartsNothing(t *testing.T) {
	p, g := newTestPool(t, "polite", Config{})
	if _, ok := p.Live(demo); ok {
		t.Fatal("there is none")
	}
	s, err := p.Session(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	if live, ok := p.Live(demo); !ok || live != s {
		t.Fatal("there is one")
	}
	if _, starts := g.count(); starts != 1 {
		t.Fatal(starts)
	}
}

func TestAServerThatCannotStartIsHeldBackToo(t *testing.T) {
	p, _ := newTestPool(t, "fails", Config{})
	_, err := p.Session(t.Context(), demo)
	if coded.Of(err) != TransportClosed || !strings.Contains(err.Error(), "exit status 3") {
		t.Fatal(err)
	}
	var fault *ProtocolError
	if !errors.As(err, &fault) {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "the tail of stderr", func() bool {
		return strings.Contains(strings.Join(fault.Stderr(), "\n"), "cannot start, as asked")
	})
	if p.slots[demo].failures != 1 {
		t.Fatal("not counted")
	}
}

func TestAStartThatTakesTooLongLeavesNothing(t *testing.T) {
	p, g := newTestPool(t, "no-handshake", Config{StartTimeout: 100 * time.Millisecond})
	if _, err := p.Session(t.Context(), demo); coded.Of(err) != "start-timeout" {
		t.Fatal(err)
	}
	if alive(g.children[0].PID()) {
		t.Fatal("it runs on")
	}
}

func TestStopEndsAStartToo(t *testing.T) {
	p, g := newTestPool(t, "no-handshake", Config{})
	result := make(chan error, 1)
	go func() { _, err := p.Session(t.Context(), demo); result <- err }()
	within(t, 5*time.Second, "the start", func() bool { _, starts := g.count(); return starts == 1 })
	if err := p.Stop(t.Context(), demo, coded.New("disabled", "the operator disabled it")); err != nil {
		t.Fatal(err)
	}
	if err := <-result; coded.Of(err) != "disabled" {
		t.Fatal(err)
	}
	if alive(g.children[0].PID()) || p.slots[demo].failures != 0 {
		t.Fatal("it runs on, or counts as a crash")
	}
}

func TestIdleServersStop(t *testing.T) {
	events := make(chan Event, 8)
	p, _ := newTestPool(t, "polite", Config{IdleAfter: func() time.Duration { return 30 * time.Millisecond }, Events: func(e Event) { events <- e }})
	if _, err := use(t.Context(), p, "slow", `{"ms":100}`); err != nil {
		t.Fatal("a call in flight is use:", err)
	}
	<-events
	if e := <-events; e.Kind != Stopped || coded.Of(e.Err) != "idle" {
		t.Fatalf("%+v", e)
	}
	if _, err := use(t.Context(), p, "echo", "{}"); err != nil {
		t.Fatal(err)
	}
}

func TestAProbeListsAndLeavesNothing(t *testing.T) {
	p, g := newTestPool(t, "polite", Config{}, "-tools", "120")
	pass, _ := newPass(demo, plugins.Stdio, "")
	pass.probe = true
	offer, err := p.probe(t.Context(), pass, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(offer.Tools) != 135 || len(offer.Prompts) != 1 || len(offer.Templates) != 1 || offer.Instructions != "Call go." {
		t.Fatalf("%d tools, %d prompts, %d templates, %q", len(offer.Tools), len(offer.Prompts), len(offer.Templates), offer.Instructions)
	}
	if alive(g.children[0].PID()) || len(p.Running()) != 0 {
		t.Fatal("it runs on")
	}
}

func TestAProbesGrantCallsNothing(t *testing.T) {
	p, _ := newTestPool(t, "polite", Config{})
	s, err := p.Session(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	s.permit.(*pass).probe = true
	if _, err := p.call(t.Context(), s.permit, s, "echo", "tester", args("echo", "{}"), nil); coded.Of(err) != "no-grant" {
		t.Fatal(err)
	}
	if _, err := s.Request(t.Context(), "resources/list", nil, nil); coded.Of(err) != "no-grant" {
		t.Fatal(err)
	}
}

// C38, C45: what a server lists is kept as it is, item by item.
func TestOddDefinitionsHideNoOthers(t *testing.T) {
	for mode, want := range map[string]int{"odd-tools": 17, "dup-tools": 17} {
		p, _ := newTestPool(t, mode, Config{})
		s, err := p.Session(t.Context(), demo)
		if err != nil {
			t.Fatal(err)
		}
		offer := s.Offer()
		text, _ := json.Marshal(offer.Tools)
		if len(offer.Tools) != want || mode == "odd-tools" && !strings.Contains(string(text), `,null,`) || mode == "odd-tools" && !strings.Contains(string(text), `9007199254740993`) {
			t.Fatalf("%s: %d tools: %s", mode, len(offer.Tools), text)
		}
	}
}

func TestListsHaveAnEnd(t *testing.T) {
	p, _ := newTestPool(t, "endless-pages", Config{})
	if _, err := p.Session(t.Context(), demo); coded.Of(err) != "list-failed" {
		t.Fatal(err)
	}
}

// spec/approval.md 2.4, C41 f: after an announced change nothing is called against
// a definition that nobody compared.
func TestAnAnnouncedChangeBlocksThatTool(t *testing.T) {
	events := make(chan Event, 64)
	p, _ := newTestPool(t, "polite", Config{Events: func(e Event) { events <- e }})
	if _, err := use(t.Context(), p, "echo", "{}"); err != nil {
		t.Fatal(err)
	}
	<-events // started
	for range 5 {
		if _, err := use(t.Context(), p, "change", "{}"); err != nil {
			t.Fatal(err)
		}
		// The announcement follows the answer; the event says that it was compared.
		if e := <-events; e.Kind != ListChanged {
			t.Fatalf("%+v", e)
		}
		if e := <-events; e.Kind != Notified || e.Method != "notifications/tools/list_changed" {
			t.Fatalf("%+v", e)
		}
		if _, err := use(t.Context(), p, "echo", "{}"); coded.Of(err) != "tool-changed" {
			t.Fatal(err)
		}
		if _, err := use(t.Context(), p, "pid", "{}"); err != nil {
			t.Fatal("the other tools go on:", err)
		}
	}
}

func TestTheGrantedNameIsCalledWhateverTheParametersSay(t *testing.T) {
	p, _ := newTestPool(t, "polite", Config{})
	s, err := p.Session(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.call(t.Context(), s.permit, s, "echo", "tester", json.RawMessage(`{"arguments":{"name":"go"}, "name" : "demo__main__echo","x":1.0}`), nil)
	if want := `{"content":[],"structuredContent":{"params":{"arguments":{"name":"go"}, "name" : "echo","x":1.0}}}`; err != nil || string(result) != want {
		t.Fatalf("%s, %v", result, err)
	}
	for _, odd := range []string{`{"name":"go","name":"echo"}`, `{"Name":"go","name":"echo"}`, `{"\u006eame":"go","name":"echo"}`, `{}`, `[]`, ``} {
		if result, err := p.call(t.Context(), s.permit, s, "echo", "tester", json.RawMessage(odd), nil); err == nil {
			t.Errorf("%s: %s", odd, result)
		}
	}
}

func TestACallNeedsTheGrantOfItsOwnServer(t *testing.T) {
	p, _ := newTestPool(t, "polite", Config{})
	s, err := p.Session(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := newPass(plugins.ID{Plugin: "demo", Server: "other"}, plugins.Stdio, "")
	if _, err := p.call(t.Context(), other, s, "echo", "tester", args("echo", "{}"), nil); coded.Of(err) != "no-grant" {
		t.Fatal(err)
	}
	if _, err := p.Call(t.Context(), approvals.CallGrant{}, s, args("echo", "{}"), nil); coded.Of(err) != "no-grant" {
		t.Fatal(err)
	}
	if _, err := p.Probe(t.Context(), approvals.Grant{}, nil); coded.Of(err) != "no-grant" {
		t.Fatal(err)
	}
	for _, method := range []string{"tools/call", "tools/list", "initialize", "notifications/initialized", "x"} {
		if _, err := s.Request(t.Context(), method, nil, nil); coded.Of(err) != "no-grant" {
			t.Errorf("%s: %v", method, err)
		}
	}
	for method, params := range map[string]string{
		"resources/list": `{}`, "resources/read": `{}`, "logging/setLevel": `{}`, "prompts/get": `{"name":"greet"}`,
		"completion/complete": `{"ref":{"type":"ref/prompt","name":"greet"}}`,
	} {
		if _, err := s.Request(t.Context(), method, json.RawMessage(params), nil); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestAChangedPromptIsNotServed(t *testing.T) {
	p, g := newTestPool(t, "polite+changing-prompts", Config{})
	s, err := p.Session(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]string{
		"prompts/get":         `{"name":"greet"}`,
		"completion/complete": `{"ref":{"type":"ref/prompt","name":"greet"}}`,
	}
	for method, params := range requests {
		if _, err := s.Request(t.Context(), method, json.RawMessage(params), nil); err != nil {
			t.Fatalf("%s before the change: %v", method, err)
		}
	}
	if _, err := use(t.Context(), p, "change", "{}"); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "the new list to be compared", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.offers) > 1
	})
	for method, params := range requests {
		if _, err := s.Request(t.Context(), method, json.RawMessage(params), nil); coded.Of(err) != "tool-changed" {
			t.Errorf("%s after the change: %v", method, err)
		}
	}
	if _, err := s.Request(t.Context(), "resources/read", json.RawMessage(`{"uri":"fake://one"}`), nil); err != nil {
		t.Error("what did not change is served:", err)
	}
}

func TestARequestHasOneReading(t *testing.T) {
	p, _ := newTestPool(t, "polite", Config{})
	s, err := p.Session(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	for method, all := range map[string][]string{
		"prompts/get": {`{}`, `[]`, ``, `{"name":1}`, `{"name":"greet","name":"other"}`, `{"name":"greet","Name":"other"}`,
			`{"name":"greet","n\u0061me":"other"}`},
		"completion/complete": {`{}`, `{"ref":1}`, `{"ref":{"type":"ref/prompt"}}`,
			`{"ref":{"type":"ref/prompt","name":"greet"},"ref":{"type":"ref/prompt","name":"other"}}`,
			`{"ref":{"type":"ref/prompt","type":"ref/resource","name":"greet","uri":"x"}}`},
	} {
		for _, params := range all {
			var refusal *RPCError
			if _, err := s.Request(t.Context(), method, json.RawMessage(params), nil); !errors.As(err, &refusal) || refusal.Code != codeInvalidParams {
				t.Errorf("%s %s: %v", method, params, err)
			}
		}
	}
}

func TestACallHasADeadline(t *testing.T) {
	p, _ := newTestPool(t, "polite", Config{CallTimeout: 50 * time.Millisecond})
	_, err := use(t.Context(), p, "hang", "{}")
	if coded.Of(err) != "call-timeout" || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := use(t.Context(), p, "echo", "{}"); err != nil {
		t.Fatal("the server is not at fault:", err)
	}
}

func TestAClosedPoolStartsNothing(t *testing.T) {
	p, g := newTestPool(t, "polite", Config{})
	if _, err := use(t.Context(), p, "echo", "{}"); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive(g.children[0].PID()) {
		t.Fatal("it runs on")
	}
	if _, err := use(t.Context(), p, "echo", "{}"); coded.Of(err) != "host-closing" {
		t.Fatal(err)
	}
	pass, _ := newPass(demo, plugins.Stdio, "")
	if _, err := p.probe(t.Context(), pass, nil); coded.Of(err) != "host-closing" {
		t.Fatal(err)
	}
}

func TestApprovedOptionsReachTheConnection(t *testing.T) {
	p, g := newTestPool(t, "noise", Config{})
	g.options = plugins.Options{MaxFrame: 6 << 20, StdoutNoise: "skip"}
	if result, err := use(t.Context(), p, "big", fmt.Sprintf(`{"bytes":%d}`, 5<<20)); err != nil || len(result) < 5<<20 {
		t.Fatal(len(result), err)
	}
}
