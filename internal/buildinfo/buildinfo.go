// Package buildinfo says which version this program is, from which commit, of which
// time.
//
// The one idea: the three are one string, put in by the linker (scripts/version
// ldflags), so that they can also be read out of a program's file without running it,
// whatever system it is for. A program that nobody stamped says "dev", with what the
// Go command knows of the commit. main and whoever checks packages import it.
package buildinfo

import (
	"bytes"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// Info is what a program says of itself.
type Info struct {
	Version string // three numbers, perhaps with -rc.1; or "dev"
	Commit  string // in full; with "-dirty" where files were changed; "" if unknown
	Date    string // of the commit, RFC 3339; "" if unknown
}

// Short is the commit as people write it, "" if unknown.
func (i Info) Short() string {
	id, dirty := strings.CutSuffix(i.Commit, "-dirty")
	id = id[:min(len(id), 12)]
	if dirty {
		id += "-dirty"
	}
	return id
}

// stamp is written by the linker and by nobody else:
// "sallyport-build,VERSION,COMMIT,DATE,".
var stamp string

// form is that of a stamp. The date is what tells it from the sentence above.
var form = regexp.MustCompile(`sallyport-build,([0-9A-Za-z.+-]{1,64}),([0-9a-z-]{1,64}),([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z),`)

// Read returns what this program is.
func Read() Info {
	if info, ok := parse([]byte(stamp)); ok {
		return info
	}
	info := Info{Version: "dev"}
	if build, ok := debug.ReadBuildInfo(); ok {
		info = unstamped(build.Settings)
	}
	return info
}

// unstamped is what the Go command says of the commit. Its own idea of a version is
// left: it names commits that were never released.
func unstamped(settings []debug.BuildSetting) Info {
	info := Info{Version: "dev"}
	dirty := false
	for _, setting := range settings {
		switch setting.Key {
		case "vcs.revision":
			info.Commit = setting.Value
		case "vcs.time":
			info.Date = setting.Value
		case "vcs.modified":
			dirty = setting.Value == "true"
		}
	}
	if dirty && info.Commit != "" {
		info.Commit += "-dirty"
	}
	return info
}

// Find returns the stamp in a program's bytes. One that has two different ones (two
// halves of a universal program that do not belong together) has none.
func Find(program []byte) (Info, bool) {
	var found Info
	some := false
	for {
		at := bytes.Index(program, []byte("sallyport-build,"))
		if at < 0 {
			return found, some
		}
		program = program[at:]
		if info, ok := parse(program[:min(len(program), 256)]); ok {
			if some && info != found {
				return Info{}, false
			}
			found, some = info, true
		}
		program = program[1:]
	}
}

// parse reads a stamp at the start of data.
func parse(data []byte) (Info, bool) {
	at := form.FindSubmatchIndex(data)
	if at == nil || at[0] != 0 {
		return Info{}, false
	}
	info := Info{Version: string(data[at[2]:at[3]]), Commit: string(data[at[4]:at[5]]), Date: string(data[at[6]:at[7]])}
	if _, err := time.Parse(time.RFC3339, info.Date); err != nil {
		return Info{}, false
	}
	if strings.TrimSuffix(info.Commit, "-dirty") == "none" {
		info.Commit = ""
	}
	return info, true
}
