package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/coded"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestHandshakeKeepsTheServersOwnBytes(t *testing.T) {
	child := launch(t, "polite")
	conn := Connect(child, Options{})
	defer closeAndWait(t, conn)
	server, err := Handshake(t.Context(), conn, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if server.ProtocolVersion != "2025-11-25" || server.Instructions != "Call go." ||
		string(server.Info) != `{"name":"fakeserver","version":"1.0.0"}` || !strings.Contains(string(server.Capabilities), `"tools":{"listChanged":true}`) {
		t.Fatalf("%+v", server)
	}
}

func TestHandshakeOutcomes(t *testing.T) {
	for _, row := range []struct{ mode, code string }{
		{"old", ""},
		{"chatty", ""},
		{"bom", ""},
		{"crlf+blank", ""},
		{"string-ids", ""},
		{"stderr-start", ""},
		{"bad-version", "handshake-failed"},
		{"no-handshake", "start-timeout"},
		{"fails", TransportClosed},
		{"noise", MalformedJSON},
		{"noise-flood", MalformedJSON},
	} {
		t.Run(row.mode, func(t *testing.T) {
			child := launch(t, row.mode)
			conn := Connect(child, Options{})
			defer closeAndWait(t, conn)
			limit := 10 * time.Second
			if row.code == "start-timeout" {
				limit = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := Handshake(ctx, conn, "1.0.0")
			if coded.Of(err) != row.code {
				t.Fatalf("%v (%s), want %q", err, coded.Of(err), row.code)
			}
			if row.mode == "fails" && !strings.Contains(err.Error(), "exit status 3") {
				t.Fatalf("no exit status in %q", err)
			}
		})
	}
}

// Clause 4: numbers, strings and key order reach the other side byte for byte.
func TestCallsPassRaw(t *testing.T) {
	conn, _ := connect(t, "polite", Options{})
	for _, arguments := range []string{
		`{"z":1,"a":9007199254740993,"f":1.0,"e":1e400,"u":"\u0000\ud800x<&>é語"}`,
		`{}`,
		`{"b":` + strconv.Quote(strings.Repeat("x", 1<<20)) + `}`,
	} {
		result, err := callTool(t.Context(), conn, "echo", arguments)
		want := `{"content":[],"structuredContent":{"params":` + string(args("echo", arguments)) + `}}`
		if err != nil || string(result) != want {
			t.Fatalf("%.300s, %v\nwant %.300s", result, err, want)
		}
	}
	result, err := callTool(t.Context(), conn, "echo", "{\n\t\"a\": \"\\n\"\r\n}")
	if err != nil || !strings.Contains(string(result), "{ \t\"a\": \"\\n\"  }") {
		t.Fatalf("line breaks between tokens become spaces: %s, %v", result, err)
	}
}

func TestAServersErrorPassesRaw(t *testing.T) {
	conn, _ := connect(t, "polite", Options{})
	_, err := callTool(t.Context(), conn, "fail", "{}")
	var answered *RPCError
	want := `{"code":-32042,"message":"it failed","data":{"n":9007199254740993,"f":1.0}}`
	if !errors.As(err, &answered) || string(answered.Raw) != want || string(answered.RPCError()) != want ||
		answered.Code != -32042 || answered.Message != "it failed" {
		t.Fatalf("%v", err)
	}
}

func TestUnsoundParametersAreNotSent(t *testing.T) {
	conn, _ := connect(t, "polite", Options{})
	for _, params := range []string{`[1]`, `{`, `{}{}`, `"x"`, "{}}\n{", "{\"x\":\"\xff\"}", `{"_meta":{},"_meta":{}}`, `{"_Meta":{"progressToken":1}}`,
		`{"_meta":{"progressToken":1,"progressToken":2}}`, `{"_meta":{"progresstoken":1}}`, `{"\u005fmeta":{"progressToken":1}}`} {
		_, err := conn.Call(t.Context(), "tools/call", json.RawMessage(params), nil)
		var refused *RPCError
		if !errors.As(err, &refused) || refused.Code != codeInvalidParams {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// Clauses 2, 4, 5 and 6, with real processes: every pending call gets the same
// typed cause, and so does every later one; the tree is ended once.
func TestFaultsSettleTheConnectionOnce(t *testing.T) {
	for _, row := range []struct{ mode, code, says string }{
		{"endless", FrameTooLarge, "4194305 bytes, the limit is 4194304"},
		{"endless-string", FrameTooLarge, "over the size limit"},
		{"malformed", MalformedJSON, "something other than MCP to stdout"},
		{"notrpc", InvalidMessage, ""},
		{"trailing", MalformedJSON, ""},
		{"badutf8", InvalidUTF8, "not UTF-8"},
		{"dupkeys", InvalidMessage, `the key "id" twice`},
		{"batch", InvalidMessage, "batch"},
		{"pretty", MalformedJSON, "(1 bytes)"},
		{"exit-mid-call", TransportClosed, "exit status 7"},
		{"cut-exit", TransportClosed, "in the middle of a message (exit status 1)"},
		{"closes-stdout", TransportClosed, "closed its output"},
		{"noise", MalformedJSON, ""},
	} {
		t.Run(row.mode, func(t *testing.T) {
			mode, options := row.mode, Options{}
			if mode == "noise" { // after as many lines as are passed over
				options.SkipNoise = true
			}
			conn, child := connect(t, mode, options)
			const pending = 50
			errs := make([]error, pending)
			var group sync.WaitGroup
			for i := range pending {
				group.Go(func() { _, errs[i] = callTool(t.Context(), conn, "hang", "{}") })
			}
			within(t, 5*time.Second, "the calls to be in flight", func() bool { return conn.InFlight() == pending })
			for range 20 { // noise: 6 lines a call
				if _, err := callTool(t.Context(), conn, "go", "{}"); err != nil {
					break
				}
			}
			group.Wait()
			_, later := callTool(t.Context(), conn, "echo", "{}")
			for i, err := range append(errs, later) {
				var fault *ProtocolError
				if !errors.As(err, &fault) || fault != conn.Cause() {
					t.Fatalf("call %d: %v, want the cause %v", i, err, conn.Cause())
				}
				if fault.Code != row.code || coded.Of(err) != row.code || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), row.says) {
					t.Fatalf("%s: %v, want %s with %q", coded.Of(err), err, row.code, row.says)
				}
			}
			conn.Close(nil)
			<-conn.Gone()
			if n := child.kills.Load(); n != 1 || child.stops.Load() != 0 {
				t.Fatalf("killed %d times, stopped %d times", n, child.stops.Load())
			}
			for _, pid := range child.pids() {
				within(t, 2*time.Second, "the process to be gone", func() bool { return !alive(pid) })
			}
		})
	}
}

// Clause 6 and the goal: 50 pending calls are rejected within 50 ms of the
// overflow, the heap stays small, and another server never notices.
func TestAnEndlessLineHurtsNobodyElse(t *testing.T) {
	for _, mode := range []string{"endless-string", "endless-stderr"} {
		t.Run(mode, func(t *testing.T) {
			bad, child := connect(t, mode+"+forks", Options{})
			good, _ := connect(t, "polite", Options{})
			const pending = 50
			rejected := make([]time.Time, pending)
			var group sync.WaitGroup
			for i := range pending {
				group.Go(func() { callTool(t.Context(), bad, "hang", "{}"); rejected[i] = time.Now() })
			}
			within(t, 5*time.Second, "the calls to be in flight", func() bool { return bad.InFlight() == pending })
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)

			_, err := callTool(t.Context(), bad, "go", "{}")
			if mode == "endless-stderr" {
				if err != nil {
					t.Fatal("the call is answered all the same:", err)
				}
				for range 50 {
					if _, err := callTool(t.Context(), bad, "echo", "{}"); err != nil {
						t.Fatal(err)
					}
				}
				bad.Close(errors.New("enough"))
			}
			group.Wait()
			runtime.ReadMemStats(&after)
			for _, at := range rejected {
				if late := at.Sub(bad.cause.at); late > 50*time.Millisecond {
					t.Errorf("a call was rejected %v after the fault", late)
				}
			}
			if grown := int64(after.HeapSys+after.StackSys) - int64(before.HeapSys+before.StackSys); grown > 16<<20 {
				t.Errorf("the heap grew by %d bytes", grown)
			}
			if _, err := callTool(t.Context(), good, "echo", "{}"); err != nil {
				t.Error("the other server:", err)
			}
			for _, pid := range child.pids() {
				within(t, 2*time.Second, "the tree to be gone", func() bool { return !alive(pid) })
			}
		})
	}
}

// Clause 5, C14: everything written before the exit is read before it is acted on.
func TestAnswersBeforeTheExitArrive(t *testing.T) {
	conn, _ := connect(t, "answers-then-exit", Options{})
	errs := make(chan error, 200)
	for range 200 {
		go func() {
			_, err := callTool(t.Context(), conn, "go", "{}")
			errs <- err
		}()
	}
	for range 200 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	<-conn.Done()
	var fault *ProtocolError
	if !errors.As(conn.Cause(), &fault) || fault.Code != TransportClosed || fault.Exit() != "exit status 0" {
		t.Fatalf("%+v", fault)
	}
}

func TestACompleteMessageNeedsNoLineFeedAtTheEnd(t *testing.T) {
	conn, _ := connect(t, "unterminated", Options{})
	if _, err := callTool(t.Context(), conn, "go", "{}"); err != nil {
		t.Fatal(err)
	}
}

// Clause 5: the exit counts, also where a grandchild still holds stdout.
func TestAGrandchildDoesNotHideTheExit(t *testing.T) {
	conn, child := connect(t, "setsid", Options{})
	if _, err := callTool(t.Context(), conn, "go", "{}"); err != nil {
		t.Fatal(err)
	}
	pending := make(chan error, 1)
	go func() { _, err := callTool(t.Context(), conn, "hang", "{}"); pending <- err }()
	within(t, 5*time.Second, "the call to be in flight", func() bool { return conn.InFlight() == 1 })
	killProcess(child.PID())
	var fault *ProtocolError
	if err := <-pending; !errors.As(err, &fault) || fault.Code != TransportClosed || !strings.Contains(fault.Exit(), "killed") {
		t.Fatal(err)
	}
	<-conn.Gone()
}

// Clause 7, C05, C07: what is no failure.
func TestNotFailures(t *testing.T) {
	for _, row := range []struct {
		mode  string
		count func(Stats) int64
	}{
		{"second-answer", func(s Stats) int64 { return s.LateAnswers }},
		{"unknown-id", func(s Stats) int64 { return s.UnknownAnswers }},
		{"null-id", func(s Stats) int64 { return s.Orphans }},
		{"string-ids", func(s Stats) int64 { return s.RespelledIDs }},
		{"float-ids", func(s Stats) int64 { return s.RespelledIDs }},
		{"chatty", func(s Stats) int64 { return s.UnknownNotifications }},
		{"chatty", func(s Stats) int64 { return s.Orphans }},
		{"bom", func(s Stats) int64 { return s.ByteOrderMarks }},
		{"crlf+blank", func(s Stats) int64 { return s.Messages }},
		{"split", func(s Stats) int64 { return s.Messages }},
		{"stderr-burst", func(s Stats) int64 { return s.Messages }},
	} {
		t.Run(row.mode, func(t *testing.T) {
			conn, _ := connect(t, row.mode, Options{})
			for range 3 {
				result, err := callTool(t.Context(), conn, "go", "{}")
				if err != nil || strings.Contains(string(result), "second") || row.mode == "split" && !strings.Contains(string(result), "語 🖥️") {
					t.Fatalf("%s, %v", result, err)
				}
			}
			within(t, 5*time.Second, "it to be counted", func() bool { return row.count(conn.Stats()) > 0 })
		})
	}
}

// Clause 8, C01.
func TestNoiseIsSkippedWhereApproved(t *testing.T) {
	conn, _ := connect(t, "noise", Options{SkipNoise: true})
	for range 3 {
		if _, err := callTool(t.Context(), conn, "go", "{}"); err != nil {
			t.Fatal(err)
		}
	}
	if s := conn.Stats(); s.NoiseLines != 24 || s.NoiseBytes == 0 {
		t.Fatalf("%+v", s)
	}
}

func TestNoiseHasAnEnd(t *testing.T) {
	conn := Connect(launch(t, "noise-flood"), Options{SkipNoise: true})
	defer closeAndWait(t, conn)
	<-conn.Done()
	if s := conn.Stats(); coded.Of(conn.Cause()) != MalformedJSON || s.NoiseLines != maxNoiseLines+1 {
		t.Fatalf("%v, %+v", conn.Cause(), s)
	}
}

func TestADamagedMessageIsNotNoise(t *testing.T) {
	conn, _ := connect(t, "malformed", Options{SkipNoise: true})
	if _, err := callTool(t.Context(), conn, "go", "{}"); coded.Of(err) != MalformedJSON {
		t.Fatal(err)
	}
}

func TestCancellingReturnsAtOnceAndTellsTheServer(t *testing.T) {
	conn, _ := connect(t, "late", Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(errors.New("gave up")) })
	start := time.Now()
	_, err := callTool(ctx, conn, "go", "{}")
	if err == nil || err.Error() != "gave up" || time.Since(start) > 2*time.Second {
		t.Fatal(err, time.Since(start))
	}
	within(t, 5*time.Second, "the late answer", func() bool { return conn.Stats().LateAnswers == 1 })
	if _, err := callTool(t.Context(), conn, "echo", "{}"); err != nil {
		t.Fatal(err)
	}
}

// Clause 10, C15.
func TestAServerThatDoesNotReadIsStalled(t *testing.T) {
	conn, child := connect(t, "no-read", Options{})
	other, _ := connect(t, "polite", Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := callTool(ctx, conn, "echo", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`)
	if err == nil || time.Since(start) > 2*time.Second {
		t.Fatal(err, time.Since(start))
	}
	within(t, 2*time.Second, "the connection to end", func() bool { return conn.Cause() != nil })
	if _, err := callTool(t.Context(), conn, "echo", "{}"); coded.Of(err) != WriteStalled {
		t.Fatal(err)
	}
	<-conn.Gone()
	if child.kills.Load() != 1 {
		t.Fatal("not killed once")
	}
	if _, err := callTool(t.Context(), other, "echo", "{}"); err != nil {
		t.Fatal("the other server:", err)
	}
}

func TestAServerThatAsksWithoutReadingIsStalled(t *testing.T) {
	conn, _ := connect(t, "ask-flood", Options{})
	if _, err := callTool(t.Context(), conn, "go", "{}"); coded.Of(err) != WriteStalled {
		t.Fatal(err)
	}
}

func TestAClosedStdinIsAFailedWrite(t *testing.T) {
	conn, _ := connect(t, "closes-stdin", Options{})
	if _, err := callTool(t.Context(), conn, "go", "{}"); err != nil {
		t.Fatal(err)
	}
	var last error
	within(t, 5*time.Second, "a write to fail", func() bool {
		_, last = callTool(t.Context(), conn, "echo", "{}")
		return last != nil
	})
	if coded.Of(last) != WriteFailed {
		t.Fatal(last)
	}
}

// Clause 6: a second failure or close is a no-op, and a close is polite.
func TestCloseGivesItsReasonToEveryCall(t *testing.T) {
	conn, child := connect(t, "polite", Options{})
	pending := make(chan error, 1)
	go func() { _, err := callTool(t.Context(), conn, "hang", "{}"); pending <- err }()
	within(t, 5*time.Second, "the call to be in flight", func() bool { return conn.InFlight() == 1 })
	reason := coded.New("artifact-changed", "a file of the plugin changed")
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() { conn.Close(reason) })
	}
	group.Wait()
	_, later := callTool(t.Context(), conn, "echo", "{}")
	for _, err := range []error{<-pending, later} {
		var fault *ProtocolError
		if coded.Of(err) != "artifact-changed" || !errors.As(err, &fault) || fault.Code != Closed {
			t.Fatal(err)
		}
	}
	<-conn.Gone()
	if child.kills.Load() != 0 || child.stops.Load() != 1 {
		t.Fatalf("%d kills, %d stops", child.kills.Load(), child.stops.Load())
	}
}

// Trap 9: progress comes in order, before the result, under the agent's token;
// two agents with equal tokens never mix.
func TestProgressReachesItsOwnCall(t *testing.T) {
	conn, _ := connect(t, "polite", Options{})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			steps, up := 20+i, agent(nil)
			params := fmt.Sprintf(`{"name":"progress","arguments":{"steps":%d},"_meta":{"a":1.0,"progressToken":"same","z":2}}`, steps)
			if _, err := conn.Call(t.Context(), "tools/call", json.RawMessage(params), up); err != nil {
				t.Error(err)
			}
			notes := up.seen()
			if len(notes) != steps {
				t.Errorf("%d of %d notifications before the result", len(notes), steps)
			}
			for n, got := range notes {
				if want := fmt.Sprintf(`notifications/progress {"progress":%d,"progressToken":"same","total":%d}`, n+1, steps); got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
		})
	}
	group.Wait()
}

func TestOnlyTheTokensBytesAreReplaced(t *testing.T) {
	conn, _ := connect(t, "polite", Options{})
	params := `{ "_meta" : {"x":1.0, "progressToken" : "t" , "y":"\u00e9"},"name":"echo", "arguments":{"_meta":{"progressToken":"inner"}}}`
	result, err := conn.Call(t.Context(), "tools/call", json.RawMessage(params), agent(nil))
	if err != nil {
		t.Fatal(err)
	}
	before, after, _ := strings.Cut(params, `"t"`)
	if got := string(result); !strings.Contains(got, before) || !strings.Contains(got, after) || strings.Contains(got, `"t"`) {
		t.Fatal(got)
	}
}

// Clause 7, C04: a server's questions.
func TestAServersQuestions(t *testing.T) {
	answer := func(result string, err error) func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(result), err }
	}
	able := map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
		"roots/list":             answer(`{"roots":[],"n":1.0}`, nil),
		"sampling/createMessage": answer("", &RPCError{Code: -1, Message: "declined", Raw: json.RawMessage(`{"code":-1,"message":"declined","data":1.0}`)}),
		"elicitation/create":     answer("", errors.New("gone")),
	}
	for _, row := range []struct {
		method, want string
		up           *testAgent
	}{
		{"ping", `{"error":null,"result":{}}`, agent(nil)},
		{"made/up", `"code":-32601`, agent(able)},
		{"roots/list", `{"error":null,"result":{"roots":[],"n":1.0}}`, agent(able)},
		{"sampling/createMessage", `{"error":{"code":-1,"message":"declined","data":1.0},"result":null}`, agent(able)},
		{"elicitation/create", `"code":-32603`, agent(able)},
		{"roots/list", `"code":-32601`, agent(nil)},
		{"sampling/createMessage", `"code":-32601`, agent(nil)},
	} {
		t.Run(row.method, func(t *testing.T) {
			conn, _ := connect(t, "polite", Options{})
			result, err := conn.Call(t.Context(), "tools/call", args("ask", `{"method":"`+row.method+`"}`), row.up)
			if err != nil || !strings.Contains(string(result), row.want) {
				t.Fatalf("%s, %v; want %s", result, err, row.want)
			}
		})
	}
}

func TestNobodyIsAskedWhereTwoCouldBeMeant(t *testing.T) {
	conn, _ := connect(t, "polite", Options{})
	up := agent(map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
		"roots/list": func(context.Context, json.RawMessage) (json.RawMessage, error) { panic("asked") },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { conn.Call(ctx, "tools/call", args("hang", "{}"), up); close(done) }()
	within(t, 5*time.Second, "the first call", func() bool { return conn.InFlight() == 1 })
	result, err := conn.Call(t.Context(), "tools/call", args("ask", `{"method":"roots/list"}`), up)
	if err != nil || !strings.Contains(string(result), "several calls are in flight") {
		t.Fatal(string(result), err)
	}
	cancel()
	<-done
}

func TestAQuestionEndsWithItsCall(t *testing.T) {
	conn, _ := connect(t, "polite", Options{})
	asked, ended := make(chan struct{}), make(chan struct{})
	up := agent(map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
		"elicitation/create": func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			close(asked)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := conn.Call(ctx, "tools/call", args("ask", `{"method":"elicitation/create"}`), up); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-ended
}

func TestAQuestionCanBeTakenBack(t *testing.T) {
	conn, _ := connect(t, "polite", Options{})
	ended := make(chan struct{})
	up := agent(map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
		"elicitation/create": func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		},
	})
	if _, err := conn.Call(t.Context(), "tools/call", args("take-back", `{"method":"elicitation/create","ms":50}`), up); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// An agent that is slow to take its progress delays nobody, and loses no result.
func TestASlowAgentDelaysNobody(t *testing.T) {
	conn, _ := connect(t, "polite", Options{})
	release := make(chan struct{})
	slow := &slowAgent{testAgent: agent(nil), release: release}
	result := make(chan error, 1)
	go func() {
		_, err := conn.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"progress","arguments":{"steps":5000},"_meta":{"progressToken":1}}`), slow)
		result <- err
	}()
	within(t, 10*time.Second, "more progress than is kept", func() bool { return conn.Stats().DroppedNotifications > 1000 })
	for range 20 {
		if _, err := callTool(t.Context(), conn, "echo", "{}"); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

type slowAgent struct {
	*testAgent
	release chan struct{}
}

func (a *slowAgent) Notify(string, json.RawMessage) { <-a.release }

func TestLogMessagesGoToTheOneCallOrNowhere(t *testing.T) {
	heard := make(chan string, 64)
	conn, _ := connect(t, "polite", Options{Notification: func(method string, _ json.RawMessage) { heard <- method }})
	up := agent(nil)
	if _, err := conn.Call(t.Context(), "tools/call", args("log", `{"n":5}`), up); err != nil || len(up.seen()) != 5 || len(heard) != 0 {
		t.Fatal(up.seen(), err)
	}
	if _, err := conn.Call(t.Context(), "tools/call", args("log", `{"n":1}`), nil); err != nil {
		t.Fatal(err)
	}
	if dropped := conn.Stats().DroppedNotifications; dropped != 1 {
		t.Fatalf("%d were dropped of one that no agent's call can have caused", dropped)
	}
	if _, err := callTool(t.Context(), conn, "change", "{}"); err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "notifications/tools/list_changed" {
		t.Fatal(got)
	}
}

func TestALogMessageDuringTwoClientsCallsReachesNeither(t *testing.T) {
	heard := make(chan string, 64)
	conn, _ := connect(t, "polite", Options{Notification: func(method string, _ json.RawMessage) { heard <- method }})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	one, two := agent(nil), agent(nil)
	waiting := make(chan error, 1)
	go func() {
		_, err := conn.Call(ctx, "tools/call", args("hang", "{}"), one)
		waiting <- err
	}()
	within(t, 10*time.Second, "the first client's call", func() bool { return conn.InFlight() == 1 })
	if _, err := conn.Call(t.Context(), "tools/call", args("log", `{"n":5}`), two); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-waiting
	if dropped := conn.Stats().DroppedNotifications; len(one.seen()) != 0 || len(two.seen()) != 0 || len(heard) != 0 || dropped != 5 {
		t.Fatal(one.seen(), two.seen(), len(heard), dropped)
	}
}

func TestAnswersOutOfOrderFindTheirCalls(t *testing.T) {
	conn, _ := connect(t, "out-of-order", Options{})
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			result, err := callTool(t.Context(), conn, "go", fmt.Sprintf(`{"count":20,"mine":%d}`, i))
			if err != nil || !strings.Contains(string(result), fmt.Sprintf(`"mine":%d}`, i)) {
				t.Errorf("%s, %v", result, err)
			}
		})
	}
	group.Wait()
}

// C03: the limit is per connector, and a large answer within it arrives.
func TestAnApprovedFrameLimitHolds(t *testing.T) {
	conn, _ := connect(t, "polite", Options{MaxFrame: 8 << 20})
	if result, err := callTool(t.Context(), conn, "big", `{"bytes":6291456}`); err != nil || len(result) < 6<<20 {
		t.Fatal(len(result), err)
	}
	if _, err := callTool(t.Context(), conn, "big", `{"bytes":8388608}`); coded.Of(err) != FrameTooLarge {
		t.Fatal(err)
	}
}
