//go:build !windows

package process

import "syscall"

func (s *Shell) pipes() *pipes {
	t := s.Terminal
	return &pipes{stdin: t.Input(), stdout: t.Output(), theirIn: t.Theirs(), theirOut: t.Theirs(), theirErr: t.Theirs(), terminal: t}
}

// onTerminal makes the terminal that is the child's stdin the one that controls its
// session: Ctrl-C and hanging up reach who is on it.
func (p *pipes) onTerminal(attributes *syscall.SysProcAttr) *syscall.SysProcAttr {
	if p.terminal != nil {
		attributes.Setctty, attributes.Ctty = true, 0
	}
	return attributes
}
