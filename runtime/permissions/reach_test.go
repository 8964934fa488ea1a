package permissions_test

import (
	"net/netip"
	"testing"

	"sallyport/runtime/permissions"
)

func TestReachOfEveryRange(t *testing.T) {
	for addr, want := range map[string]permissions.Reach{
		"1.1.1.1": permissions.Public, "9.255.255.255": permissions.Public, "11.0.0.0": permissions.Public,
		"0.0.0.0": permissions.Unspecified, "0.1.2.3": permissions.Unspecified,
		"127.0.0.1": permissions.Loopback, "127.255.255.255": permissions.Loopback, "128.0.0.1": permissions.Public,
		"10.0.0.0": permissions.Private, "10.255.255.255": permissions.Private,
		"172.15.255.255": permissions.Public, "172.16.0.0": permissions.Private, "172.31.255.255": permissions.Private, "172.32.0.0": permissions.Public,
		"192.167.255.255": permissions.Public, "192.168.0.0": permissions.Private, "192.168.255.255": permissions.Private,
		"100.63.255.255": permissions.Public, "100.64.0.0": permissions.Private, "100.127.255.255": permissions.Private, "100.128.0.0": permissions.Public,
		"169.254.169.254": permissions.LinkLocal, "169.253.0.1": permissions.Public,
		"192.0.0.1": permissions.Reserved, "192.0.2.1": permissions.Reserved, "192.88.99.1": permissions.Reserved,
		"198.18.0.1": permissions.Reserved, "198.19.255.255": permissions.Reserved, "198.20.0.0": permissions.Public,
		"198.51.100.1": permissions.Reserved, "203.0.113.1": permissions.Reserved,
		"224.0.0.1": permissions.Multicast, "239.255.255.255": permissions.Multicast,
		"240.0.0.1": permissions.Reserved, "255.255.255.255": permissions.Reserved,

		"::": permissions.Unspecified, "::1": permissions.Loopback, "::2": permissions.Reserved,
		"fc00::1": permissions.Private, "fdff::1": permissions.Private, "fe80::1": permissions.LinkLocal, "fe80::1%lo": permissions.LinkLocal,
		"febf::1": permissions.LinkLocal, "fec0::1": permissions.Reserved, "ff02::1": permissions.Multicast,
		"2606:4700::1111": permissions.Public, "2a00::1": permissions.Public, "4000::1": permissions.Reserved, "1fff::1": permissions.Reserved,
		"2001::1": permissions.Reserved, "2001:db8::1": permissions.Reserved, "2001:4860::1": permissions.Public, "3fff::1": permissions.Reserved,
		"100::1": permissions.Reserved, "5f00::1": permissions.Reserved,

		"::ffff:1.1.1.1": permissions.Public, "::ffff:127.0.0.1": permissions.Loopback, "::ffff:10.0.0.1": permissions.Private,
		"::ffff:169.254.169.254": permissions.LinkLocal, "::ffff:0.0.0.0": permissions.Unspecified, "::10.0.0.1": permissions.Reserved,
		"64:ff9b::1.1.1.1": permissions.Public, "64:ff9b::10.0.0.1": permissions.Reserved, "64:ff9b::127.0.0.1": permissions.Reserved,
		"64:ff9b::169.254.169.254": permissions.Reserved, "64:ff9b:1::1.1.1.1": permissions.Reserved,
		"2002:101:101::1": permissions.Reserved, "2002:a00:1::1": permissions.Reserved, "2002:7f00:1::1": permissions.Reserved,
	} {
		if got := permissions.ReachOf(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is %s, want %s", addr, got, want)
		}
	}
	if got := permissions.ReachOf(netip.Addr{}); got != permissions.Reserved {
		t.Errorf("no address at all is %s", got)
	}
}

func TestWhichAddressesAHostMayStandFor(t *testing.T) {
	for _, row := range []struct {
		name, host, addr string
		net              []string
		want             bool
	}{
		{"a public address needs no more", "api.example.com", "1.1.1.1", nil, true},
		{"this machine under its name", "localhost", "127.0.0.1", nil, true},
		{"this machine under its name, IPv6", "localhost", "::1", nil, true},
		{"this machine as an address", "127.0.0.1", "127.0.0.1", nil, true},
		{"this machine in the mapped form", "localhost", "::ffff:127.0.0.1", nil, true},
		{"a name that says it is this machine and is not", "localhost", "1.1.1.1", nil, false},
		{"the same, private and named", "localhost", "10.0.0.1", []string{"localhost"}, false},
		{"this machine under another name", "api.example.com", "127.0.0.1", nil, false},
		{"the same, named", "api.example.com", "127.0.0.1", []string{"api.example.com"}, true},
		{"a private address without a grant", "api.example.com", "10.0.0.1", nil, false},
		{"as the endpoint itself", "10.0.0.1", "10.0.0.1", nil, false},
		{"named by its host", "api.example.com", "10.0.0.1", []string{"API.example.com"}, true},
		{"named by its address", "api.example.com", "10.0.0.1", []string{"10.0.0.1"}, true},
		{"named in the mapped form", "api.example.com", "::ffff:10.0.0.1", []string{"10.0.0.1:443"}, true},
		{"another port", "api.example.com", "10.0.0.1", []string{"api.example.com:8443", "10.0.0.1:8443"}, false},
		{"another address", "api.example.com", "10.0.0.1", []string{"10.0.0.2"}, false},
		{"a star names no host", "api.example.com", "10.0.0.1", []string{"*.example.com"}, false},
		{"behind a carrier", "api.example.com", "100.64.0.1", nil, false},
		{"unique local, named", "api.example.com", "fd00::1", []string{"[fd00::1]"}, true},
		{"metadata is not named by a host", "api.example.com", "169.254.169.254", []string{"api.example.com"}, false},
		{"metadata by its address", "api.example.com", "169.254.169.254", []string{"169.254.169.254"}, true},
		{"link-local with a zone", "api.example.com", "fe80::1%lo", []string{"[fe80::1]"}, true},
		{"unspecified", "api.example.com", "0.0.0.0", []string{"api.example.com"}, false},
		{"unspecified as this machine", "localhost", "0.0.0.0", nil, false},
		{"multicast", "api.example.com", "ff02::1", []string{"api.example.com"}, false},
		{"an address inside of 6to4", "api.example.com", "2002:a00:1::1", []string{"api.example.com", "10.0.0.1"}, false},
		{"an address inside of NAT64", "api.example.com", "64:ff9b::a00:1", []string{"api.example.com", "10.0.0.1"}, false},
		{"the same, named whole", "api.example.com", "64:ff9b::a00:1", []string{"[64:ff9b::a00:1]"}, true},
	} {
		set := permissions.Set{Net: row.net}
		if got := set.AllowsAddress(row.host, netip.MustParseAddr(row.addr), 443); got != row.want {
			t.Errorf("%s: %s as %s is %v", row.name, row.host, row.addr, got)
		}
	}
}
