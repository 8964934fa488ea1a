package plugins

import "testing"

func TestBudgetsOfThePackageAndTheOperator(t *testing.T) {
	defaults := Budget{MemoryBytes: 4 << 30, CPUSeconds: 14_400, OpenFiles: 8192, Processes: 256, Calls: 256, ResultBytes: 64 << 20}
	with := func(change func(*Budget)) Budget {
		b := defaults
		change(&b)
		return b
	}
	for _, row := range []struct {
		what              string
		packaged, overlay Budget
		holds             Budget
		refused           bool
	}{
		{what: "nobody asks", holds: defaults},
		{what: "the package asks", packaged: Budget{Calls: 4}, holds: with(func(b *Budget) { b.Calls = 4 })},
		{what: "the operator asks", overlay: Budget{Processes: 9}, holds: with(func(b *Budget) { b.Processes = 9 })},
		{what: "the operator's number takes the place of the package's", packaged: Budget{MemoryBytes: 1, Calls: 2}, overlay: Budget{MemoryBytes: 1 << 50},
			holds: with(func(b *Budget) { b.MemoryBytes, b.Calls = 1<<50, 2 })},
		{what: "the operator requires it", overlay: Budget{Required: true}, holds: with(func(b *Budget) { b.Required = true })},
		{what: "a number below zero", overlay: Budget{ResultBytes: -1}, refused: true},
	} {
		b := row.packaged
		sentence := b.overlay(row.overlay)
		if (sentence != "") != row.refused || !row.refused && b.Effective() != row.holds {
			t.Errorf("%s: %q %+v, want %+v", row.what, sentence, b.Effective(), row.holds)
		}
	}
	asked := Budget{}
	asked.Effective()
	if asked != (Budget{}) {
		t.Error("what nobody asked for is taken for asked")
	}
}
