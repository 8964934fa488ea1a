package host

import (
	"regexp"
	"testing"
)

// TestALineOfTheLogForStrangers: what it is about stays; paths, addresses, what could be a
// credential and every attribute that is not on the list go.
func TestALineOfTheLogForStrangers(t *testing.T) {
	for in, want := range map[string]string{
		`time=2026-11-30T21:00:00.123Z level=INFO msg="server started" connector=notes/main`: `time=2026-11-30T21:00:00.123Z level=INFO msg="server started" connector=notes/main`,
		`time=2026-11-30T21:00:00.123+01:00 level=WARN msg=x seconds=3`:                      `time=2026-11-30T21:00:00.123+01:00 level=WARN msg=x seconds=3`,
		`msg=x error="open /home/ada/My Files/a b: permission denied"`:                       `msg=x error="open (path): permission denied"`,
		`msg=x error="open C:\\Users\\ada\\x y: no"`:                                         `msg=x error="open (path): no"`,
		`msg=x error="rename ~/a /tmp/b"`:                                                    `msg=x error="rename (path)"`,
		`msg=x error="open /Users/ada/Ada's files/tax: permission denied"`:                   `msg=x error="open (path): permission denied"`,
		`msg=x error="open /home/ada/10:30/minutes: no such file"`:                           `msg=x error="open (path): no such file"`,
		`msg=x error="stat {/home/ada/x} or;/home/eve/y: no"`:                                `msg=x error="stat {(path): no"`,
		`msg=x error="fork/exec \"/home/ada/b c\": no such file"`:                            `msg=x error="fork/exec \"(path): no such file"`,
		`msg=x error="the server answered with error -32000: key hunter2 is wrong"`:          `msg=x error="the server answered with error -32000 (left out)"`,
		`msg=x error="read and/or write: 3/4"`:                                               `msg=x error="read and/or write: 3/4"`,
		`msg=x error="Get \"https://u:p@example.com/?key=abc\": EOF"`:                        `msg=x error="Get \"(address)\": EOF"`,
		`msg=x error="token ghp_A1b2C3d4E5f6G7h8I9j0K1l2 refused"`:                           `msg=x error="token (…) refused"`,
		`msg=x text="what the server wrote" secret=NOTES target=delete_note file=x`:          `msg=x text="(left out)" secret="(left out)" target="(left out)" file="(left out)"`,
		`msg=x digest=a1:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef`:   `msg=x digest=a1:(…)`,
		`msg=x something-new=value`:                                                          `msg=x something-new="(left out)"`,
	} {
		if got, ok := scrubLine(in); !ok || got != want {
			t.Errorf("%s\nbecomes %s\nand not %s", in, got, want)
		}
	}
	for _, in := range []string{"", "panic: runtime error: /home/ada", "goroutine 1 [running]:", `msg="never ends`, "/home/ada/x.go:12 +0x1b", "a b=c"} {
		if got, ok := scrubLine(in); ok {
			t.Errorf("%q becomes %q and is no line of the log", in, got)
		}
	}
}

func FuzzScrubbing(f *testing.F) {
	f.Add(`msg=x error="open /home/ada/x: no"`)
	f.Add(`msg=x error="open </home/ada/x: no"`)
	path := regexp.MustCompile(`(^|[^\pL\pN_.~])/home/ada/`)
	f.Fuzz(func(t *testing.T, line string) {
		if out, ok := scrubLine(line); ok && path.MatchString(out) {
			t.Errorf("%q becomes %q", line, out)
		}
	})
}
