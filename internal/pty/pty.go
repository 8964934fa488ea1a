// Package pty opens pseudo-terminals.
//
// The one idea: a PTY has two ends. Ours is read, written, resized and hung up, the
// same on every system; theirs is what a process is started on, and what that is only
// the system's own file knows (a file on Unix, a pseudo-console on Windows).
//
// It starts nothing. runtime/process starts what is on a terminal, runtime/console
// reads and writes it.
package pty

// Size is what a terminal shows, in characters.
type Size struct{ Cols, Rows uint16 }
