// Package loopback gives a local service an address that people and scripts can
// rely on: 127.0.0.1, a port that is kept from start to start, a discovery file
// that names it, and one running instance per folder.
//
// The one idea: every fact is written down only after it is true. The port is
// saved after it is bound, the discovery file after that, both by rename; and
// "already running" is asked of an operating-system lock, never of a file that
// a crash can leave behind (spec/local-api.md 1 to 3).
//
// It serves nothing, proves nothing (a program that answers on the port is a
// stranger until runtime/health has proved it) and knows no domain words. Every
// package may import it.
package loopback

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
)

// Host is the only address that is bound, dialled, printed or saved. It is a
// literal because "localhost" is ::1 for some programs (C66).
const Host = "127.0.0.1"

// portFile holds the kept port, in decimal, and a line feed.
const portFile = "port"

// Kept ports are chosen below the ranges from which systems take the source
// ports of outgoing connections (from 32768 on Linux, 49152 elsewhere), so that
// a browser does not sit on the kept port when the service comes back.
const (
	lowestChoice  = 20000
	highestChoice = 32000
	choices       = 32
)

// Ports a saved or wanted value may have: ordinary users cannot bind less.
const (
	LowestPort  = 1024
	HighestPort = 65535
)

// Config says where the port is kept and which one is wanted.
type Config struct {
	// StateDir is the folder of the port and discovery files. It must exist and
	// be its owner's alone. Required.
	StateDir string
	// Want asks for one port, as an operator's flag does, and saves it. It is
	// an error when it is taken: who names a port expects that port. 0 means
	// the kept one.
	Want int
}

// Note is something about the address that its user should hear of. Kind is one
// of the constants below; Text is one sentence without a path.
type Note struct {
	Kind string
	Text string
	// Port is the one served now; Old what was saved before, 0 where that was
	// no port.
	Port, Old int
}

// Kinds of notes.
const (
	// PortChanged: the kept port was taken by another program.
	PortChanged = "port-changed"
	// PortValueBad: what was saved was not a port and has been replaced.
	PortValueBad = "port-value-bad"
	// PortUnsaved: the port could not be saved; the next start may have another.
	PortUnsaved = "port-unsaved"
	// PortTwin: another program listens on [::1] with the same port, so whoever
	// says "localhost" may reach that one.
	PortTwin = "port-twin"
)

// Listen binds 127.0.0.1 on the kept port, or on another one when that is taken,
// and saves the port that it got. The first start takes a free one. The notes say
// everything that went otherwise than asked; a port that could not be saved is a
// note and no error, because serving is worth more than serving there again.
func Listen(c Config) (net.Listener, []Note, error) {
	if c.Want != 0 {
		return listenWanted(c)
	}
	saved, notes := readPort(filepath.Join(c.StateDir, portFile))
	ln, err := bindKept(saved)
	if err != nil {
		return nil, nil, err
	}
	port := portOf(ln)
	if saved != 0 && port != saved {
		notes = append(notes, Note{
			Kind: PortChanged, Port: port, Old: saved,
			Text: fmt.Sprintf("port %d is taken by another program; port %d is used from now on", saved, port),
		})
	}
	for i := range notes {
		notes[i].Port = port
	}
	if port != saved {
		notes = append(notes, save(c.StateDir, port)...)
	}
	return ln, append(notes, twin(port)...), nil
}

func listenWanted(c Config) (net.Listener, []Note, error) {
	if c.Want < LowestPort || c.Want > HighestPort {
		return nil, nil, &coded.Error{
			Code:     "port-out-of-range",
			Sentence: fmt.Sprintf("port %d is not between %d and %d", c.Want, LowestPort, HighestPort),
			Next:     "choose another port",
		}
	}
	ln, err := bind(c.Want)
	if err != nil {
		return nil, nil, &coded.Error{
			Code:     "port-taken",
			Sentence: fmt.Sprintf("port %d cannot be used: another program has it", c.Want),
			Next:     "choose another port, or none to take the kept one",
			Err:      err,
		}
	}
	return ln, append(save(c.StateDir, c.Want), twin(c.Want)...), nil
}

// bindKept binds saved, or a free port when saved is 0 or cannot be had.
func bindKept(saved int) (net.Listener, error) {
	if saved != 0 {
		if ln, err := bind(saved); err == nil {
			return ln, nil
		}
	}
	for range choices {
		port := lowestChoice + rand.IntN(highestChoice-lowestChoice) //nolint:gosec // a port is no secret
		if port == saved || twinTaken(port) {
			continue
		}
		if ln, err := bind(port); err == nil {
			return ln, nil
		}
	}
	ln, err := bind(0)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", Host, err)
	}
	return ln, nil
}

// SavedPort returns the port that the next start will ask for, as far as one was
// kept.
func SavedPort(stateDir string) (port int, ok bool) {
	port, _ = readPort(filepath.Join(stateDir, portFile))
	return port, port != 0
}

func save(dir string, port int) []Note {
	err := atomicfile.Write(filepath.Join(dir, portFile), []byte(strconv.Itoa(port)+"\n"), 0o600)
	if err == nil {
		return nil
	}
	return []Note{{
		Kind: PortUnsaved, Port: port,
		Text: fmt.Sprintf("port %d could not be saved, so the next start may use another: %v", port, err),
	}}
}

func twin(port int) []Note {
	if !twinTaken(port) {
		return nil
	}
	return []Note{{
		Kind: PortTwin, Port: port,
		Text: fmt.Sprintf("another program listens on [::1]:%d; use %s, not localhost", port, URL(port)),
	}}
}

// readPort returns the saved port, or 0 and a note when there is a value that is
// not one. A missing file is a first start and needs no note.
func readPort(path string) (int, []Note) {
	data, err := readSmall(path, 64)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, []Note{{Kind: PortValueBad, Text: "the saved port cannot be read; another port is used"}}
	}
	port, err := parsePort(string(data))
	if err != nil {
		return 0, []Note{{Kind: PortValueBad, Text: fmt.Sprintf("the saved port was replaced: %v", err)}}
	}
	return port, nil
}

// parsePort accepts one decimal number without sign, leading zero or blanks,
// followed by at most one line end.
func parsePort(text string) (int, error) {
	line := text
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
	}
	if line == "" {
		return 0, errors.New("it was empty")
	}
	port, err := strconv.Atoi(line)
	if err != nil || strconv.Itoa(port) != line {
		return 0, fmt.Errorf("%.20q is not a number", line)
	}
	if port < LowestPort || port > HighestPort {
		return 0, fmt.Errorf("%d is not between %d and %d", port, LowestPort, HighestPort)
	}
	return port, nil
}

// readSmall reads a regular file of at most limit bytes. It looks before it
// opens, because opening a FIFO waits for ever.
func readSmall(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() > limit {
		return nil, errors.New("too large")
	}
	return os.ReadFile(path)
}

// URL returns the address of port as it is printed and saved.
func URL(port int) string {
	return "http://" + net.JoinHostPort(Host, strconv.Itoa(port))
}

// Port returns the port that ln is bound to.
func Port(ln net.Listener) int { return portOf(ln) }

func portOf(ln net.Listener) int { return ln.Addr().(*net.TCPAddr).Port }
