package loopback

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxTable bounds what is read of a table; a line is about 150 bytes.
const maxTable = 16 << 20

// peerUser looks in the tables of both families: a program may speak IPv4 through a
// socket of IPv6.
func peerUser(peer, own netip.AddrPort) (int, bool) {
	theirs, ours := peer.Addr().Unmap(), own.Addr().Unmap()
	for _, table := range []struct{ file, theirs, ours string }{
		{"/proc/self/net/tcp", tableEnd(theirs, peer.Port()), tableEnd(ours, own.Port())},
		{"/proc/self/net/tcp6", tableEnd(netip.AddrFrom16(theirs.As16()), peer.Port()), tableEnd(netip.AddrFrom16(ours.As16()), own.Port())},
	} {
		file, err := os.Open(table.file)
		if err != nil {
			continue
		}
		uid, known := userIn(io.LimitReader(file, maxTable), table.theirs, table.ours)
		_ = file.Close() // it was read
		if known {
			return uid, true
		}
	}
	return 0, false
}

// tableEnd writes an end of a connection as the kernel does: words of four bytes in
// the machine's order, which is little-endian on all that this builds for.
func tableEnd(addr netip.Addr, port uint16) string {
	raw := addr.AsSlice()
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	return fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString(raw)), port)
}

// userIn finds the user of the connection from one end to the other (proc(5), net/tcp).
func userIn(table io.Reader, from, to string) (int, bool) {
	const nearEnd, farEnd, user = 1, 2, 7
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) <= user || fields[nearEnd] != from || fields[farEnd] != to {
			continue
		}
		uid, err := strconv.Atoi(fields[user])
		return uid, err == nil
	}
	return 0, false
}
