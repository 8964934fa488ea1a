package process

import (
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tree is a job object: whatever its processes start is in it, cannot leave it,
// and ends when its last handle is closed, also by Sallyport's own death.
type tree struct {
	pid int
	mu  sync.Mutex
	job windows.Handle // 0 once it is closed
}

// terminate does nothing: a process without a console has no polite way to be
// ended on Windows but the end of its input.
func (t *tree) terminate() {}

func (t *tree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		windows.TerminateJobObject(t.job, 1)
	}
}

func (t *tree) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		windows.CloseHandle(t.job)
		t.job = 0
	}
}

// escaped is empty: nobody leaves a job.
func (t *tree) escaped(*Manager) []int { return nil }

// processIDList is JOBOBJECT_BASIC_PROCESS_ID_LIST with room for 1024.
type processIDList struct {
	assigned, listed uint32
	ids              [1024]uintptr
}

func (t *tree) rest(*Manager) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job == 0 {
		return nil
	}
	var list processIDList
	err := windows.QueryInformationJobObject(t.job, windows.JobObjectBasicProcessIdList, uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	if err != nil && err != windows.ERROR_MORE_DATA {
		return nil
	}
	var pids []int
	for _, id := range list.ids[:min(int(list.listed), len(list.ids))] {
		if int(id) != t.pid {
			pids = append(pids, int(id))
		}
	}
	return pids
}

func killEach([]int) {}

type proc struct {
	pid, parent, group, session int
	zombie                      bool
	start                       uint64
	cpu                         time.Duration
}

// Nothing outlives its job, so there is nothing to look for after a crash.

func processes() []proc { return nil }

func look(int) (proc, bool) { return proc{}, false }

func descend(map[int]bool, []proc) {}

func hasMarker(int, ...string) bool { return false }

func imagePath(int) string { return "" }

func adoptOrphans() error { return nil }

func (m *Manager) collectOrphans() {}
