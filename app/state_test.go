package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheWindowComesBackWhereItWas(t *testing.T) {
	dir := t.TempDir()
	if got := readFrame(dir); got != usual() {
		t.Errorf("the first window is %+v", got)
	}
	want := frame{Width: 900, Height: 600, X: -1200, Y: 40, Placed: true, Maximised: true}
	if err := want.keep(dir); err != nil {
		t.Fatal(err)
	}
	if got := readFrame(dir); got != want {
		t.Errorf("kept %+v, read %+v", want, got)
	}
	if info, err := os.Stat(filepath.Join(dir, frameFile)); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestWhatIsNoFrameIsIgnored(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "torn": `{"width":900,"hei`, "another document behind it": `{"width":900,"height":600}{}`,
		"a list": `[900,600]`, "text as a number": `{"width":"900","height":600}`, "a field of nobody's": `{"width":900,"height":600,"run":"sh"}`,
		"too small": `{"width":10,"height":10}`, "too large": `{"width":100000,"height":600}`, "negative": `{"width":-900,"height":-600}`,
		"a fraction": `{"width":900.5,"height":600}`, "a megabyte": `{"width":900,"height":600` + strings.Repeat(" ", 1<<20) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, frameFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := readFrame(dir); got != usual() {
				t.Errorf("read as %+v", got)
			}
		})
	}
}

func TestAWindowIsPutOnAScreen(t *testing.T) {
	for name, row := range map[string]struct{ f, want frame }{
		"inside":               {frame{900, 600, 100, 100, true, false}, frame{900, 600, 100, 100, true, false}},
		"larger than it":       {frame{3000, 2000, 0, 0, true, false}, frame{1400, 900, 0, 0, true, false}},
		"on one that is gone":  {frame{900, 600, 2000, 100, true, false}, frame{900, 600, 0, 0, false, false}},
		"below it":             {frame{900, 600, 100, 880, true, false}, frame{900, 600, 0, 0, false, false}},
		"with its title above": {frame{900, 600, 100, -30, true, false}, frame{900, 600, 0, 0, false, false}},
		"left of it":           {frame{900, 600, -890, 10, true, false}, frame{900, 600, 0, 0, false, false}},
	} {
		if got := row.f.on(1400, 900); got != row.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	f := frame{900, 600, 5000, 5000, true, false}
	if got := f.on(0, 0); got != f {
		t.Errorf("without a screen to be seen it is %+v", got)
	}
}
