package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

const (
	dialTime  = 10 * time.Second // for one address of a host
	dialTimes = 30 * time.Second // for all of them, and for finding them
)

// Network is how names become addresses, and addresses connections. A nil field is
// the system's own.
type Network struct {
	// Resolve returns the addresses that a name stands for now.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial opens a TCP connection. It resolves nothing.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// TLS is whom to trust; nil trusts whom the system does.
	TLS *tls.Config
}

func (n Network) orSystem() Network {
	if n.Resolve == nil {
		n.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if n.Dial == nil {
		n.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", to.String())
		}
	}
	return n
}

// outbound opens the connections of one connector (spec/permissions.md, net): to
// its own endpoint and what its permissions name, at addresses that were looked at.
// A name is resolved once for each connection and the address dialled is one of
// those that were checked, so that no second answer can lead elsewhere.
type outbound struct {
	network Network
	allowed permissions.Set
	host    string // of the endpoint
	port    int
	plain   bool // without TLS: this machine only, whatever is permitted
}

func newOutbound(target *url.URL, o Options) (*outbound, error) {
	port, err := strconv.Atoi(target.Port())
	switch {
	case target.Port() == "" && target.Scheme == "https":
		port = 443
	case target.Port() == "":
		port = 80
	case err != nil || port < 1 || port > 65535:
		return nil, coded.New("endpoint-refused", "the endpoint has no port from 1 to 65535")
	}
	return &outbound{network: o.Network.orSystem(), allowed: o.Allowed, host: target.Hostname(), port: port, plain: target.Scheme == "http"}, nil
}

// dial is the DialContext of an http.Transport.
func (o *outbound) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(digits)
	if err != nil {
		return nil, err
	}
	if !(host == o.host && port == o.port) && !o.allowed.AllowsHost(host, port) {
		return nil, denied(address, "it is not among the permissions")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimes)
	defer cancel()
	found, err := o.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	return o.first(ctx, host, port, found)
}

func (o *outbound) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if literal, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{literal}, nil
	}
	return o.network.Resolve(ctx, host)
}

// first connects to the first address that is permitted and answers. Those that
// are not permitted are passed over; where there is no other, the first says why.
func (o *outbound) first(ctx context.Context, host string, port int, found []netip.Addr) (net.Conn, error) {
	var failed, refused error
	for _, addr := range found {
		if !o.permits(host, addr, port) {
			if refused == nil {
				refused = denied(net.JoinHostPort(host, strconv.Itoa(port)), o.whyNot(host, addr))
			}
			continue
		}
		conn, err := o.network.Dial(ctx, netip.AddrPortFrom(addr.Unmap(), uint16(port)))
		if err == nil {
			return conn, nil
		}
		if failed = errors.Join(failed, err); ctx.Err() != nil {
			break
		}
	}
	switch {
	case failed != nil:
		return nil, failed
	case refused != nil:
		return nil, refused
	}
	return nil, fmt.Errorf("cannot find an address of %q", host)
}

func (o *outbound) permits(host string, addr netip.Addr, port int) bool {
	if o.plain && permissions.ReachOf(addr) != permissions.Loopback {
		return false
	}
	return o.allowed.AllowsAddress(host, addr, port)
}

func (o *outbound) whyNot(host string, addr netip.Addr) string {
	if o.plain || permissions.IsLoopbackName(host) {
		return "its name stands for another machine than this one"
	}
	return "it stands for a " + string(permissions.ReachOf(addr)) + " address, which needs a permission of its own"
}

// denied is the refusal of a connection. It names host and port and nothing else:
// the rest of a URL may be secret, and an address is the network's own.
func denied(address, why string) error {
	return &coded.Error{Code: "permission-denied", Sentence: fmt.Sprintf("the connection to %s is not permitted: %s", address, why),
		Next: `correct the endpoint, or permit the host to the connector in config.json ("permit": {"net": ["HOST:PORT"]}) and approve that`}
}
