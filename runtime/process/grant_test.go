//go:build !windows

package process

import (
	"context"
	"io"
	"os"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
)

// approvedEcho is a plugin, approved by a real gate, that echoes its input.
func approvedEcho(t *testing.T) *approvalstest.Rig {
	t.Helper()
	rig := approvalstest.New(t)
	rig.Bundle("./server.sh")
	rig.Write("server.sh", "#!/bin/sh\nexec /bin/cat\n", 0o755)
	rig.Approve(approvalstest.OfferOf("echo"), "echo")
	return rig
}

func TestGrantStartsWhatWasApproved(t *testing.T) {
	rig := approvedEcho(t)
	c, err := newManager(t, nil).Start(context.Background(), rig.Grant())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stdout().Close()
	io.WriteString(c.Stdin(), "hello\n")
	if got := firstLine(t, c); got != "hello" || c.ID() != rig.ID {
		t.Errorf("%v said %q", c.ID(), got)
	}
	if err := c.Stop(context.Background(), nil).Err(); err != nil {
		t.Error(err)
	}
}

func TestProbeGrantStartsToo(t *testing.T) {
	rig := approvalstest.New(t)
	rig.Bundle("./server.sh")
	rig.Write("server.sh", "#!/bin/sh\nexec /bin/cat\n", 0o755)
	_, grant := rig.Probing()
	c, err := newManager(t, nil).Start(context.Background(), grant)
	if err != nil {
		t.Fatal(err)
	}
	c.Stop(context.Background(), nil)
	c.Stdout().Close()
}

func TestEndedGrantStopsItsChildAndStartsNothing(t *testing.T) {
	rig := approvedEcho(t)
	spawned := 0
	m := newManager(t, func(c *Config) {
		c.Spawn = func(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
			spawned++
			return os.StartProcess(path, argv, attr)
		}
	})
	grant := rig.Grant()
	c, err := m.Start(context.Background(), grant)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stdout().Close()
	if err := rig.Gate.Revoke(context.Background(), rig.ID, approvalstest.Operator); err != nil {
		t.Fatal(err)
	}
	<-c.Gone()
	if reason := c.Stop(context.Background(), nil).Reason; coded.Of(reason) == "" || coded.Of(reason) != coded.Of(grant.Err()) {
		t.Errorf("it was stopped because of %v, and the grant ended because of %v", reason, grant.Err())
	}
	for what, ended := range map[string]approvals.Grant{"the revoked grant": grant, "the zero grant": {}} {
		if _, err := m.Start(context.Background(), ended); coded.Of(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if spawned != 1 {
		t.Errorf("%d processes were started", spawned)
	}
}

func TestClosedManagerStartsNothing(t *testing.T) {
	m, err := New(Config{StateDir: t.TempDir(), Shim: testShim()})
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, m, childLaunch(t, "polite"))
	firstLine(t, c)
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if alive(c.PID()) {
		t.Error("closing left a child")
	}
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	_, err = m.start(context.Background(), childLaunch(t, "polite"))
	wantCode(t, err, "host-closing")
}
