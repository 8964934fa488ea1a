//go:build !windows

package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// behave is a child. It says on stdout when it is ready and who it is.
func behave(args []string) {
	switch args[0] {
	case "polite":
		fmt.Println(os.Getpid())
		io.Copy(io.Discard, os.Stdin)
	case "deaf":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Println(os.Getpid())
		forever()
	case "ignores-eof":
		fmt.Println(os.Getpid())
		forever()
	case "exit":
		code, _ := strconv.Atoi(args[1])
		fmt.Print("last words")
		os.Exit(code)
	case "crash":
		syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(time.Minute)
	case "describe":
		describe(args)
	case "family":
		family(args[1:])
	case "flood":
		flood(args[1:])
	case "reply-after-flood":
		replyAfterFlood()
	case "stderr":
		for _, piece := range args[1:] {
			io.WriteString(os.Stderr, piece)
			time.Sleep(5 * time.Millisecond)
		}
	case "eat-memory":
		eatMemory()
	case "eat-cpu":
		for n := 0; ; n++ {
			_ = n
		}
	case "fork-bomb":
		forkBomb(args[1])
	case "open-files":
		openFiles()
	}
}

func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// self-description of a child, as JSON.
type description struct {
	Args  []string
	Env   []string
	Umask int
	Cwd   string
	Core  unix.Rlimit
	Open  unix.Rlimit
	Group bool // leads its own group and session
}

func describe(args []string) {
	d := description{Args: args, Env: os.Environ(), Umask: syscall.Umask(0)}
	d.Cwd, _ = os.Getwd()
	unix.Getrlimit(unix.RLIMIT_CORE, &d.Core)
	unix.Getrlimit(unix.RLIMIT_NOFILE, &d.Open)
	session, _ := unix.Getsid(0)
	d.Group = syscall.Getpgrp() == os.Getpid() && session == os.Getpid()
	json.NewEncoder(os.Stdout).Encode(d)
}

// family forks children that misbehave, says their numbers, and waits or leaves.
//
//	family leave|stay|deaf WORD…   with WORD: grandchild, setsid, double
func family(args []string) {
	pids := []string{strconv.Itoa(os.Getpid())}
	for _, kind := range args[1:] {
		cmd := exec.Command(self(), "__child", "deaf")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		out, _ := os.MkdirTemp("", "family")
		ready := filepath.Join(out, "ready")
		file, _ := os.Create(ready)
		cmd.Stdout = file
		cmd.ExtraFiles = []*os.File{os.Stdout} // keeps the pipe open for ever
		if kind != "grandchild" {
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		}
		if kind == "double" {
			cmd.Args = append(cmd.Args[:1], "__child", "family", "leave", "setsid")
		}
		cmd.Start()
		for {
			text, _ := os.ReadFile(ready)
			if strings.Contains(string(text), "\n") {
				pids = append(pids, strings.TrimSpace(string(text)))
				break
			}
			time.Sleep(time.Millisecond)
		}
		os.RemoveAll(out)
	}
	if args[0] == "deaf" {
		signal.Ignore(syscall.SIGTERM)
	}
	fmt.Println(strings.Join(pids, " "))
	if args[0] == "leave" {
		os.Exit(0)
	}
	if args[0] == "stay" {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	forever()
}

// flood writes to stderr: flood BYTES CHARACTER.
func flood(args []string) {
	size, _ := strconv.Atoi(args[0])
	piece := strings.Repeat(args[1], 4<<10/len(args[1]))
	for written := 0; written < size; written += len(piece) {
		io.WriteString(os.Stderr, piece)
	}
	io.WriteString(os.Stderr, "\nthe end\n")
	fmt.Println("done")
}

func replyAfterFlood() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		flood([]string{strconv.Itoa(256 << 10), "x"})
	}
}

func eatMemory() {
	var hoard [][]byte
	for {
		b := make([]byte, 8<<20)
		for i := range b {
			b[i] = 1
		}
		hoard = append(hoard, b) //nolint:staticcheck // it is kept so that the memory is in use
		time.Sleep(20 * time.Millisecond)
	}
}

// forkBomb starts itself twice, in sessions of their own, to a depth that spares the
// machine if nothing stops it.
func forkBomb(depth string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	left, _ := strconv.Atoi(depth)
	if left > 0 {
		for range 2 {
			cmd := exec.Command(self(), "__child", "fork-bomb", strconv.Itoa(left-1))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			cmd.Start()
		}
	}
	forever()
}

func openFiles() {
	n := 0
	for {
		if _, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0); err != nil {
			fmt.Println(n, err)
			return
		}
		n++
	}
}

// beHost is a Sallyport that starts a family and waits to be killed.
func beHost(folder string) {
	state := filepath.Join(folder, "state")
	m, err := New(Config{StateDir: state, Shim: testShim()})
	if err != nil {
		panic(err)
	}
	text, _ := os.ReadFile(filepath.Join(folder, "behaviour"))
	l, err := makeLaunch(folder, nil, strings.Fields(string(text)))
	if err != nil {
		panic(err)
	}
	c, err := m.start(context.Background(), l)
	if err != nil {
		panic(err)
	}
	line, _ := bufio.NewReader(c.Stdout()).ReadString('\n')
	os.WriteFile(filepath.Join(folder, "pids.tmp"), []byte(line), 0o600)
	os.Rename(filepath.Join(folder, "pids.tmp"), filepath.Join(folder, "pids"))
	forever()
}
