package loopback

import (
	"context"
	"net"
	"strconv"
)

// bind listens on 127.0.0.1:port in a way that no other program of the same user
// can share (see exclusive).
func bind(port int) (net.Listener, error) {
	return listen("tcp4", Host, port)
}

// twinTaken reports whether [::1]:port is in use. Without IPv6 it is not.
func twinTaken(port int) bool {
	ln, err := listen("tcp6", "::1", port)
	if err != nil {
		return addressInUse(err)
	}
	ln.Close()
	return false
}

func listen(network, host string, port int) (net.Listener, error) {
	c := net.ListenConfig{Control: exclusive}
	return c.Listen(context.Background(), network, net.JoinHostPort(host, strconv.Itoa(port)))
}
