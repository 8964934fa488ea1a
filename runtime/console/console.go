// Package console opens a person's own shell where a connector's program would run: in
// its folder, with its environment, for commands that sign in and for finding faults.
//
// The one idea: a console is one more process of an approval. It takes the same grant,
// is the same kind of child, and ends when the approval does (spec/approval.md 5.4a).
// What it prints is kept in a ring of bounded size, by offsets from the beginning, so
// that whoever draws it may come and go.
//
// It does not know who may have one (approvals.Gate.MayUseConsole) and writes no
// record: host does both. What is typed and printed is nowhere but in memory.
package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/pty"
	"sallyport/runtime/approvals"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
	"sallyport/runtime/process"
)

const (
	// MaxOpen is how many consoles there may be at a time.
	MaxOpen = 8
	// Scroll is how much of what a console printed is kept.
	Scroll = 1 << 20
	// MaxInput is how much may be typed, or pasted, at once.
	MaxInput = 64 << 10
	// maxEnded is how many that have ended are kept, for whoever has not read the end.
	maxEnded = 8
	// keepEnded is for how long.
	keepEnded = time.Minute
	// inputWait is how long a program may leave what is typed unread.
	inputWait = 5 * time.Second
	// maxSide bounds a terminal's size.
	maxSide = 1000
)

// Starter is the part of process.Manager that starts shells.
type Starter interface {
	StartShell(ctx context.Context, g approvals.Grant, shell process.Shell) (*process.Child, error)
}

// Config is what New needs.
type Config struct {
	Processes Starter
	// Parent is Sallyport's own environment, which names the person's shell.
	Parent env.Parent
	// Closed is told of every console that has ended, once. It may be nil.
	Closed func(Info)
	// Unread is how long a console stays that nobody reads; zero is ten minutes.
	Unread time.Duration
	Now    func() time.Time // nil is time.Now
	Logger *slog.Logger     // nil discards
}

// Options say how a console is opened.
type Options struct {
	Size pty.Size
	// Term is what the terminal understands (TERM); "" is xterm-256color.
	Term string
	By   approvals.By
}

// Info is a console as it stands.
type Info struct {
	ID        string
	Connector plugins.ID
	Version   string
	Identity  approvals.Identity
	Shell     string // the base name
	By        approvals.By
	OpenedAt  time.Time
	Size      pty.Size
	Printed   uint64 // bytes
	// The rest is set when it has ended.
	Ended   bool
	EndedAt time.Time
	Exit    string        // "exit status 0", "signal: killed"
	Reason  *coded.Error  // why Sallyport ended it; nil where the shell ended
	Closer  *approvals.By // who closed it; nil where nobody did
}

// Output is a piece of what a console printed.
type Output struct {
	Data []byte
	// From is the offset of Data's first byte, Next what to ask for next.
	From, Next uint64
	// Dropped are the bytes between what was asked for and From: more was printed than
	// is kept.
	Dropped uint64
	Info    Info
}

// Consoles are those of one host. All methods may be called concurrently.
type Consoles struct {
	config Config
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	opening int
	all     map[string]*console
}

// New prepares for opening consoles.
func New(c Config) *Consoles {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Unread <= 0 {
		c.Unread = 10 * time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Consoles{config: c, all: map[string]*console{}}
}

// Open starts a shell under a grant. ctx bounds the start and not the console's life.
//
// Errors are *coded.Error: too-many-consoles, console-size, console-term,
// terminal-unavailable, console-shell-unknown, and those of process.Manager.StartShell.
func (c *Consoles) Open(ctx context.Context, grant approvals.Grant, o Options) (Info, error) {
	launch, err := grant.Launch()
	if err != nil {
		return Info{}, err
	}
	if err := o.Check(); err != nil {
		return Info{}, err
	}
	if o.Term == "" {
		o.Term = "xterm-256color"
	}
	if err := c.reserve(); err != nil {
		return Info{}, err
	}
	defer c.release()
	shell, args, err := findShell(ctx, c.config.Parent)
	if err != nil {
		return Info{}, err
	}
	terminal, err := pty.Open(o.Size)
	if err != nil {
		return Info{}, &coded.Error{Code: "terminal-unavailable", Sentence: "the system gives no pseudo-terminal", Next: "close other terminals and try again", Err: err}
	}
	child, err := c.config.Processes.StartShell(ctx, grant, process.Shell{Program: shell, Args: args, Terminal: terminal, Term: o.Term})
	if err != nil {
		return Info{}, errors.Join(err, terminal.CloseTheirs(), terminal.Close())
	}
	one := &console{
		grant: grant, child: child, terminal: terminal, changed: make(chan struct{}), over: make(chan struct{}), readAt: c.config.Now(),
		info: Info{
			ID: rand.Text(), Connector: launch.ID, Version: launch.Version, Identity: grant.Identity(), Shell: nameOf(shell.Found),
			By: o.By, OpenedAt: c.config.Now().UTC(), Size: o.Size,
		},
	}
	return c.keep(one)
}

// keep takes a console over, but when everything is closing.
func (c *Consoles) keep(one *console) (Info, error) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.all[one.info.ID] = one
		c.work.Go(func() { c.attend(one) })
	}
	c.mu.Unlock()
	if closed {
		why := closing()
		one.child.Stop(context.Background(), why)
		_ = one.terminal.Close() // it was hung up
		return Info{}, why
	}
	return one.now(), nil
}

func closing() *coded.Error { return coded.New("host-closing", "Sallyport is closing") }

// reserve holds a place for one that is being opened.
func (c *Consoles) reserve() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return closing()
	}
	c.forget()
	open := c.opening
	for _, one := range c.all {
		if !one.now().Ended {
			open++
		}
	}
	if open >= MaxOpen {
		return &coded.Error{Code: "too-many-consoles", Sentence: fmt.Sprintf("%d consoles are open, and no more may be", MaxOpen), Next: "close one of them"}
	}
	c.opening++
	return nil
}

func (c *Consoles) release() {
	c.mu.Lock()
	c.opening--
	c.mu.Unlock()
}

// forget drops what ended a while ago. c.mu is held.
func (c *Consoles) forget() {
	var ended []Info
	for _, one := range c.all {
		if info := one.now(); info.Ended {
			ended = append(ended, info)
		}
	}
	slices.SortFunc(ended, func(a, b Info) int { return b.EndedAt.Compare(a.EndedAt) })
	for i, info := range ended {
		if i >= maxEnded || c.config.Now().Sub(info.EndedAt) > keepEnded {
			delete(c.all, info.ID)
		}
	}
}

// List returns the consoles that are open or ended just now, the oldest first.
func (c *Consoles) List() []Info {
	c.mu.Lock()
	c.forget()
	list := make([]Info, 0, len(c.all))
	for _, one := range c.all {
		list = append(list, one.now())
	}
	c.mu.Unlock()
	slices.SortFunc(list, func(a, b Info) int { return a.OpenedAt.Compare(b.OpenedAt) })
	return list
}

// Grants are the grants that consoles are open by, one for each connector: what they
// are bound to is watched as that of running servers is.
func (c *Consoles) Grants() map[plugins.ID]approvals.Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	grants := map[plugins.ID]approvals.Grant{}
	for _, one := range c.all {
		if info := one.now(); !info.Ended {
			grants[info.Connector] = one.grant
		}
	}
	return grants
}

// Known refuses what is no console.
func (c *Consoles) Known(id string) error {
	_, err := c.find(id)
	return err
}

// Output returns what was printed from an offset on, and waits for it, or for the end,
// as long as ctx does.
func (c *Consoles) Output(ctx context.Context, id string, after uint64) (Output, error) {
	one, err := c.find(id)
	if err != nil {
		return Output{}, err
	}
	return one.output(ctx, after, c.config.Now)
}

// Input types. It is refused where the program does not read (console-input-full).
func (c *Consoles) Input(id string, data []byte) error {
	if len(data) > MaxInput {
		return coded.New("console-input-large", fmt.Sprintf("at most %d bytes can be typed at once", MaxInput))
	}
	one, err := c.find(id)
	if err != nil {
		return err
	}
	return one.input(data)
}

// Resize tells the console's programs another size.
func (c *Consoles) Resize(id string, size pty.Size) error {
	if err := checkSize(size); err != nil {
		return err
	}
	one, err := c.find(id)
	if err != nil {
		return err
	}
	return one.resize(size)
}

// Stop ends a console and everything in it, for whoever asks.
func (c *Consoles) Stop(ctx context.Context, id string, by approvals.By) (Info, error) {
	one, err := c.find(id)
	if err != nil {
		return Info{}, err
	}
	one.closeBy(by)
	report := one.child.Stop(ctx, coded.New("console-closed", "the console was closed"))
	if err := report.Err(); err != nil {
		return one.now(), err
	}
	select {
	case <-one.over:
	case <-ctx.Done():
	}
	return one.now(), nil
}

// StopWhere ends the consoles whose grant is chosen, for a reason.
func (c *Consoles) StopWhere(ctx context.Context, chosen func(approvals.Grant) bool, reason *coded.Error) {
	c.stopEach(ctx, func(one *console) *coded.Error {
		if chosen(one.grant) {
			return reason
		}
		return nil
	})
}

// StopRefused ends the consoles of those who may have none now: may says why.
func (c *Consoles) StopRefused(ctx context.Context, may func(approvals.By) error) {
	c.stopEach(ctx, func(one *console) *coded.Error {
		var why *coded.Error
		errors.As(may(one.now().By), &why)
		return why
	})
}

// stopEach ends those that there is a reason for, all at once.
func (c *Consoles) stopEach(ctx context.Context, reason func(*console) *coded.Error) {
	c.mu.Lock()
	var open []*console
	for _, one := range c.all {
		if !one.now().Ended {
			open = append(open, one)
		}
	}
	c.mu.Unlock()
	var stops sync.WaitGroup
	for _, one := range open {
		if why := reason(one); why != nil {
			stops.Go(func() { one.end(ctx, why) })
		}
	}
	stops.Wait()
}

// Close ends every console, all at once, and opens no other.
func (c *Consoles) Close(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.StopWhere(ctx, func(approvals.Grant) bool { return true }, closing())
	c.work.Wait()
}

func (c *Consoles) find(id string) (*console, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.all[id]; one != nil {
		return one, nil
	}
	return nil, &coded.Error{Code: "console-unknown", Sentence: "there is no such console, or it ended a while ago", Next: "open another one"}
}

// attend reads what a console prints until it has ended, and then says so.
func (c *Consoles) attend(one *console) {
	var reading sync.WaitGroup
	reading.Go(func() { one.read(c.config.Now) })
	unread := time.NewTicker(max(c.config.Unread/20, time.Millisecond))
	defer unread.Stop()
	for gone := false; !gone; {
		select {
		case <-one.child.Gone():
			gone = true
		case <-unread.C:
			if one.unreadFor(c.config.Now()) > c.config.Unread {
				one.end(context.Background(), &coded.Error{Code: "console-unread", Sentence: "nobody has looked at it for a while", Next: "open another one"})
			}
		}
	}
	reading.Wait()
	if err := one.terminal.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		c.config.Logger.Warn("a terminal could not be closed", "error", err)
	}
	info := one.finish(c.config.Now().UTC())
	if c.config.Closed != nil {
		c.config.Closed(info)
	}
	one.announce()
}

// Check refuses what no console is opened with.
func (o Options) Check() error {
	if err := checkSize(o.Size); err != nil {
		return err
	}
	// What goes into an environment is what names of terminals are made of.
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-.+_", r)
	}
	if len(o.Term) > 64 || strings.ContainsFunc(o.Term, func(r rune) bool { return !plain(r) }) {
		return coded.New("console-term", "that is not the name of a terminal")
	}
	return nil
}

func checkSize(size pty.Size) error {
	if size.Cols == 0 || size.Rows == 0 || size.Cols > maxSide || size.Rows > maxSide {
		return coded.New("console-size", fmt.Sprintf("a console has from 1 to %d columns and rows", maxSide))
	}
	return nil
}
