//go:build !windows

package pty

import (
	"errors"
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// PTY is a pseudo-terminal. Its methods may be called concurrently.
type PTY struct{ ours, theirs *os.File }

// Open makes one of a size.
func Open(size Size) (*PTY, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("cannot open a pseudo-terminal: %w", err)
	}
	ours, err := pollable(master)
	if err != nil {
		return nil, errors.Join(err, slave.Close())
	}
	p := &PTY{ours, slave}
	if err := p.Resize(size); err != nil {
		return nil, errors.Join(err, p.CloseTheirs(), p.Close())
	}
	return p, nil
}

// pollable gives a file deadlines, and reads that its closing ends: opening a terminal
// asks for the number of its descriptor, which made it a blocking one.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("cannot duplicate the descriptor of a terminal: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make a terminal pollable: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// Input takes what is typed.
func (p *PTY) Input() *os.File { return p.ours }

// Output gives what is printed.
func (p *PTY) Output() *os.File { return p.ours }

// Theirs is stdin, stdout and stderr of whoever is started on the terminal.
func (p *PTY) Theirs() *os.File { return p.theirs }

// CloseTheirs is called when somebody has been started: the output then ends with them.
func (p *PTY) CloseTheirs() error { return p.theirs.Close() }

// Resize tells the terminal's programs another size (SIGWINCH).
func (p *PTY) Resize(size Size) error {
	conn, err := p.ours.SyscallConn()
	if err != nil {
		return fmt.Errorf("cannot resize a terminal: %w", err)
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: size.Cols, Row: size.Rows})
	})
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("cannot resize a terminal: %w", err)
	}
	return nil
}

// Finish is called when the program has ended: what it printed can still be read, and
// then the output ends. Here it does so by itself.
func (p *PTY) Finish() {}

// Close hangs up: the kernel tells the terminal's programs so (SIGHUP).
func (p *PTY) Close() error { return p.ours.Close() }
