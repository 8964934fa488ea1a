package health

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

var testKey = bytes.Repeat([]byte{7}, keyBytes)

func testDesktop(tracker *Tracker) http.Handler {
	return Desktop(DesktopConfig{Version: "1.2.3", Instance: "abcdef", Port: 23456, Key: testKey, Tracker: tracker})
}

func get(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

const goodNonce = "0123456789abcdef"

func TestHealthAnswer(t *testing.T) {
	long := strings.Repeat("n", 64)
	tests := []struct {
		name     string
		set      []Code
		target   string
		status   int
		contains []string
		not      []string
	}{
		{
			name: "healthy", target: DesktopPath, status: 200,
			contains: []string{`"ok":true`, `"service":"sallyport"`, `"version":"1.2.3"`, `"instance":"abcdef"`, `"ts":`},
			not:      []string{"problems", "proof"},
		},
		{
			name: "the store cannot be read", set: []Code{StoreUnreadable}, target: DesktopPath, status: 503,
			contains: []string{`"ok":false`, `"problems":["store-unreadable"]`},
		},
		{
			name: "two problems, in order and each once", set: []Code{StoreUnreadable, AuditUnwritable}, target: DesktopPath, status: 503,
			contains: []string{`"problems":["audit-unwritable","store-unreadable"]`},
		},
		{
			name: "a warning does not make it unhealthy and is not told", set: []Code{SealKeyFile, PortChanged}, target: DesktopPath, status: 200,
			contains: []string{`"ok":true`},
			not:      []string{"seal-key-file", "port-changed"},
		},
		{
			name: "a nonce is answered with a proof", target: DesktopPath + "?nonce=" + goodNonce, status: 200,
			contains: []string{`"proof":"` + proof(testKey, goodNonce, "abcdef", 23456) + `"`},
		},
		{
			name: "unhealthy proves itself too", set: []Code{StoreDamaged}, target: DesktopPath + "?nonce=" + long, status: 503,
			contains: []string{`"proof":"` + proof(testKey, long, "abcdef", 23456) + `"`},
		},
		{
			name: "a nonce of 64 characters that are 128 bytes", target: DesktopPath + "?nonce=" + strings.Repeat("%C3%A9", 64), status: 200,
			contains: []string{`"proof":"`},
		},
		{name: "a nonce of 15", target: DesktopPath + "?nonce=" + goodNonce[1:], status: 400, not: []string{"proof", "instance"}},
		{name: "a nonce of 65", target: DesktopPath + "?nonce=n" + long, status: 400, not: []string{"proof"}},
		{name: "an empty nonce", target: DesktopPath + "?nonce=", status: 400, not: []string{"proof"}},
		{name: "two nonces", target: DesktopPath + "?nonce=" + goodNonce + "&nonce=" + goodNonce, status: 400, not: []string{"proof"}},
		{name: "a nonce with a line feed", target: DesktopPath + "?nonce=" + goodNonce + "%0Ax", status: 400, not: []string{"proof"}},
		{name: "a nonce that is not UTF-8", target: DesktopPath + "?nonce=" + goodNonce + "%FF", status: 400, not: []string{"proof"}},
		{name: "a query that cannot be read", target: DesktopPath + "?nonce=%zz", status: 400, not: []string{"proof"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tracker := ready()
			for _, code := range tt.set {
				tracker.Set(code, "a", nil)
				tracker.Set(code, "b", nil)
			}
			w := get(testDesktop(tracker), http.MethodGet, tt.target)
			if w.Code != tt.status {
				t.Errorf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			for _, part := range tt.contains {
				if !strings.Contains(w.Body.String(), part) {
					t.Errorf("%s\nlacks %s", w.Body, part)
				}
			}
			for _, part := range tt.not {
				if strings.Contains(w.Body.String(), part) {
					t.Errorf("%s\nshows %s", w.Body, part)
				}
			}
		})
	}
}

// C63: without a token nobody learns what is installed, where, or what is wrong
// with it.
func TestHealthDisclosesNothingButItsFields(t *testing.T) {
	tracker := ready()
	tracker.Set(StoreUnreadable, "/home/grace/.local/share/sallyport", nil)
	tracker.Set(ServerParked, "notes-sync/main", Args{"plugin": "notes-sync/main"})
	tracker.Set(PluginFolderUnreadable, "~/plugins", Args{"folder": "~/plugins"})
	w := get(testDesktop(tracker), http.MethodGet, DesktopPath+"?nonce="+goodNonce)
	for _, word := range []string{"grace", "home", "notes", "plugin", "~", "/", "token", "opened"} {
		if strings.Contains(w.Body.String(), word) {
			t.Errorf("%s\nshows %q", w.Body, word)
		}
	}
	var fields map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	allowed := " ok service version instance ts problems proof "
	for name := range fields {
		if !strings.Contains(allowed, " "+name+" ") {
			t.Errorf("field %q is not in spec/local-api.md 4", name)
		}
	}
	for name := range w.Header() {
		if strings.HasPrefix(name, "Access-Control") || name == "Server" {
			t.Errorf("header %s is sent", name)
		}
	}
}

func TestHealthTimeIsNowInMilliseconds(t *testing.T) {
	w := get(testDesktop(ready()), http.MethodGet, DesktopPath)
	var reply Reply
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
		t.Fatal(err)
	}
	if age := time.Since(time.UnixMilli(reply.TS)); age < -time.Second || age > time.Minute {
		t.Errorf("ts %d is %v old", reply.TS, age)
	}
}

func TestHealthHeadHasTheStatusAndNoBody(t *testing.T) {
	tracker := ready()
	server := httptest.NewServer(testDesktop(tracker))
	defer server.Close()
	head := func() *http.Response {
		response, err := server.Client().Head(server.URL + DesktopPath)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response
	}
	if r := head(); r.StatusCode != 200 || r.ContentLength <= 0 {
		t.Errorf("healthy: status %d, length %d", r.StatusCode, r.ContentLength)
	}
	tracker.Set(StoreDamaged, "", nil)
	if r := head(); r.StatusCode != 503 {
		t.Errorf("unhealthy: status %d", r.StatusCode)
	}
}

func TestHealthAnswersReadsOnly(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT"} {
		w := get(testDesktop(ready()), method, DesktopPath+"?nonce="+goodNonce)
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: status %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
		if strings.Contains(w.Body.String(), "proof") {
			t.Errorf("%s is answered with a proof", method)
		}
	}
}

// A dependency that hangs cannot reach the answer, because the answer asks none:
// here everybody who pushes hangs in the middle of it.
func TestHealthAnswersAtOnceWhileOthersHang(t *testing.T) {
	tracker := ready()
	defer tracker.Close()
	hang := make(chan struct{})
	hung := make(chan struct{})
	ended := make(chan struct{})
	go func() { // a subscriber that got a change and never comes back for more
		defer close(ended)
		changed, stop := tracker.Subscribe()
		defer stop()
		tracker.Set(ServerParked, "x", nil)
		<-changed
		close(hung)
		<-hang
	}()
	<-hung
	handler := testDesktop(tracker)
	took := make([]time.Duration, 200)
	for i := range took {
		tracker.Set(ServerParked, string(rune('a'+i%26)), nil)
		begin := time.Now()
		if w := get(handler, http.MethodGet, DesktopPath+"?nonce="+goodNonce); w.Code != 200 {
			t.Fatalf("status %d", w.Code)
		}
		took[i] = time.Since(begin)
	}
	close(hang)
	<-ended
	slices.Sort(took)
	if usual, worst := took[100], took[199]; usual > 50*time.Millisecond || worst > 5*time.Second {
		t.Errorf("an answer usually takes %v, and once %v", usual, worst)
	}
}

func BenchmarkDesktop(b *testing.B) {
	h := testDesktop(ready())
	r := httptest.NewRequest(http.MethodGet, DesktopPath+"?nonce="+goodNonce, nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}

func FuzzNonce(f *testing.F) {
	for _, seed := range []string{"nonce=" + goodNonce, "nonce=", "nonce=a&nonce=b", "nonce=%zz", "nonce=%0a%0a%0a%0a%0a%0a%0a%0a%0a%0a%0a%0a%0a%0a%0a%0a", ";", "nonce"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		nonce, asked, err := nonceOf(query)
		if err != nil || !asked {
			if nonce != "" {
				t.Errorf("%q is refused and used", query)
			}
			return
		}
		if strings.ContainsAny(nonce, "\n\r\x00") || len(nonce) < 16 || len(nonce) > 64*4 {
			t.Errorf("%q gives the nonce %q", query, nonce)
		}
	})
}
