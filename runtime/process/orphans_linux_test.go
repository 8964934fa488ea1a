package process

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

// A helper of Sallyport's own that nobody waits for stands for an adopted
// process that has ended: both are zombies that only Sallyport can collect.
func TestAdoptedZombiesAreCollectedAtTheSecondLook(t *testing.T) {
	m := newManager(t, nil)
	cmd := exec.Command("/bin/true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	eventually(t, "it is a zombie", func() bool { p, _ := look(pid); return p.zombie })
	seen := m.collect(nil)
	if p, ok := look(pid); !ok || !p.zombie {
		t.Fatal("it was collected at the first look")
	}
	m.collect(seen)
	if p, ok := look(pid); ok && p.zombie && p.parent == os.Getpid() {
		t.Error("it was not collected at the second look")
	}
	cmd.Wait()
}

func TestOrphansOfOthersAreLeftAlone(t *testing.T) {
	m := newManager(t, nil)
	bystander := exec.Command("/bin/sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer bystander.Wait()
	defer bystander.Process.Kill()
	c := start(t, m, childLaunch(t, "polite"))
	other := start(t, m, childLaunch(t, "polite"))
	firstLine(t, c)
	firstLine(t, other)
	c.Kill()
	<-c.Gone()
	if !alive(bystander.Process.Pid) || !alive(other.PID()) {
		t.Error("killing one connector killed another process")
	}
	other.Stop(context.Background(), nil)
}
