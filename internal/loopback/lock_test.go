package loopback

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// holderEnv makes the test binary lock the folder it names, say so, and wait.
const holderEnv = "LOOPBACK_TEST_HOLD_LOCK_OF"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderEnv); dir != "" {
		if _, err := Acquire(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestOneInstanceHoldsTheLockUntilItReleasesIt(t *testing.T) {
	dir := t.TempDir()
	first, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("second instance: %v, want ErrHeld", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := Acquire(dir)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	second.Release()
}

func TestLockOfAKilledProcessIsFreeAtOnce(t *testing.T) {
	dir := t.TempDir()
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holderEnv+"="+dir)
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "held\n" {
		t.Fatalf("holder says %q", line)
	}
	if _, err := Acquire(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("while it lives: %v, want ErrHeld", err)
	}
	holder.Process.Kill()
	holder.Wait()
	lock, err := Acquire(dir)
	if err != nil {
		t.Fatalf("after kill -9: %v", err)
	}
	lock.Release()
}

func TestPidInALockFileIsNotBelieved(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, lockFile), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := Acquire(dir)
	if err != nil {
		t.Fatalf("a file with a living pid keeps the service out: %v", err)
	}
	lock.Release()
}

func TestEveryStartIsAnotherInstance(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		id := NewInstance()
		if len(id) != 32 || seen[id] {
			t.Fatalf("instance %q is short or not new", id)
		}
		seen[id] = true
	}
}
