package permissions

import (
	"net/netip"
	"slices"
	"strings"
)

// Reach says how far an address leads, as far as that decides who may dial it.
type Reach string

// The reaches of an address. Only a Public one may be dialled for a host that is
// permitted by name alone.
const (
	Public      Reach = "public"
	Loopback    Reach = "loopback"    // this machine
	Private     Reach = "private"     // RFC 1918, RFC 4193, and RFC 6598 behind a carrier
	LinkLocal   Reach = "link-local"  // where clouds keep their metadata
	Unspecified Reach = "unspecified" // which systems take for this machine
	Multicast   Reach = "multicast"
	Reserved    Reach = "reserved" // everything else that is no host of the internet's
)

// block is a range of addresses and where it leads.
type block struct {
	prefix netip.Prefix
	reach  Reach
}

// blocks4 and blocks6 are the special ranges (RFC 6890 and the IANA registries
// that follow it). The first that holds an address counts.
func blocks4() []block {
	return []block{
		{netip.MustParsePrefix("0.0.0.0/8"), Unspecified},
		{netip.MustParsePrefix("127.0.0.0/8"), Loopback},
		{netip.MustParsePrefix("10.0.0.0/8"), Private},
		{netip.MustParsePrefix("172.16.0.0/12"), Private},
		{netip.MustParsePrefix("192.168.0.0/16"), Private},
		{netip.MustParsePrefix("100.64.0.0/10"), Private},
		{netip.MustParsePrefix("169.254.0.0/16"), LinkLocal},
		{netip.MustParsePrefix("192.0.0.0/24"), Reserved},
		{netip.MustParsePrefix("192.0.2.0/24"), Reserved},
		{netip.MustParsePrefix("192.88.99.0/24"), Reserved}, // relays of 6to4
		{netip.MustParsePrefix("198.18.0.0/15"), Reserved},
		{netip.MustParsePrefix("198.51.100.0/24"), Reserved},
		{netip.MustParsePrefix("203.0.113.0/24"), Reserved},
		{netip.MustParsePrefix("224.0.0.0/4"), Multicast},
		{netip.MustParsePrefix("240.0.0.0/4"), Reserved},
	}
}

func blocks6() []block {
	return []block{
		{netip.MustParsePrefix("::/128"), Unspecified},
		{netip.MustParsePrefix("::1/128"), Loopback},
		{netip.MustParsePrefix("fc00::/7"), Private},
		{netip.MustParsePrefix("fe80::/10"), LinkLocal},
		{netip.MustParsePrefix("ff00::/8"), Multicast},
		{netip.MustParsePrefix("2001::/23"), Reserved}, // Teredo among them
		{netip.MustParsePrefix("2001:db8::/32"), Reserved},
		{netip.MustParsePrefix("2002::/16"), Reserved}, // 6to4: any IPv4 address inside
		{netip.MustParsePrefix("3fff::/20"), Reserved},
		{netip.MustParsePrefix("2000::/3"), Public},
		{netip.MustParsePrefix("::/0"), Reserved},
	}
}

// nat64 is the well-known prefix of RFC 6052, behind which networks without IPv4
// reach it. Its hosts are as public as the address inside.
func nat64() netip.Prefix { return netip.MustParsePrefix("64:ff9b::/96") }

// ReachOf returns where an address leads. One of IPv4 counts as itself in the
// mapped form too; what hides one in another form is Reserved, unless that form is
// NAT64 and the address public.
func ReachOf(addr netip.Addr) Reach {
	addr = addr.Unmap().WithZone("")
	blocks := blocks6()
	if addr.Is4() {
		blocks = blocks4()
	} else if nat64().Contains(addr) {
		raw := addr.As16()
		if ReachOf(netip.AddrFrom4([4]byte(raw[12:]))) == Public {
			return Public
		}
		return Reserved
	}
	for _, b := range blocks {
		if b.prefix.Contains(addr) {
			return b.reach
		}
	}
	if addr.Is4() {
		return Public
	}
	return Reserved
}

// AllowsAddress reports whether a connection for a permitted host may go to one of
// the addresses it stands for. A public address needs nothing more, and neither has
// this machine for a host that is named as it. Any other needs an entry that names
// the address or, for a private one or this machine, the host itself, port and all:
// a pattern with a star does not do, because whoever serves the domain's names
// would choose the address.
func (s Set) AllowsAddress(host string, addr netip.Addr, port int) bool {
	switch reach := ReachOf(addr); reach {
	case Public:
		return !IsLoopbackName(host)
	case Loopback:
		return IsLoopbackName(host) || s.names(host, port) || s.names(addr.String(), port)
	case Private:
		return !IsLoopbackName(host) && s.names(host, port) || s.names(addr.String(), port)
	}
	return s.names(addr.String(), port)
}

// IsLoopbackName reports whether a host says of itself that it is this machine.
func IsLoopbackName(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ReachOf(addr) == Loopback
}

// names reports whether an entry is exactly this host, or address, and port.
func (s Set) names(host string, port int) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.Unmap().WithZone("").String()
	}
	wanted := joinHostPort(host, port)
	return slices.ContainsFunc(s.Net, func(entry string) bool {
		normal, err := netPattern(entry)
		return err == nil && normal == wanted
	})
}
