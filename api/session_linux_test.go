package api_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestALinkOfAnotherUserSignsNobodyIn redeems a link from a socket of another user's,
// which root can make: it is refused and stays good for its own user. For an ordinary
// user that socket is their own, and it is let in.
func TestALinkOfAnotherUserSignsNobodyIn(t *testing.T) {
	r := newRig(t)
	body := fmt.Sprintf(`{"code":%q}`, r.code())
	got := make(chan string)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		got <- redeemAs(65534, r.port, body)
	}()
	answer := <-got
	if os.Getuid() != 0 {
		if !strings.HasPrefix(answer, "200 ") {
			t.Fatalf("one's own link: %s", answer)
		}
		return
	}
	if !strings.Contains(answer, `"code":"link-of-another-user"`) {
		t.Fatalf("another user's program is answered %s", answer)
	}
	if got := r.send(request{method: "POST", path: "/v1/session", body: body}); got.status != 200 {
		t.Errorf("its own user is then answered %d %s", got.status, got.body)
	}
}

// redeemAs sends a code from a socket that is another user's where this may make one.
func redeemAs(uid, port int, body string) string {
	if os.Getuid() == 0 {
		if err := unix.Setfsuid(uid); err != nil {
			return err.Error()
		}
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	conn := os.NewFile(uintptr(socket), "socket")
	defer conn.Close()
	if err := unix.Connect(socket, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err.Error()
	}
	_, _ = fmt.Fprintf(conn, "POST /v1/session HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", port, len(body), body)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	said, err := bufio.NewReader(answer.Body).ReadString(0)
	return fmt.Sprint(answer.StatusCode, " ", said, " ", err)
}
