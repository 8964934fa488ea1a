package process

import (
	"context"
	"strings"

	"sallyport/internal/pty"
	"sallyport/runtime/approvals"
	"sallyport/runtime/env"
)

// Shell is a person's own shell, which is started in the place of a connector's
// program: in its folder, with its environment, within its budget.
type Shell struct {
	Program env.Executable // env.Find of an absolute path
	Args    []string
	// Terminal is what it runs on, with which it shares its end. It stays the caller's
	// where the start fails.
	Terminal *pty.PTY
	// Term is TERM: what the terminal understands, which no connector knows. It is the
	// one variable that the connector itself does not get, and gives way to one that the
	// connector declares.
	Term string
}

// StartShell starts a shell where the grant permits a program. Everything of Start
// holds: the errors, the image that is compared, the tree, its end with the grant. A
// connector may have any number of shells beside its program.
func (m *Manager) StartShell(ctx context.Context, g approvals.Grant, shell Shell) (*Child, error) {
	launch, err := g.Launch()
	if err != nil {
		return nil, err
	}
	launch.Path, launch.Args, launch.Executable = shell.Program.Found, shell.Args, shell.Program
	if err := check(launch); err != nil {
		return nil, err
	}
	if err := m.beginShell(); err != nil {
		return nil, err
	}
	defer m.starts.Done()
	child, err := m.launch(ctx, launch, &shell)
	if err != nil {
		return nil, err
	}
	return m.under(ctx, g, child)
}

func (s *Shell) environ(environ []string) []string {
	if s == nil || s.Term == "" {
		return environ
	}
	for _, entry := range environ {
		if strings.HasPrefix(entry, "TERM=") {
			return environ
		}
	}
	return append(environ, "TERM="+s.Term)
}

// markerOf is what the environment of a tree's processes holds, so that those which
// left it are known: a shell's have its terminal besides.
func markerOf(l approvals.Launch, p *pipes, environ []string) (marker []string) {
	if l.Data == "" {
		return nil
	}
	marker = []string{"PLUGIN_DATA=" + l.Data}
	if p.terminal == nil {
		return marker
	}
	for _, entry := range environ {
		if strings.HasPrefix(entry, "TERM=") {
			marker = append(marker, entry)
		}
	}
	return marker
}
