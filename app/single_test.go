package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
)

const link = "sallyport://review/d-abcdefghijkl2345"

func TestOneWindowForOneFolder(t *testing.T) {
	dir := t.TempDir()
	lock, err := only(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := only(dir); !errors.Is(err, errOpen) {
		t.Errorf("a second window: %v", err)
	}
	lock.Release()
	if lock, err := only(dir); err != nil {
		t.Errorf("after the first: %v", err)
	} else {
		lock.Release()
	}
}

func TestASecondStartHandsOver(t *testing.T) {
	dir := t.TempDir()
	granted := make(chan wish, 8)
	if err := wishes(t.Context(), dir, func(one wish) { granted <- one }); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ says, arrives string }{{link, link}, {"", ""}, {"sallyport://settings", ""}, {"sallyport://review/x'", ""}} {
		if err := handOver(t.Context(), dir, row.says, time.Minute); err != nil {
			t.Fatal(err)
		}
		if one := <-granted; one.Open != row.arrives {
			t.Errorf("%q arrives as %q", row.says, one.Open)
		}
	}
}

func TestAWindowThatDoesNotAnswerIsSaid(t *testing.T) {
	dir := t.TempDir()
	err := handOver(t.Context(), dir, link, 50*time.Millisecond)
	if coded.Of(err) != "window-not-answering" || strings.Contains(err.Error(), dir) {
		t.Errorf("it says %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the wish stays for whoever comes next: %v %v", entries, err)
	}
}

func TestWhatIsNoWishIsTakenAway(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "torn": `{"open":`, "a list": `[]`, "more": `{"open":"","run":"sh"}`, "two": `{"open":""}{"open":""}`,
		"long": `{"open":"` + strings.Repeat("x", 1<<16) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, wishFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if one, ok := take(dir); ok {
				t.Errorf("taken as %+v", one)
			}
			if _, err := os.Lstat(filepath.Join(dir, wishFile)); err == nil {
				t.Error("it is still there")
			}
		})
	}
}
