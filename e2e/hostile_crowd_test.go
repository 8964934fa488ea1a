//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// C75: many commands on one home at once, with a sidecar and without one, where
// each is a host of its own for a moment. No update is lost and nothing is broken.
func TestACrowdOfCommands(t *testing.T) {
	for _, row := range []struct {
		what    string
		sidecar bool
	}{{"with a sidecar", true}, {"without one", false}} {
		t.Run(row.what, func(t *testing.T) { crowd(t, row.sidecar) })
	}
}

const clientsOfACrowd, pluginsOfACrowd = 12, 4

func crowd(t *testing.T, sidecar bool) {
	f := newPlainFort(t)
	f.addServer("shared", "polite")
	f.approve("shared")
	for n := range pluginsOfACrowd {
		f.addServer(fmt.Sprintf("plugin%d", n), "polite")
	}
	if sidecar {
		f.serve()
	}
	var work [][]string
	for n := range clientsOfACrowd {
		work = append(work, []string{"clients", "add", fmt.Sprintf("agent%d", n), "--json"})
	}
	for n := range pluginsOfACrowd {
		work = append(work, []string{"approve", fmt.Sprintf("plugin%d", n), "--yes", "--all-tools"})
	}
	work = append(work, []string{"call", "shared", "go"}, []string{"call", "shared", "go"}, []string{"plugins", "scan"}, []string{"plugins", "list"})

	var all sync.WaitGroup
	outcomes := make([]outcome, len(work))
	for i, args := range work {
		all.Go(func() { outcomes[i] = f.run(args...) })
	}
	all.Wait()
	for i, got := range outcomes {
		if got.code != 0 {
			t.Errorf("sallyport %v exited with %d: %s%s", work[i], got.code, got.stdout, got.stderr)
		}
	}
	var clients []struct{ Name string }
	f.read(&clients, "clients", "list")
	for n := range clientsOfACrowd {
		if name := fmt.Sprintf("agent%d", n); !slices.ContainsFunc(clients, func(c struct{ Name string }) bool { return c.Name == name }) {
			t.Errorf("%s was added and is not there", name)
		}
	}
	for n := range pluginsOfACrowd {
		f.wantStanding(fmt.Sprintf("plugin%d/main", n), "enabled", "")
	}
	if got := f.ok("audit", "verify"); !strings.Contains(got, "records verify") {
		t.Error(got)
	}
	if n := f.audited("client.add", "ok", ""); n != clientsOfACrowd {
		t.Errorf("%d clients were added by the audit", n)
	}
	if n := f.audited("call", "ok", "shared"); n != 2 {
		t.Errorf("%d calls are on record, want 2", n)
	}
}

// One name can be added once, however many ask.
func TestACrowdThatWantsOneName(t *testing.T) {
	f := newPlainFort(t)
	f.serve()
	var all sync.WaitGroup
	outcomes := make([]outcome, 20)
	for i := range outcomes {
		all.Go(func() { outcomes[i] = f.run("clients", "add", "claude") })
	}
	all.Wait()
	added := 0
	for _, got := range outcomes {
		switch {
		case got.code == 0:
			added++
		case !strings.Contains(got.stderr, "client-exists:"):
			t.Errorf("%+v", got)
		}
	}
	if added != 1 {
		t.Errorf("%d were told that they have it", added)
	}
}
