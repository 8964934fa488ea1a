package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
)

// born is a process that has been started and whose image was compared.
type born struct {
	pid     int
	tree    *tree
	process *os.Process
	image   string
}

// spawn creates the process suspended, puts it into its job, compares its image
// and only then lets it run (spec/approval.md 5.2a).
func (m *Manager) spawn(ctx context.Context, l approvals.Launch, environ []string, p *pipes, e *entry) (born, error) {
	job, err := newJob(l.Options.Budget.Effective())
	if err != nil {
		return born{}, &coded.Error{Code: "start-failed", Sentence: "cannot make the job object of a child", Err: err}
	}
	attr := &os.ProcAttr{
		Dir: l.Dir, Env: environ, Files: []*os.File{p.theirIn, p.theirOut, p.theirErr},
		Sys: &syscall.SysProcAttr{
			HideWindow:    true,
			CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW,
		},
	}
	var process *os.Process
	if p.terminal != nil {
		process, err = createOnTerminal(l, environ, p)
	} else {
		m.thread.do(func() { process, err = m.config.Spawn(l.Path, append([]string{l.Path}, l.Args...), attr) })
	}
	if err != nil {
		windows.CloseHandle(job)
		return born{}, explain(l, err)
	}
	b := born{pid: process.Pid, process: process, tree: &tree{pid: process.Pid, job: job}}
	if err := m.admit(ctx, l, &b); err != nil {
		process.Kill()
		b.tree.kill()
		process.Wait()
		b.tree.close()
		return born{}, err
	}
	m.record.born(e, b)
	return b, nil
}

func (m *Manager) admit(ctx context.Context, l approvals.Launch, b *born) error {
	handle, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(b.pid))
	if err != nil {
		return explain(l, err)
	}
	defer windows.CloseHandle(handle)
	if err := windows.AssignProcessToJobObject(b.tree.job, handle); err != nil {
		return explain(l, err)
	}
	if err := compareWindows(ctx, l, handle, b); err != nil {
		return err
	}
	return resume(b.pid)
}

// compareWindows asks which file the suspended process maps. For a batch file
// that is cmd.exe, which is compared by being the system's own.
func compareWindows(ctx context.Context, l approvals.Launch, handle windows.Handle, b *born) error {
	var name [windows.MAX_LONG_PATH]uint16
	size := uint32(len(name))
	if err := windows.QueryFullProcessImageName(handle, 0, &name[0], &size); err != nil {
		return executableChanged(l)
	}
	b.image = windows.UTF16ToString(name[:size])
	f, err := os.Open(b.image)
	if err != nil {
		return executableChanged(l)
	}
	defer f.Close()
	i := &image{file: f}
	n, err := i.which(ctx, expected(l))
	if err != nil {
		return err
	}
	if n >= 0 || isSystemShell(l, f) {
		return nil
	}
	return executableChanged(l)
}

func isSystemShell(l approvals.Launch, f *os.File) bool {
	if !isBatchFile(l.Path) {
		return false
	}
	folder, err := windows.GetSystemDirectory()
	if err != nil {
		return false
	}
	want, err := os.Stat(folder + `\cmd.exe`)
	if err != nil {
		return false
	}
	have, err := f.Stat()
	return err == nil && os.SameFile(have, want)
}

func isBatchFile(path string) bool {
	ext := filepath.Ext(strings.TrimRight(path, ". "))
	return strings.EqualFold(ext, ".bat") || strings.EqualFold(ext, ".cmd")
}

// newJob makes a job that ends with its handle and carries the budget.
func newJob(b plugins.Budget) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	basic := &info.BasicLimitInformation
	basic.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
	// Above the budget, because the watcher, which can say why, is to be the one that
	// acts (budget.go); these are for what is quicker than it.
	basic.LimitFlags |= windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS | windows.JOB_OBJECT_LIMIT_JOB_MEMORY
	basic.ActiveProcessLimit = uint32(2 * min(b.Processes, 1<<20))
	info.JobMemoryLimit = uintptr(2 * min(uint64(b.MemoryBytes), 1<<50))
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

// resume lets the only thread of a process that was created suspended run.
func resume(pid int) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != uint32(pid) {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(thread)
		_, err = windows.ResumeThread(thread)
		return err
	}
	return fmt.Errorf("cannot find the thread of the new process: %w", err)
}

// await blocks until the leader has ended.
func (b born) await() Exit {
	state, err := b.process.Wait()
	if err != nil {
		return Exit{Code: -1, Signal: "unknown"}
	}
	return Exit{Code: state.ExitCode()}
}

// reap ends the job, and with it whoever is left in it.
func (b born) reap(t *tree) {
	t.kill()
	t.close()
}

func isNotExecutable(err error) bool { return errors.Is(err, windows.ERROR_BAD_EXE_FORMAT) }
