package process

import "runtime"

// thread runs functions on one operating-system thread that lives as long as
// the manager. Linux ends children with the parent-death signal when the
// *thread* that forked them ends, and obeys ptrace only from the thread that
// traces; the Go scheduler promises neither.
type thread struct {
	work chan func()
	done chan struct{}
}

func newThread() *thread {
	t := &thread{work: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for f := range t.work {
			f()
		}
	}()
	return t
}

// do runs f on the thread and returns when it has.
func (t *thread) do(f func()) {
	ran := make(chan struct{})
	t.work <- func() { defer close(ran); f() }
	<-ran
}

// end must only be called when no child is left and nothing calls do.
func (t *thread) end() {
	close(t.work)
	<-t.done
}
