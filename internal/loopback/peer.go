package loopback

import "net/netip"

// PeerUser returns the number of the user whose program holds the other end of a
// connection over loopback, and false where the system does not tell.
//
// On Linux the kernel's table of connections tells; macOS and Windows have no such
// question without cgo or more rights.
func PeerUser(peer netip.AddrPort) (uid int, known bool) { return peerUser(peer) }
