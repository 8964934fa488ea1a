package cli

import (
	"context"
	"os"

	"golang.org/x/sys/windows"
)

// watchParent calls ended when the process that started this one is gone: a
// handle to it becomes signalled.
func watchParent(ctx context.Context, ended func()) {
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(os.Getppid()))
	if err != nil {
		return // gone already, or not ours to watch: its end closes stdin
	}
	defer windows.CloseHandle(handle)
	for ctx.Err() == nil {
		if state, err := windows.WaitForSingleObject(handle, 1000); err != nil || state == windows.WAIT_OBJECT_0 {
			ended()
			return
		}
	}
}
