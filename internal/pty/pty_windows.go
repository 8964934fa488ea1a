package pty

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/windows"
)

// PTY is a pseudo-console (ConPTY) with its two pipes. Its methods may be called
// concurrently.
type PTY struct {
	in, out *os.File

	mu      sync.Mutex
	console windows.Handle // 0 once it is closed
}

// Open makes one of a size.
func Open(size Size) (*PTY, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot open a pseudo-console: %w", err)
	}
	defer theirIn.Close() // the console has its own
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open a pseudo-console: %w", err), in.Close())
	}
	defer theirOut.Close()
	p := &PTY{in: in, out: out}
	if err := windows.CreatePseudoConsole(coord(size), windows.Handle(theirIn.Fd()), windows.Handle(theirOut.Fd()), 0, &p.console); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open a pseudo-console: %w", err), in.Close(), out.Close())
	}
	return p, nil
}

func coord(size Size) windows.Coord {
	return windows.Coord{X: int16(min(size.Cols, 1<<15-1)), Y: int16(min(size.Rows, 1<<15-1))}
}

// Input takes what is typed.
func (p *PTY) Input() *os.File { return p.in }

// Output gives what is printed.
func (p *PTY) Output() *os.File { return p.out }

// Console is what a process is attached to when it is created; 0 once it is closed.
func (p *PTY) Console() windows.Handle {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.console
}

// CloseTheirs does nothing: the console has its own ends from the beginning.
func (p *PTY) CloseTheirs() error { return nil }

// Resize tells the terminal's programs another size.
func (p *PTY) Resize(size Size) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.console == 0 {
		return os.ErrClosed
	}
	return windows.ResizePseudoConsole(p.console, coord(size))
}

// Finish is called when the program has ended: what it printed can still be read, and
// then the output ends.
func (p *PTY) Finish() {
	p.mu.Lock()
	console := p.console
	p.console = 0
	p.mu.Unlock()
	if console != 0 {
		windows.ClosePseudoConsole(console) // waits until the output has been read, on older systems
	}
}

// Close hangs up: whatever is attached is told so.
func (p *PTY) Close() error {
	err := p.in.Close()
	p.Finish()
	return errors.Join(err, p.out.Close())
}
