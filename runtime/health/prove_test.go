package health

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/loopback"
)

// serve runs h on a loopback port of its own and returns the port.
func serve(t *testing.T, h http.Handler) int {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

// instance runs a real health endpoint; adjust may change what it says.
func instance(t *testing.T, key []byte, tracker *Tracker) int {
	t.Helper()
	var h http.Handler
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	port := server.Listener.Addr().(*net.TCPAddr).Port
	h = Desktop(DesktopConfig{Version: "1.2.3", Instance: "abcdef", Port: port, Key: key, Tracker: tracker})
	server.Start()
	t.Cleanup(server.Close)
	return port
}

func TestInstanceProvesItself(t *testing.T) {
	tracker := ready()
	port := instance(t, testKey, tracker)
	reply, err := Prove(t.Context(), port, testKey)
	if err != nil || !reply.OK || reply.Instance != "abcdef" {
		t.Errorf("healthy: %+v, %v", reply, err)
	}
	tracker.Set(StoreDamaged, "", nil)
	reply, err = Prove(t.Context(), port, testKey)
	if err != nil || reply.OK || len(reply.Problems) != 1 {
		t.Errorf("unhealthy: %+v, %v; want a proved answer", reply, err)
	}
}

// Any program may answer on a port that was ours once.
func TestStrangerOnThePortIsNotBelieved(t *testing.T) {
	answer := func(status int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		})
	}
	otherKey := bytes.Repeat([]byte{9}, keyBytes)
	tests := []struct {
		name string
		port int
	}{
		{"answers 200 to everything", serve(t, answer(200, "ok"))},
		{"answers 404", serve(t, answer(404, "no"))},
		{"copies our answer but knows no key", serve(t, answer(200, `{"ok":true,"service":"sallyport","version":"1.2.3","instance":"abcdef","ts":1}`))},
		{"proves with an empty proof", serve(t, answer(200, `{"ok":true,"service":"sallyport","version":"1.2.3","instance":"abcdef","ts":1,"proof":""}`))},
		{"is Sallyport with another state folder", instance(t, otherKey, ready())},
		{"replays an answer it saw", serve(t, replay(t))},
		{"relays to the real instance on another port", serve(t, relay(t, instance(t, testKey, ready())))},
		{"redirects to the real instance", serve(t, http.RedirectHandler(fmt.Sprintf("http://127.0.0.1:%d%s", instance(t, testKey, ready()), DesktopPath), 307))},
		{"never ends its answer", serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 4096)); err != nil {
					return
				}
			}
		}))},
		{"speaks another protocol", rawServer(t, "SSH-2.0-OpenSSH_9.9\r\n")},
		{"closes at once", rawServer(t, "")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reply, err := Prove(t.Context(), tt.port, testKey)
			if coded.Of(err) != Stranger || reply.OK {
				t.Errorf("%+v, %v; want %s", reply, err, Stranger)
			}
		})
	}
}

// replay answers every question with one true answer to an earlier one.
func replay(t *testing.T) http.Handler {
	port := instance(t, testKey, ready())
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s?nonce=%s", port, DesktopPath, goodNonce))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	old, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Contains(old, []byte("proof")) {
		t.Fatalf("%s, %v", old, err)
	}
	http.DefaultClient.CloseIdleConnections()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(old) })
}

// relay passes our question on to the real instance and its answer back.
func relay(t *testing.T, port int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		transport := &http.Transport{DisableKeepAlives: true}
		request, err := http.NewRequest(r.Method, fmt.Sprintf("http://127.0.0.1:%d%s", port, r.URL), nil)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		w.WriteHeader(response.StatusCode)
		io.Copy(w, response.Body)
	})
}

// rawServer greets every connection with some bytes and closes it.
func rawServer(t *testing.T, greeting string) int {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, greeting)
			conn.Close()
		}
	})
	return loopback.Port(ln)
}

// While it stops, an instance answers what has begun and ends the connection.
func TestInstanceThatStopsIsOursAndTakesNoMoreRequests(t *testing.T) {
	var h http.Handler
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	port := server.Listener.Addr().(*net.TCPAddr).Port
	h = Desktop(DesktopConfig{Version: "1.2.3", Instance: "abcdef", Port: port, Key: testKey, Tracker: ready()})
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	defer server.Close()
	if reply, err := Prove(t.Context(), port, testKey); err != nil || reply.Instance != "abcdef" {
		t.Errorf("asked for its health: %+v, %v", reply, err)
	}
	if _, _, err := Dial(t.Context(), port, testKey); coded.Of(err) != NotRunning {
		t.Errorf("asked for a connection: %v, want %s", err, NotRunning)
	}
}

func TestNothingOnThePortIsNotRunning(t *testing.T) {
	if _, err := Prove(t.Context(), closedPort(t), testKey); coded.Of(err) != NotRunning {
		t.Errorf("%v, want %s", err, NotRunning)
	}
}

func closedPort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return loopback.Port(ln)
}

func TestProgramThatAcceptsAndSaysNothingIsGivenUpOn(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0") // the kernel accepts; nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	begin := time.Now()
	if _, err := Prove(t.Context(), loopback.Port(ln), testKey); coded.Of(err) != Stranger {
		t.Errorf("%v, want %s", err, Stranger)
	}
	if took := time.Since(begin); took > answerWithin+2*time.Second {
		t.Errorf("took %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := Prove(ctx, loopback.Port(ln), testKey); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the caller's cancellation", err)
	}
}

// throughDial is how our own clients connect (api/client): whatever URL they are
// given, every connection is proved before a request is sent on it.
func throughDial(port int) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, _, err := Dial(ctx, port, testKey)
		return conn, err
	}}
}

// C65: the variables name a proxy that would see the question, C66: the name
// localhost is never asked for.
func TestProofNeverGoesThroughAProxy(t *testing.T) {
	var seen atomic.Int32
	proxy := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"} {
		t.Setenv(name, fmt.Sprintf("http://127.0.0.1:%d", proxy))
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	port := instance(t, testKey, ready())
	if _, err := Prove(t.Context(), port, testKey); err != nil {
		t.Error(err)
	}
	client := &http.Client{Transport: throughDial(port)}
	defer client.CloseIdleConnections()
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "sallyport.example"} {
		response, err := client.Get("http://" + net.JoinHostPort(host, fmt.Sprint(port)) + DesktopPath)
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		response.Body.Close()
	}
	if seen.Load() != 0 {
		t.Errorf("the proxy saw %d requests", seen.Load())
	}
}

func TestOurClientsSendNothingToAStranger(t *testing.T) {
	var heard atomic.Pointer[string]
	port := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token := r.Header.Get("Authorization"); token != "" {
			heard.Store(&token)
		}
		json.NewEncoder(w).Encode(Reply{OK: true, Service: Service})
	}))
	client := &http.Client{Transport: throughDial(port)}
	request, err := http.NewRequestWithContext(t.Context(), "GET", loopback.URL(port)+"/v1/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer secret")
	if _, err := client.Do(request); coded.Of(err) != Stranger {
		t.Errorf("%v, want %s", err, Stranger)
	}
	if heard.Load() != nil {
		t.Error("the stranger got the token")
	}
}

func TestOurClientsReachTheInstance(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewUnstartedServer(mux)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	mux.Handle(DesktopPath, Desktop(DesktopConfig{Version: "1", Instance: "i", Port: port, Key: testKey, Tracker: ready()}))
	mux.HandleFunc("/v1/status", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Authorization")) })
	server.Start()
	defer server.Close()
	client := &http.Client{Transport: throughDial(port)}
	defer client.CloseIdleConnections()
	for range 3 {
		request, _ := http.NewRequestWithContext(t.Context(), "GET", loopback.URL(port)+"/v1/status", nil)
		request.Header.Set("Authorization", "Bearer secret")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if string(body) != "Bearer secret" {
			t.Errorf("the instance heard %q", body)
		}
	}
}

func TestKeyIsMadeOnceForItsOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadKey(dir); coded.Of(err) != "no-health-key" {
		t.Errorf("before the first start: %v", err)
	}
	first, err := LoadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadKey(dir)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the key is made anew at every start: %v", err)
	}
	read, err := ReadKey(dir)
	if err != nil || !bytes.Equal(first, read) {
		t.Errorf("a client reads another key: %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
}

func TestFileThatIsNoKeyProvesNothingAndIsReplaced(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "zeros for a key": strings.Repeat("\x00", 65), "cut": strings.Repeat("a", 40) + "\n", "not hex": strings.Repeat("z", 64) + "\n", "long": strings.Repeat("a", 66) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, KeyFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if key, err := ReadKey(dir); err == nil {
				t.Errorf("read as %x", key)
			}
			if key, err := LoadKey(dir); err != nil || len(key) != keyBytes {
				t.Errorf("a start does not replace it: %v", err)
			}
		})
	}
}
