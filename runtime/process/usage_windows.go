package process

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// canEnforce: a job has no limit on handles.
func canEnforce() enforced { return enforced{memory: true, cpu: true, processes: true} }

// jobAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION; times are in 100 ns.
type jobAccounting struct {
	totalUser, totalKernel           int64
	periodUser, periodKernel         int64
	pageFaults, total, active, ended uint32
}

const basicAccounting = 1 // JobObjectBasicAccountingInformation

// usage asks the job. Its memory is the most that it ever had committed.
func (t *tree) usage(*Manager) usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job == 0 {
		return usage{}
	}
	var u usage
	var counts jobAccounting
	if windows.QueryInformationJobObject(t.job, basicAccounting, uintptr(unsafe.Pointer(&counts)), uint32(unsafe.Sizeof(counts)), nil) == nil {
		u.processes = int(counts.active)
		u.cpu = map[int]time.Duration{t.pid: time.Duration(counts.totalUser+counts.totalKernel) * 100}
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	if windows.QueryInformationJobObject(t.job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)), nil) == nil {
		u.memory = int64(limits.PeakJobMemoryUsed)
	}
	return u
}
