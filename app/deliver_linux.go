package app

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// firstPageType is text/html in letters that Wails does not look for: what it finds it
// rewrites, to add scripts that the pages do not use, and writes by itself, outside of
// deliver. Types of media have no case (RFC 9110 8.3.1).
const firstPageType = "Text/HTML; charset=utf-8"

// deliver writes a whole answer. Wails makes a pipe for it with the first byte, whose
// ends a child would inherit that is started just then: it could read what is in it, and
// hold it open. So no child is started (syscall.ForkLock) between the making of the pipe
// and its ends being closed to children.
func deliver(w http.ResponseWriter, status int, body []byte) {
	syscall.ForkLock.RLock()
	w.WriteHeader(status)
	closePipesToChildren()
	syscall.ForkLock.RUnlock()
	_, _ = w.Write(body)
}

// closePipesToChildren marks every pipe of this process. Pipes that a child is to have
// are passed to it by dup2, which clears the mark there.
func closePipesToChildren() {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= 2 {
			continue
		}
		if target, err := os.Readlink("/proc/self/fd/" + name); err == nil && strings.HasPrefix(target, "pipe:") {
			unix.CloseOnExec(fd)
		}
	}
}
