package process

import (
	"context"
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processAttributes: a session of its own, and death with the thread that forks.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

var errEndedEarly = errors.New("the process ended before it became the program")

// awaitExec returns when the shim has become the program: stopped by the
// kernel right after the exec, or running where tracing is not allowed.
func (m *Manager) awaitExec(ctx context.Context, b born, words *shimWords) (hold, error) {
	select {
	case <-words.first:
	case <-ctx.Done():
		return hold{}, ctx.Err()
	}
	if untraced, _ := words.heard(); untraced {
		return m.awaitUntraced(ctx, words)
	}
	h, err := m.awaitStop(ctx, b, words)
	if err != nil || h.traced {
		return h, err
	}
	return m.awaitUntraced(ctx, words)
}

func (m *Manager) awaitUntraced(ctx context.Context, words *shimWords) (hold, error) {
	select {
	case <-words.end:
	case <-ctx.Done():
		return hold{}, ctx.Err()
	}
	_, err := words.heard()
	return hold{}, err
}

// awaitStop waits for the trap that follows an exec. Signals that come before
// it are handed on.
func (m *Manager) awaitStop(ctx context.Context, b born, words *shimWords) (h hold, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return h, err
		}
		if untraced, _ := words.heard(); untraced {
			return h, nil
		}
		var done bool
		m.thread.do(func() { h, done, err = peek(b.pid) })
		if done || err != nil {
			break
		}
		time.Sleep(200 * time.Microsecond)
	}
	if h.reaped {
		<-words.end
		if _, said := words.heard(); said != nil {
			err = said
		}
	}
	return h, err
}

// peek looks once at a traced child, on the thread that traces it.
func peek(pid int) (h hold, done bool, err error) {
	var status unix.WaitStatus
	got, err := unix.Wait4(pid, &status, unix.WNOHANG|unix.WALL, nil)
	switch {
	case err == unix.EINTR || err == nil && got == 0:
		return h, false, nil
	case err != nil:
		return h, true, err
	case status.Exited() || status.Signaled():
		return hold{reaped: true}, true, errEndedEarly
	case status.Stopped() && status.StopSignal() == unix.SIGTRAP:
		return hold{traced: true}, true, nil
	case status.Stopped():
		return h, false, unix.PtraceCont(pid, int(status.StopSignal()))
	}
	return h, false, nil
}

// step lets a stopped child run to its next exec: /usr/bin/env becoming the
// interpreter that it looks up.
func (m *Manager) step(ctx context.Context, b born) (h hold, err error) {
	m.thread.do(func() {
		if err = unix.PtraceSetOptions(b.pid, unix.PTRACE_O_TRACEEXEC); err == nil {
			err = unix.PtraceCont(b.pid, 0)
		}
	})
	for done := false; err == nil && !done; {
		if ctx.Err() != nil {
			return h, ctx.Err()
		}
		m.thread.do(func() { h, done, err = peek(b.pid) })
		if !done {
			time.Sleep(200 * time.Microsecond)
		}
	}
	return h, err
}

// release lets the child run. One that was killed meanwhile is not an error
// here: whoever watches it will see.
func (m *Manager) release(b born, h hold) (err error) {
	if h.traced {
		m.thread.do(func() { err = unix.PtraceDetach(b.pid) })
		if err == unix.ESRCH {
			err = nil
		}
	}
	return err
}
