package env

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/coded"
)

// ShellLimit is how long the login shell may take to say its PATH
// (spec/child-environment.md 1).
const ShellLimit = 4 * time.Second

// PathConfig is what UserPath needs. The zero value of every field but Parent
// is the documented default.
type PathConfig struct {
	Parent Parent
	// Shell is the absolute path of the login shell; default: SHELL, then the
	// entry of the user in /etc/passwd.
	Shell string
	// Home is the user's home folder; default: HOME.
	Home string
	// Limit replaces ShellLimit.
	Limit  time.Duration
	Logger *slog.Logger
}

// UserPath returns the user's own PATH: what the login shell says when asked
// once, then what Sallyport inherited, then the well-known launcher folders;
// the first of two equal entries wins. Entries that are empty, relative or
// world-writable are dropped. A shell that fails, hangs or says nothing is left
// out and logged; the error is non-nil only when ctx ended.
//
// On Windows it is the inherited PATH.
func UserPath(ctx context.Context, c PathConfig) (string, error) {
	system := c.Parent.System
	inherited, _ := c.Parent.Lookup("PATH")
	if system == "windows" {
		return joinPath(system, mergePaths(system, absoluteOnly(system, inherited))), ctx.Err()
	}
	if c.Home == "" {
		c.Home, _ = c.Parent.Lookup("HOME")
	}
	if c.Limit == 0 {
		c.Limit = ShellLimit
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	said, err := askShell(ctx, c)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		c.Logger.Warn("login shell did not give a PATH", "error", err)
	}
	merged := mergePaths(system, absoluteOnly(system, said), absoluteOnly(system, inherited), launchers(system, c.Home))
	var kept []string
	for _, entry := range merged {
		if trusted(entry) {
			kept = append(kept, entry)
		}
	}
	return joinPath(system, kept), nil
}

// askShell runs the login shell with fixed arguments and returns the PATH that
// stands between two fences. Its process group is killed in every case.
func askShell(ctx context.Context, c PathConfig) (string, error) {
	shell := c.shell()
	if !filepath.IsAbs(shell) {
		return "", coded.New("shell-unknown", "neither SHELL nor the password file names a login shell")
	}
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	f, err := newFence()
	if err != nil {
		return "", err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer read.Close()
	cmd := exec.Command(shell, shellArguments(shell, f)...)
	cmd.Env, cmd.Dir, cmd.Stdout = c.shellEnviron(shell), c.shellFolder(), write
	ownSession(cmd)
	err = cmd.Start()
	write.Close()
	if err != nil {
		return "", errors.New("cannot start the login shell")
	}
	defer func() {
		killGroup(cmd.Process.Pid)
		_ = cmd.Wait() // it was killed
	}()
	stop := context.AfterFunc(ctx, func() { read.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if said, ok := f.read(read); ok {
		return said, nil
	}
	if ctx.Err() != nil {
		return "", coded.New("shell-slow", "the login shell took too long")
	}
	return "", coded.New("shell-silent", "the login shell ended without giving a PATH")
}

// shellArguments asks in words that every shell takes the same way: one
// command, single quotes, nothing to expand before /bin/sh.
func shellArguments(shell string, f fence) []string {
	ask := `/bin/sh -c 'printf "\n%s%s%s%s%s%s\n" ` + f.half + " " + f.other + ` ":" "$PATH" ` + f.other + " " + f.half + `'`
	switch filepath.Base(shell) {
	case "csh", "tcsh":
		// These take -l only alone.
		return []string{"-ic", ask}
	}
	return []string{"-i", "-l", "-c", ask}
}

// shellEnviron gives the shell what a login would: the base list and who the
// user is, and none of the parent's secrets.
func (c PathConfig) shellEnviron(shell string) []string {
	environ := []string{"TERM=dumb", "SHELL=" + shell, "HOME=" + c.Home}
	for _, name := range append(c.Parent.fromBase(), "USER", "LOGNAME", "ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR") {
		if value, ok := c.Parent.Lookup(name); ok && name != "HOME" {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}

func (c PathConfig) shellFolder() string {
	if info, err := os.Stat(c.Home); err == nil && info.IsDir() {
		return c.Home
	}
	return "/"
}

func (c PathConfig) shell() string {
	if c.Shell != "" {
		return c.Shell
	}
	if shell, ok := c.Parent.Lookup("SHELL"); ok && filepath.IsAbs(shell) {
		return shell
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	return shellOf(passwd, os.Getuid())
}

// A fence marks the answer among whatever else start-up files print. The shell
// only ever sees its halves, so a file that echoes the command does not forge it.
type fence struct{ half, other string }

func newFence() (fence, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return fence{}, err
	}
	text := hex.EncodeToString(b[:])
	return fence{"s" + text[:16], "p" + text[16:]}, nil
}

// read returns what stands in the first complete fence. Only the last 128 KiB
// are kept, however much the shell prints.
func (f fence) read(r io.Reader) (string, bool) {
	const keep = 128 << 10
	open, end := []byte(f.half+f.other+":"), []byte(f.other+f.half+"\n")
	var tail []byte
	buffer := make([]byte, 16<<10)
	for {
		n, err := r.Read(buffer)
		tail = append(tail, buffer[:n]...)
		if _, after, ok := bytes.Cut(tail, open); ok {
			if said, _, ok := bytes.Cut(after, end); ok {
				return strings.TrimRight(string(said), "\r\n"), true
			}
		}
		if len(tail) > keep {
			tail = append(tail[:0], tail[len(tail)-keep/2:]...)
		}
		if err != nil {
			return "", false
		}
	}
}
