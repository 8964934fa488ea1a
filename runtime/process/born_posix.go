//go:build !windows

package process

import (
	"errors"
	"os"
	"syscall"
)

// born is a process that has been started and whose image was compared.
type born struct {
	pid     int
	tree    *tree
	process *os.Process
	image   string // path of the image, for the record
}

// await blocks until the leader has ended and leaves it a zombie.
func (b born) await() Exit { return awaitZombie(b.pid) }

// reap lets go of the leader's number, and of the group's.
func (b born) reap(t *tree) {
	t.letGo(func() { _, _ = b.process.Wait() }) // how it ended is known
	collectGroup(b.pid)
}

// abandon ends a process that was started but must not run.
func (b born) abandon() {
	b.tree.kill()
	awaitZombie(b.pid)
	b.tree.letGo(func() { _, _ = b.process.Wait() }) // it was killed
	collectGroup(b.pid)
}

// exitOf reads si_code and si_status of a waitid answer.
func exitOf(code, status int32) Exit {
	const exited = 1 // CLD_EXITED
	if code == exited {
		return Exit{Code: int(status)}
	}
	return Exit{Code: -1, Signal: syscall.Signal(status).String()}
}

func isNotExecutable(err error) bool { return errors.Is(err, syscall.ENOEXEC) }
