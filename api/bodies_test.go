package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/api"
)

// TestABodyThatNeverEndsIsNotWaitedFor: who says that a body comes and does not send it
// holds nothing for long, at the API and at /mcp; who has sent it may wait for ever.
func TestABodyThatNeverEndsIsNotWaitedFor(t *testing.T) {
	r := newRig(t)
	r.approve("slow")
	a := r.agentWith("slow", "fake/main")
	const within = 300 * time.Millisecond
	port := r.listenServer(func(port int) *http.Server {
		return &http.Server{Handler: api.TimedBodies(r.handlerAt(port), within)}
	})
	head := func(path, token string, length int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n",
			path, port, token, length)
	}
	operator := r.tokens["operator"]
	for what, row := range map[string]struct{ text, status string }{
		"a body that is half there, at the API":     {head("/v1/clients", operator, 100) + `{"name":`, " 408 "},
		"a body of which nothing is there":          {head("/v1/clients", operator, 100), " 408 "},
		"a body in pieces without an end":           {strings.Replace(head("/v1/clients", operator, 0), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + "5\r\n{\"nam\r\n", " 408 "},
		"a body that is half there, at /mcp":        {head("/mcp", r.tokens[a.as], 100) + `{"jsonrpc":`, " 408 "},
		"a body that nobody reads, with no token":   {head("/v1/clients", "x", 100) + `{`, " 401 "},
		"a body for an address that does not exist": {head("/nowhere", operator, 100) + `{`, " 404 "},
	} {
		line, closed := r.raw(port, row.text, 20*time.Second)
		if !strings.Contains(line, row.status) || !closed {
			t.Errorf("%s is answered with %q, closed: %v", what, line, closed)
		}
	}
	body := `{"tool":"slow","args":{"ms":1000}}` // longer than a body may take
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(connection, head("/v1/plugins/fake/main/call", operator, len(body))+body)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		t.Errorf("a call that takes longer than a body may: %d %s", response.StatusCode, text)
	}
}

// TestEveryServerTimesItsBodies: the limit is the product's own, not this test's.
func TestEveryServerTimesItsBodies(t *testing.T) {
	timed := false
	port := (&rig{t: t}).listenServer(func(int) *http.Server {
		return api.HTTPServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			timed = fmt.Sprintf("%T", r.Body) == "*api.timedBody"
		}), discard)
	})
	response, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/", port), "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if !timed || api.BodyTime > time.Minute {
		t.Errorf("a body may take for ever, or %s", api.BodyTime)
	}
}
