package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"sallyport/internal/coded"
	"sallyport/internal/pty"
	"sallyport/runtime/approvals"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// Start starts what the grant permits. It and StartShell are the only ways to start
// anything.
// ctx bounds the start, not the child's life; when the grant ends, the child is
// stopped with the grant's reason.
//
// Errors are *coded.Error: those of the grant; not-stdio, cwd-missing, cwd-outside,
// data-folder, exec-not-found, exec-denied, exec-format, start-failed,
// start-slow, executable-changed, argument-nul, batch-argument, budget-invalid, budget-unenforceable,
// start-in-progress, host-closing, and those of env.Plan.Environ. After any of
// them no process is left.
func (m *Manager) Start(ctx context.Context, g approvals.Grant) (*Child, error) {
	launch, err := g.Launch()
	if err != nil {
		return nil, err
	}
	child, err := m.start(ctx, launch)
	if err != nil {
		return nil, err
	}
	return m.under(ctx, g, child)
}

// under ends a child with the grant that it was started by.
func (m *Manager) under(ctx context.Context, g approvals.Grant, child *Child) (*Child, error) {
	m.tasks.Go(func() {
		select {
		case <-g.Done():
			child.Stop(context.Background(), g.Err())
		case <-child.Gone():
		}
	})
	if err := g.Err(); err != nil {
		child.Stop(context.WithoutCancel(ctx), err)
		return nil, err
	}
	return child, nil
}

// start is Start without the grant.
func (m *Manager) start(ctx context.Context, l approvals.Launch) (*Child, error) {
	if err := check(l); err != nil {
		return nil, err
	}
	if err := m.begin(l.ID); err != nil {
		return nil, err
	}
	defer m.started(l.ID)
	return m.launch(ctx, l, nil)
}

// launch is what every start has in common: of a program between three pipes, or of a
// shell on a terminal.
func (m *Manager) launch(ctx context.Context, l approvals.Launch, shell *Shell) (*Child, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.closing, cancel)()
	environ, secrets, err := m.environ(ctx, l)
	if err != nil {
		return nil, err
	}
	environ = shell.environ(environ)
	if err := prepareFolders(l); err != nil {
		return nil, err
	}
	pipes, err := openPipes(shell)
	if err != nil {
		return nil, &coded.Error{Code: "start-failed", Sentence: "cannot make the pipes for a child", Err: err}
	}
	entry := m.record.intend(l)
	limited, end := context.WithTimeout(ctx, startLimit) // not the keyring, which may ask a person
	defer end()
	born, err := m.spawn(limited, l, environ, pipes, entry)
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		m.record.forget(entry)
		return nil, err
	}
	return m.newChild(l, born, pipes, secrets, entry), nil
}

// check refuses what could never be started as it is.
func check(l approvals.Launch) error {
	b := l.Options.Budget
	switch {
	case l.Transport != plugins.Stdio:
		return coded.New("not-stdio", fmt.Sprintf("%s is not a program that Sallyport starts", l.ID))
	case !filepath.IsAbs(l.Path) || !filepath.IsAbs(l.Dir):
		return coded.New("start-failed", "the executable or the working directory is not an absolute path")
	case l.Env == nil:
		return coded.New("start-failed", "there is no environment to start with")
	case !b.Valid():
		return coded.New("budget-invalid", "a budget is below zero")
	}
	if err := unenforceable(l.ID, b, canEnforce()); err != nil {
		return err
	}
	if err := env.CheckArguments(l.Path, l.Args, l.Dir); err != nil {
		return err
	}
	if runtime.GOOS == "windows" {
		return env.CheckBatch(l.Path, l.Args)
	}
	return nil
}

func (m *Manager) environ(ctx context.Context, l approvals.Launch) (environ, secrets []string, err error) {
	if environ, err = l.Env.Environ(ctx, m.config.Secrets); err != nil {
		return nil, nil, err
	}
	secrets, err = l.Env.SecretValues(ctx, m.config.Secrets)
	return environ, secrets, err
}

// prepareFolders makes PLUGIN_DATA and sees to the working directory, which
// must be there: its absence is not to be taken for that of the command.
func prepareFolders(l approvals.Launch) error {
	if l.Data != "" {
		if err := privateFolder(l.Data); err != nil {
			return &coded.Error{Code: "data-folder", Sentence: fmt.Sprintf("the data folder of %s cannot be used", l.ID), Err: err}
		}
	}
	info, err := os.Stat(l.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cwdMissing(l, "does not exist")
	case err != nil:
		return cwdMissing(l, "cannot be read")
	case !info.IsDir():
		return cwdMissing(l, "is not a folder")
	}
	return staysInside(l)
}

// staysInside refuses a working directory that a link leads out of the plugin's
// folder that it is in: a server can make links in its data folder, for its next
// start (Agent Plugins 1.0.0 §7.2.1).
func staysInside(l approvals.Launch) error {
	for _, folder := range []string{l.Env.Root, l.Data} {
		if folder == "" || !isBelow(folder, l.Dir) {
			continue
		}
		base, err := filepath.EvalSymlinks(folder)
		if err != nil {
			return cwdMissing(l, "cannot be read")
		}
		dir, err := filepath.EvalSymlinks(l.Dir)
		if err != nil {
			return cwdMissing(l, "cannot be read")
		}
		if !isBelow(base, dir) {
			return &coded.Error{Code: "cwd-outside", Sentence: "a link leads the working directory out of the plugin's folder",
				Next: "look at the plugin's data folder, and remove the link"}
		}
	}
	return nil
}

// isBelow reports whether path is folder or in it, by names alone.
func isBelow(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

func cwdMissing(l approvals.Launch, what string) error {
	e := coded.New("cwd-missing", "the working directory "+what)
	if rel, err := filepath.Rel(l.Env.Root, l.Dir); l.Env.Root != "" && err == nil && filepath.IsLocal(rel) {
		e.Path = filepath.ToSlash(rel)
	}
	return e
}

// privateFolder makes a folder that nobody else may enter. A link in its place
// would let somebody choose where a plugin writes.
func privateFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("not a folder")
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		return os.Chmod(path, 0o700)
	}
	return nil
}

// pipes are the three ends of a child and the three that Sallyport keeps. On a
// terminal ours are one, theirs are one, and there is no stderr of its own.
type pipes struct {
	stdin, stdout, stderr       *os.File // ours
	theirIn, theirOut, theirErr *os.File
	terminal                    *pty.PTY // nil without one
}

func openPipes(shell *Shell) (*pipes, error) {
	if shell != nil {
		return shell.pipes(), nil
	}
	var p pipes
	var errs [3]error
	p.theirIn, p.stdin, errs[0] = os.Pipe()
	p.stdout, p.theirOut, errs[1] = os.Pipe()
	p.stderr, p.theirErr, errs[2] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		p.closeTheirs()
		p.closeOurs()
		return nil, err
	}
	return &p, nil
}

func (p *pipes) closeTheirs() {
	if p.terminal != nil {
		_ = p.terminal.CloseTheirs() // a second time, where it was closed
		return
	}
	closeAll(p.theirIn, p.theirOut, p.theirErr)
}

// closeOurs leaves a terminal to whoever made it.
func (p *pipes) closeOurs() {
	if p.terminal == nil {
		closeAll(p.stdin, p.stdout, p.stderr)
	}
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// explain turns what the system says about a failed exec into a refusal.
func explain(l approvals.Launch, err error) error {
	e := &coded.Error{Code: "start-failed", Sentence: fmt.Sprintf("the system cannot start %s", l.ID), Err: err}
	switch {
	case strings.Contains(err.Error(), "chdir"):
		return cwdMissing(l, "cannot be entered")
	case errors.Is(err, fs.ErrNotExist):
		e.Code, e.Sentence = "exec-not-found", fmt.Sprintf("the executable of %s, or the program that its first line names, is not there", l.ID)
	case errors.Is(err, fs.ErrPermission):
		e.Code, e.Sentence = "exec-denied", fmt.Sprintf("the system does not let Sallyport execute the program of %s", l.ID)
	case isNotExecutable(err):
		e.Code, e.Sentence = "exec-format", fmt.Sprintf("the file that %s names is not a program for this system and has no #! line", l.ID)
	}
	return e
}
