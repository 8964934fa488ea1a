package process

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"

	"sallyport/runtime/approvals"
)

func (s *Shell) pipes() *pipes {
	return &pipes{stdin: s.Terminal.Input(), stdout: s.Terminal.Output(), terminal: s.Terminal}
}

// createOnTerminal creates the process suspended and attached to a pseudo-console,
// which package os cannot.
func createOnTerminal(l approvals.Launch, environ []string, p *pipes) (*os.Process, error) {
	attributes, err := windows.NewProcThreadAttributeList(1)
	if err != nil {
		return nil, err
	}
	defer attributes.Delete()
	console := p.terminal.Console()
	if console == 0 {
		return nil, os.ErrClosed
	}
	// The attribute's value is the handle itself and no pointer to it.
	err = attributes.Update(windows.PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, *(*unsafe.Pointer)(unsafe.Pointer(&console)), unsafe.Sizeof(console))
	if err != nil {
		return nil, err
	}
	path, err := windows.UTF16PtrFromString(l.Path)
	if err != nil {
		return nil, err
	}
	line, err := windows.UTF16PtrFromString(windows.ComposeCommandLine(append([]string{l.Path}, l.Args...)))
	if err != nil {
		return nil, err
	}
	dir, err := windows.UTF16PtrFromString(l.Dir)
	if err != nil {
		return nil, err
	}
	block := environmentBlock(environ)
	start := windows.StartupInfoEx{ProcThreadAttributeList: attributes.List()}
	start.Cb = uint32(unsafe.Sizeof(start))
	start.Flags = windows.STARTF_USESTDHANDLES // with none: it is not to get ours
	const flags = windows.CREATE_SUSPENDED | windows.CREATE_UNICODE_ENVIRONMENT | windows.EXTENDED_STARTUPINFO_PRESENT
	var created windows.ProcessInformation
	if err := windows.CreateProcess(path, line, nil, nil, false, flags, &block[0], dir, &start.StartupInfo, &created); err != nil {
		return nil, err
	}
	defer windows.CloseHandle(created.Process)
	defer windows.CloseHandle(created.Thread)
	process, err := os.FindProcess(int(created.ProcessId))
	if err != nil {
		_ = windows.TerminateProcess(created.Process, 1) // it has run nothing
		return nil, fmt.Errorf("cannot open the new process: %w", err)
	}
	return process, nil
}

// environmentBlock is the form that CreateProcess takes: each entry ends with a NUL,
// the block with another one.
func environmentBlock(environ []string) []uint16 {
	var block []uint16
	for _, entry := range environ {
		if !strings.ContainsRune(entry, 0) {
			block = append(append(block, utf16.Encode([]rune(entry))...), 0)
		}
	}
	if len(block) == 0 {
		block = append(block, 0)
	}
	return append(block, 0)
}
