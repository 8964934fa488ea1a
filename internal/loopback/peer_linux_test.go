package loopback

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhoseTheOtherEndIs(t *testing.T) {
	for name, row := range map[string]struct{ listen, dial string }{
		"IPv4":                          {"127.0.0.1:0", "127.0.0.1"},
		"IPv4 through a socket of IPv6": {"[::]:0", "::ffff:127.0.0.1"},
	} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", row.listen)
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort(row.dial, port))
		if err != nil {
			t.Fatal(err)
		}
		uid, known := PeerUser(netip.MustParseAddrPort(conn.LocalAddr().String()), netip.MustParseAddrPort(conn.RemoteAddr().String()))
		if !known || uid != os.Getuid() {
			t.Errorf("%s: %d, %v", name, uid, known)
		}
		conn.Close()
		listener.Close()
	}
	if uid, known := PeerUser(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")); known {
		t.Errorf("an end that nobody has is user %d's", uid)
	}
}

// TestTheOtherEndOfAnotherUser makes a socket as another user, where this may: as root.
// An ordinary user sees the same by the table in TestReadingTheTable.
func TestTheOtherEndOfAnotherUser(t *testing.T) {
	const nobody = 65534
	want := os.Getuid()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
	if want == 0 {
		if err := unix.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		want = nobody
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socket)
	port := listener.Addr().(*net.TCPAddr).Port
	if err := unix.Connect(socket, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if uid, known := PeerUser(netip.MustParseAddrPort(conn.RemoteAddr().String()), netip.MustParseAddrPort(conn.LocalAddr().String())); !known || uid != want {
		t.Errorf("%d, %v, and not %d", uid, known, want)
	}
}

func TestReadingTheTable(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1060 1 00000000dcd468b7 100 0 0 10 0
   1: 0100007F:BEEF 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:BEEF 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 20 4 30 10 -1
   3: 0100007F:AAAA 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  nobody
   4: 0100007F:AAAB 0100007F:1F90 short
   5: 0100007F:CCCC 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 4 1 0 20 4 30 10 -1
   6: 0100007F:CCCC 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 5 1 0 20 4 30 10 -1
`
	for name, row := range map[string]struct {
		end   string
		uid   int
		known bool
	}{
		"the connection's own end, not ours":               {tableEnd(netip.MustParseAddr("127.0.0.1"), 0xBEEF), 1001, true},
		"a user that is no number":                         {tableEnd(netip.MustParseAddr("127.0.0.1"), 0xAAAA), 0, false},
		"a line that is cut":                               {tableEnd(netip.MustParseAddr("127.0.0.1"), 0xAAAB), 0, false},
		"a port that another user connects elsewhere from": {tableEnd(netip.MustParseAddr("127.0.0.1"), 0xCCCC), 1001, true},
		"nobody's": {tableEnd(netip.MustParseAddr("127.0.0.1"), 2), 0, false},
	} {
		if uid, known := userIn(strings.NewReader(table), row.end, tableEnd(netip.MustParseAddr("127.0.0.1"), 0x1F90)); uid != row.uid || known != row.known {
			t.Errorf("%s: %d, %v", name, uid, known)
		}
	}
	if got := tableEnd(netip.AddrFrom16(netip.MustParseAddr("127.0.0.1").As16()), 80); got != "0000000000000000FFFF00000100007F:0050" {
		t.Errorf("an address of IPv6 is written %s", got)
	}
}
