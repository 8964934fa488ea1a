package loopback

import "net/netip"

// PeerUser returns the number of the user whose program holds the other end of a
// connection over loopback, and false where the system does not tell. Both ends name the
// connection: one port of a machine's may be the end of several, of different users.
//
// On Linux the kernel's table of connections tells; macOS and Windows have no such
// question without cgo or more rights.
func PeerUser(peer, own netip.AddrPort) (uid int, known bool) { return peerUser(peer, own) }
