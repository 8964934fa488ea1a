package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is the official SDK's client and what it heard.
type agent struct {
	*sdk.ClientSession
	mu       sync.Mutex
	progress []string
	logs     int
	changes  int
	updates  int
}

func (a *agent) count(of *int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *of
}

// agents connects the SDK's client in every way there is.
func agents(t *testing.T, each func(t *testing.T, a *agent, f *fake)) {
	for _, version := range []string{"2024-11-05", "2025-11-25", "2026-07-28"} {
		t.Run("HTTP "+version, func(t *testing.T) {
			r := newRig(t, Limits{ChangeTime: 5 * time.Millisecond})
			each(t, connect(t, &sdk.StreamableClientTransport{Endpoint: r.url}, version), r.fake)
		})
		t.Run("stream "+version, func(t *testing.T) {
			f := newFake()
			f.set("agent", Catalog{Connectors: []Exposed{offer(demo, "echo")}})
			g := New(Config{Backend: f, Version: "1", Limits: Limits{ChangeTime: 5 * time.Millisecond}})
			here, there := net.Pipe()
			done := make(chan error, 1)
			go func() { done <- g.ServeStream(context.Background(), ClientInfo{Name: "agent"}, there) }()
			t.Cleanup(func() {
				here.Close()
				<-done
				g.Close()
			})
			each(t, connect(t, &sdk.IOTransport{Reader: here, Writer: here}, version), f)
		})
	}
}

func connect(t *testing.T, transport sdk.Transport, version string) *agent {
	t.Helper()
	a := &agent{}
	add := func(to *int) {
		a.mu.Lock()
		*to++
		a.mu.Unlock()
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{
		CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return &sdk.CreateMessageResult{Role: "assistant", Model: "m", Content: &sdk.TextContent{Text: "sampled"}}, nil
		},
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "elicited"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, p *sdk.ProgressNotificationClientRequest) {
			a.mu.Lock()
			a.progress = append(a.progress, fmt.Sprint(p.Params.Progress))
			a.mu.Unlock()
		},
		LoggingMessageHandler:      func(context.Context, *sdk.LoggingMessageRequest) { add(&a.logs) },
		ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { add(&a.changes) },
		ResourceUpdatedHandler:     func(context.Context, *sdk.ResourceUpdatedNotificationRequest) { add(&a.updates) },
		PromptListChangedHandler:   func(context.Context, *sdk.PromptListChangedRequest) { add(&a.changes) },
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { add(&a.changes) },
	})
	client.AddRoots(&sdk.Root{URI: "file:///root", Name: "root"})
	session, err := client.Connect(context.Background(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	a.ClientSession = session
	return a
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestTheSDKListsAndCalls(t *testing.T) {
	agents(t, func(t *testing.T, a *agent, f *fake) {
		ctx := deadline(t)
		tools, err := a.ListTools(ctx, nil)
		if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "demo__main__echo" {
			t.Fatal(tools, err)
		}
		result, err := a.CallTool(ctx, &sdk.CallToolParams{Name: "demo__main__echo", Arguments: map[string]any{"a": 1}})
		if err != nil || result.Content[0].(*sdk.TextContent).Text != "echo" {
			t.Fatal(result, err)
		}
		if _, err := a.CallTool(ctx, &sdk.CallToolParams{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), "Unknown tool") {
			t.Error(err)
		}
		// The session is usable after a refusal.
		if _, err := a.ListTools(ctx, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestTheSDKGetsProgressAndLogs(t *testing.T) {
	agents(t, func(t *testing.T, a *agent, f *fake) {
		f.tools["echo"] = func(_ context.Context, params json.RawMessage, up Upstream) (json.RawMessage, error) {
			for i := range 5 {
				up.Notify("notifications/progress", json.RawMessage(fmt.Sprintf(`{"progress":%d,"progressToken":0}`, i+1)))
				up.Notify("notifications/message", json.RawMessage(`{"level":"warning","data":"x"}`))
			}
			return json.RawMessage(`{"content":[]}`), nil
		}
		ctx := deadline(t)
		params := &sdk.CallToolParams{Name: "demo__main__echo", Meta: sdk.Meta{"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"}}
		if _, err := a.CallTool(ctx, params); err != nil {
			t.Fatal(err)
		}
		eventually(t, "5 of 5", func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return strings.Join(a.progress, " ") == "1 2 3 4 5"
		})
		eventually(t, "the logs", func() bool { return a.count(&a.logs) == 5 })
	})
}

func TestTheSDKsCancellationReachesTheBackend(t *testing.T) {
	agents(t, func(t *testing.T, a *agent, f *fake) {
		began, ended := make(chan struct{}), make(chan struct{})
		f.tools["echo"] = func(ctx context.Context, _ json.RawMessage, _ Upstream) (json.RawMessage, error) {
			close(began)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-began
			cancel()
		}()
		if _, err := a.CallTool(ctx, &sdk.CallToolParams{Name: "demo__main__echo"}); err == nil {
			t.Error("no error")
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("the backend was not told")
		}
		if _, err := a.ListTools(deadline(t), nil); err != nil {
			t.Errorf("the session did not survive a cancellation: %v", err)
		}
	})
}

func TestTheSDKAnswersQuestions(t *testing.T) {
	agents(t, func(t *testing.T, a *agent, f *fake) {
		f.tools["echo"] = func(ctx context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
			text := ""
			for method, params := range map[string]string{
				"roots/list":             `{}`,
				"elicitation/create":     `{"message":"m","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`,
				"sampling/createMessage": `{"messages":[],"maxTokens":1}`,
			} {
				answer, err := up.Request(ctx, method, json.RawMessage(params))
				if err != nil {
					return nil, err
				}
				text += string(answer)
			}
			return json.RawMessage(`{"content":[{"type":"text","text":` + string(quote(text)) + `}]}`), nil
		}
		result, err := a.CallTool(deadline(t), &sdk.CallToolParams{Name: "demo__main__echo"})
		if err != nil {
			t.Fatal(err)
		}
		got := result.Content[0].(*sdk.TextContent).Text
		for _, want := range []string{"file:///root", "elicited", "sampled"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is missing in %s", want, got)
			}
		}
	})
}

func TestTheSDKHearsOfChanges(t *testing.T) {
	agents(t, func(t *testing.T, a *agent, f *fake) {
		f.requests["resources/list"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
			return json.RawMessage(`{"resources":[{"uri":"a://1","name":"a"}]}`), nil
		}
		eventually(t, "list changes", func() bool {
			f.event(Event{Kind: ToolsChanged, Connector: demo})
			time.Sleep(20 * time.Millisecond)
			return a.count(&a.changes) > 0
		})
		ctx := deadline(t)
		resources, err := a.ListResources(ctx, nil)
		if err != nil || len(resources.Resources) != 1 {
			t.Fatal(resources, err)
		}
		if a.InitializeResult().ProtocolVersion == modernVersion {
			return // subscriptions are tested raw
		}
		if err := a.Subscribe(ctx, &sdk.SubscribeParams{URI: "a://1"}); err != nil {
			t.Fatal(err)
		}
		f.event(Event{Kind: ResourceUpdated, Connector: demo, Params: json.RawMessage(`{"uri":"a://1"}`)})
		eventually(t, "resource update", func() bool { return a.count(&a.updates) == 1 })
		if err := a.Ping(ctx, nil); err != nil {
			t.Error(err)
		}
		if err := a.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: "error"}); err != nil {
			t.Error(err)
		}
	})
}
