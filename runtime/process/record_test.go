//go:build !windows

package process

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"sallyport/runtime/plugins"
)

func FuzzParseRecord(f *testing.F) {
	f.Add(`{"version":1,"children":[{"connector":"a/b","pid":7,"start":9,"boot":"x","executable":"/bin/x","data":"/d"}]}`)
	f.Add(`{"version":1,"children":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parseRecord([]byte(text))
		if err != nil {
			return
		}
		again, err := json.Marshal(document{Version: recordVersion, Children: entries})
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parseRecord(again); err != nil || len(back) != len(entries) {
			t.Fatalf("%q was read, and not what was written of it: %v", text, err)
		}
	})
}

func TestARecordThatIsMoreOrLessThanOneDocumentIsNotRead(t *testing.T) {
	const whole = `{"version":1,"children":[]}`
	if _, err := parseRecord([]byte(whole + "\n ")); err != nil {
		t.Fatal(err)
	}
	for _, behind := range []string{`}`, `]`, `]}`, `{}`, `tale":true}}`, "\x00", whole} {
		if _, err := parseRecord([]byte(whole + behind)); err == nil {
			t.Errorf("a record with %q behind it was read", behind)
		}
	}
	for n := range len(whole) {
		if _, err := parseRecord([]byte(whole[:n])); err == nil {
			t.Errorf("a record cut at %d was read", n)
		}
	}
}

func TestNoDescriptorIsLeftBehind(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	m := newManager(t, nil)
	round := func(n int) {
		l := childLaunch(t, "polite")
		l.ID = plugins.ID{Plugin: "p", Server: string(rune('a' + n))}
		c := start(t, m, l)
		firstLine(t, c)
		c.Stop(context.Background(), nil)
		c.Stdout().Close()
		l.Executable.SHA256 = "0"
		if _, err := m.start(context.Background(), l); err == nil {
			t.Fatal("the wrong program started")
		}
	}
	round(0)
	before := count()
	for n := range 10 {
		round(n)
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
