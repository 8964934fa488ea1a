package approvals_test

import (
	"fmt"
	"sync"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
)

func BenchmarkCallGrant(b *testing.B) {
	r := approvalstest.New(b)
	r.Approve(offer, "read_notes")
	grant := r.Grant()
	r.Gate.Live(grant, offer)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Gate.CallGrant(ctx, grant, "read_notes", approvalstest.Client); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGrant(b *testing.B) {
	for _, files := range []int{10, 1000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			r := approvalstest.New(b)
			for i := range files {
				r.Write(fmt.Sprintf("lib/%d/%d.js", i%20, i), fmt.Sprintf("// file %d\n%01000d", i, i), 0o644)
			}
			r.Approve(offer, "read_notes")
			for b.Loop() {
				r.Grant()
			}
		})
	}
}

func BenchmarkStatus(b *testing.B) {
	r := approvalstest.New(b)
	r.Approve(offer, "read_notes")
	b.ReportAllocs()
	for b.Loop() {
		if s := r.Gate.Status(b.Context(), r.ID); s.State != approvals.Enabled {
			b.Fatal(s.State)
		}
	}
}

// TestACallGrantIsCheap: it is made for every call, so it waits for nothing and
// leaves nothing to collect.
func TestACallGrantIsCheap(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	grant := r.Grant()
	r.Gate.Live(grant, offer)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := r.Gate.CallGrant(t.Context(), grant, "read_notes", approvalstest.Client); err != nil {
			t.Error(err)
		}
	})
	if allocs > 0 {
		t.Fatalf("%v allocations a call", allocs)
	}
}

// TestEverythingAtOnce asks, answers, starts, rechecks, revokes and changes files
// at the same time; whatever comes of it, no grant stands for bytes that are not
// the approved ones, and every refusal has a code.
func TestEverythingAtOnce(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	const good = "// version one\nconsole.log('hello')\n"
	ctx := t.Context()
	var group sync.WaitGroup
	check := func(err error) {
		if err != nil && coded.Of(err) == "" {
			t.Errorf("a refusal without a code: %v", err)
		}
	}
	run := func(act func(i int)) {
		group.Go(func() {
			for i := range 15 {
				act(i)
			}
		})
	}
	run(func(i int) { r.Write("server.js", []string{good, "evil"}[i%2], 0o644) })
	for range 2 {
		run(func(int) {
			grant, err := r.Gate.Grant(ctx, r.ID)
			check(err)
			if err == nil {
				r.Gate.Live(grant, offer)
				_, err := r.Gate.CallGrant(ctx, grant, "read_notes", approvalstest.Client)
				check(err)
			}
		})
	}
	run(func(int) { r.Gate.Recheck(ctx, r.ID) })
	run(func(int) {
		d, err := r.Gate.Ask(ctx, r.ID, operator)
		check(err)
		if err != nil {
			return
		}
		d, err = r.Gate.Answer(ctx, d.ID, approvals.Answer{Allow: true}, operator)
		check(err)
		if err != nil {
			return
		}
		if _, err = r.Gate.ProbeGrant(ctx, d.ID); err != nil {
			check(err)
			check(r.Gate.ProbeFailed(ctx, d.ID, err))
			return
		}
		tools, err := r.Gate.Probed(ctx, d.ID, offer)
		check(err)
		if err == nil {
			_, err = r.Gate.Answer(ctx, tools.ID, approvals.Answer{Allow: true, Tools: []string{"read_notes"}}, operator)
			check(err)
		}
	})
	run(func(i int) {
		if i%5 == 4 {
			check(r.Gate.Disable(ctx, r.ID, operator))
			check(r.Gate.Enable(ctx, r.ID, operator))
		}
		r.Gate.Statuses(ctx)
		check(r.Gate.Sweep(ctx))
	})
	group.Wait()

	r.Write("server.js", good, 0o644)
	r.Reopen()
	for _, problem := range r.Gate.Problems() {
		t.Errorf("a seal does not verify: %v", problem)
	}
	r.Approve(offer, "read_notes")
	launch, err := r.Grant().Launch()
	if err != nil {
		t.Fatal(err)
	}
	wantLaunchFromSnapshot(t, r, launch)
}
