package app

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// leaky makes a pipe that children inherit with the first byte, as Wails does.
type leaky struct {
	*httptest.ResponseRecorder
	pipe [2]int
}

func (l *leaky) WriteHeader(status int) {
	if err := syscall.Pipe2(l.pipe[:], 0); err != nil {
		panic(err)
	}
	l.ResponseRecorder.WriteHeader(status)
}

func (l *leaky) close() { _ = syscall.Close(l.pipe[0]); _ = syscall.Close(l.pipe[1]) }

// own is how many pipes a child has by right: its output and its errors.
const own = 2

// TestNoChildInheritsAnAnswersPipe: children are started while answers are delivered, and
// say which pipes they have.
func TestNoChildInheritsAnAnswersPipe(t *testing.T) {
	stop := make(chan struct{})
	var answering sync.WaitGroup
	for range 4 {
		answering.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w := &leaky{ResponseRecorder: httptest.NewRecorder()}
				deliver(w, http.StatusOK, []byte("x"))
				w.close()
			}
		})
	}
	for range 60 {
		out, err := exec.Command("/bin/ls", "-l", "/proc/self/fd").Output()
		if err != nil {
			t.Fatal(err)
		}
		pipes := strings.Count(string(out), "pipe:")
		if pipes > own {
			t.Errorf("a child has %d pipes:\n%s", pipes, out)
			break
		}
	}
	close(stop)
	answering.Wait()
}

// The same without deliver, so that the test above is known to see what it looks for.
func TestAPipeOfWailsIsInherited(t *testing.T) {
	w := &leaky{ResponseRecorder: httptest.NewRecorder()}
	w.WriteHeader(http.StatusOK)
	defer w.close()
	out, err := exec.Command("/bin/ls", "-l", "/proc/self/fd").Output()
	if err != nil || strings.Count(string(out), "pipe:") != own+2 {
		t.Errorf("%v\n%s", err, out)
	}
}

// Everything that writes to the webview goes by deliver: what is written by Wails itself
// is only what it rewrites, which it finds by this type.
func TestWailsRewritesNothing(t *testing.T) {
	if strings.Contains(firstPageType, "text/html") || !strings.EqualFold(firstPageType, "text/html; charset=utf-8") {
		t.Errorf("the first page is %q", firstPageType)
	}
}
