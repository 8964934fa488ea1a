package loginitem

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/coded"
)

// desk is a home with an installed program.
type desk struct {
	t    *testing.T
	item Item
	at   file
	as   form
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	home := t.TempDir()
	d := &desk{t: t, as: desktopEntry, at: file{"XDG autostart", filepath.Join(home, ".config", "autostart", Name+".desktop")}}
	d.item = Item{Home: home, Program: filepath.Join(home, "apps", "sallyport"), Args: []string{"serve"}, Temps: []string{filepath.Join(home, "tmp")}}
	d.program(d.item.Program)
	return d
}

func (d *desk) program(path string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("a program"), 0o755); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) state() State {
	d.t.Helper()
	s, err := d.item.status(d.at, d.as)
	if err != nil {
		d.t.Fatal(err)
	}
	if strings.Contains(s.Where+s.Program, d.item.Home) {
		d.t.Errorf("the status %+v has the path of the home folder", s)
	}
	return s.State
}

func (d *desk) text() string {
	raw, err := os.ReadFile(d.at.path)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(raw)
}

func (d *desk) put(text string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.at.path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.at.path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) turn(on bool) error {
	act, err := d.item.prepare(on, d.at, d.as)
	if err != nil || act == nil {
		return err
	}
	return act()
}

func (d *desk) wants(err error, code string) {
	d.t.Helper()
	if coded.Of(err) != code {
		d.t.Errorf("it is %v, want %q", err, code)
	}
	if err != nil && strings.Contains(err.Error(), d.item.Home) {
		d.t.Errorf("the refusal has the path of the home folder: %v", err)
	}
	var said *coded.Error
	if errors.As(err, &said) && said.Next == "" {
		d.t.Errorf("%v says nothing to do next", err)
	}
}

func TestItIsOffUntilItIsTurnedOnAndTwiceIsOnce(t *testing.T) {
	d := newDesk(t)
	if got := d.state(); got != Off {
		t.Errorf("at first it is %s", got)
	}
	d.wants(d.turn(false), "")
	d.wants(d.turn(true), "")
	before := d.text()
	d.wants(d.turn(true), "")
	if d.text() != before || d.state() != On {
		t.Errorf("turned on twice it is %s with %q", d.state(), d.text())
	}
	d.wants(d.turn(false), "")
	d.wants(d.turn(false), "")
	left, err := os.ReadDir(filepath.Dir(d.at.path))
	if err != nil || len(left) != 0 || d.state() != Off {
		t.Errorf("turned off it is %s and leaves %v (%v)", d.state(), left, err)
	}
}

func TestWhatDriftedIsSaid(t *testing.T) {
	for _, row := range []struct {
		name  string
		drift func(*desk)
		want  State
	}{
		{"nothing happened", func(*desk) {}, On},
		{"the program is gone", func(d *desk) { _ = os.Remove(d.item.Program) }, Broken},
		{"it starts another program", func(d *desk) {
			other := filepath.Join(d.item.Home, "old", "sallyport")
			d.program(other)
			d.put(strings.ReplaceAll(d.text(), d.item.Program, other))
		}, Other},
		{"it starts another installation", func(d *desk) { d.item.Args = []string{"serve", "--home", "/srv/x"} }, Other},
		{"the desktop's settings turned it off", func(d *desk) { d.put(d.text() + "X-GNOME-Autostart-enabled=false\n") }, Paused},
		{"it is hidden", func(d *desk) { d.put(d.text() + "Hidden=true\n") }, Paused},
		{"a key was added", func(d *desk) { d.put(d.text() + "OnlyShowIn=GNOME;\n") }, On},
		{"another program's entry took the name", func(d *desk) { d.put("[Desktop Entry]\nExec=other\n") }, Foreign},
		{"the mark is in another group", func(d *desk) { d.put("[Other]\n" + desktopMark + "=true\n") }, Foreign},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t)
			d.wants(d.turn(true), "")
			row.drift(d)
			if got := d.state(); got != row.want {
				t.Errorf("it is %s, want %s", got, row.want)
			}
		})
	}
}

func TestTurningOnMendsWhatDrifted(t *testing.T) {
	d := newDesk(t)
	d.wants(d.turn(true), "")
	want := d.text()
	d.put(strings.ReplaceAll(want, "Exec=", "Exec=env X=1 ") + "Hidden=true\n")
	d.wants(d.turn(true), "")
	if d.text() != want {
		t.Errorf("it is now %q", d.text())
	}
}

func TestWhatIsNotOursIsNeverTouched(t *testing.T) {
	for _, row := range []struct {
		name string
		make func(*desk)
	}{
		{"another program's entry", func(d *desk) { d.put("[Desktop Entry]\nName=Sallyport\nExec=other\n") }},
		{"an empty file", func(d *desk) { d.put("") }},
		{"a link to what would be ours", func(d *desk) {
			d.put(string(d.as.render(d.item.command())))
			aside := d.at.path + ".mine"
			if err := errors.Join(os.Rename(d.at.path, aside), os.Symlink(aside, d.at.path)); err != nil {
				d.t.Fatal(err)
			}
		}},
		{"a folder", func(d *desk) {
			if err := os.MkdirAll(d.at.path, 0o755); err != nil {
				d.t.Fatal(err)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t)
			row.make(d)
			before, _ := os.Lstat(d.at.path)
			d.wants(d.turn(true), "autostart-foreign")
			d.wants(d.turn(false), "autostart-foreign")
			if got := d.state(); got != Foreign {
				t.Errorf("it is %s", got)
			}
			after, err := os.Lstat(d.at.path)
			if err != nil || !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
				t.Errorf("it was touched: %v, %v", after, err)
			}
		})
	}
}

func TestAProgramThatWillNotStayIsRefused(t *testing.T) {
	for _, row := range []struct {
		name string
		path func(home string) string
	}{
		{"in a temporary folder", func(home string) string { return filepath.Join(home, "tmp", "x", "sallyport") }},
		{"in the cache of the Go command", func(home string) string { return filepath.Join(home, "go-build123", "b001", "sallyport") }},
		{"from a copy that macOS throws away", func(home string) string {
			return filepath.Join(home, "AppTranslocation", "1-2", "Sallyport.app", "Contents", "MacOS", "sallyport")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t)
			d.item.Program = row.path(d.item.Home)
			d.program(d.item.Program)
			d.wants(d.turn(true), "autostart-place-refused")
			if got := d.state(); got != Off {
				t.Errorf("it is %s", got)
			}
		})
	}
	d := newDesk(t)
	for name, program := range map[string]string{
		"a program that was removed": filepath.Join(d.item.Home, "apps", "sallyport (deleted)"), "a folder": d.item.Home,
		"a path that is not whole": "sallyport", "a path of two lines": d.item.Program + "\nX=1", "none": "",
	} {
		d.item.Program = program
		t.Log(name)
		d.wants(d.turn(true), "autostart-place-refused")
	}
	whole := newDesk(t)
	whole.item.Args = []string{"serve", "--home", "/home/ada/x\nExec=evil"}
	t.Log("a data folder of two lines, which would be two lines of the item")
	whole.wants(whole.turn(true), "autostart-place-refused")
	hidden := filepath.Join(d.item.Home, "tmp", "sallyport")
	d.program(hidden)
	link := filepath.Join(d.item.Home, "apps", "link")
	if err := os.Symlink(hidden, link); err != nil {
		t.Fatal(err)
	}
	d.item.Program = link
	t.Log("a link into a temporary folder")
	d.wants(d.turn(true), "autostart-place-refused")
	if (Item{Home: "/home/ada"}).passing("/Volumes/Sallyport/Sallyport.app/Contents/MacOS/sallyport") == "" {
		t.Error("a disk image is taken for a place that stays")
	}
	for _, place := range []string{"/tmp/x", "/var/tmp/x", "/private/var/folders/ab/x", "/home/ada/.cache/x", "/home/ada/.local/share/Trash/files/x"} {
		if (Item{Home: "/home/ada"}).passing(place) == "" {
			t.Errorf("%s is taken for a place that stays", place)
		}
	}
	for _, place := range []string{"/usr/bin/sallyport", "/home/ada/bin/sallyport", "/Applications/Sallyport.app/Contents/MacOS/sallyport", "/home/ada/tmpfiles/x"} {
		if why := (Item{Home: "/home/ada"}).passing(place); why != "" {
			t.Errorf("%s is refused: %s", place, why)
		}
	}
}

// TestEverySystemReadsWhatItWrites: in each form a program of any name comes back as it
// was, and another's text is nobody's.
func TestEverySystemReadsWhatItWrites(t *testing.T) {
	programs := []string{"/usr/bin/sallyport", "/home/ada/my apps/sallyport", `/opt/a"b/sallyport`, "/opt/50%/sally$port`x", `/opt/back\slash/sallyport`,
		"/opt/a'b&c<d>/sallyport", "/Applications/Sallyport.app/Contents/MacOS/sallyport", "/home/ünï/漢字/sallyport"}
	windows := []string{`C:\Program Files\Sallyport\sallyport.exe`, `C:\Users\ada\AppData\Local\Programs\sallyport.exe`, `D:\Sallyport Headless.exe`}
	for name, row := range map[string]struct {
		as       form
		programs []string
	}{"macOS": {launchAgent, programs}, "Linux": {desktopEntry, programs}, "Windows": {runValue, windows}} {
		for _, program := range row.programs {
			for _, args := range [][]string{{"serve"}, {"serve", "--home", `/srv/my home`}, {"serve", "--home", `C:\my home\`}} {
				c := command{program: program, args: args}
				text := row.as.render(c)
				got, ours := row.as.read(text)
				if !ours || !got.same(c) || got.paused {
					t.Errorf("%s: %q %q comes back as %q %q (ours %v) from\n%s", name, program, args, got.program, got.args, ours, text)
				}
			}
		}
		for _, other := range []string{"", "x", "<plist/>", "[Desktop Entry]\nExec=/usr/bin/sallyport serve\n", `"C:\other.exe" serve`, `"C:\sallyport.exe" uninstall`} {
			if _, ours := row.as.read([]byte(other)); ours {
				t.Errorf("%s: %q is taken for ours", name, other)
			}
		}
	}
	if c, ours := readAgent([]byte(strings.Replace(string(renderAgent(command{program: "/x"})), "<true/>", "<false/>", 1))); !ours || !c.paused {
		t.Error("a LaunchAgent that is not loaded is not seen to be turned off")
	}
}

func TestWithoutAHomeNothingIsGuessed(t *testing.T) {
	if err := (Item{Program: "/usr/bin/sallyport"}).checkHome(); coded.Of(err) != "autostart-unavailable" {
		t.Errorf("it is %v", err)
	}
}

func FuzzReading(f *testing.F) {
	c := command{program: "/usr/bin/sallyport", args: []string{"serve"}}
	for _, as := range []form{launchAgent, desktopEntry, runValue} {
		f.Add(as.render(c))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, as := range []form{launchAgent, desktopEntry, runValue} {
			if c, ours := as.read(text); !ours && (c.program != "" || slices.Contains(c.args, "serve")) {
				t.Errorf("%q is not ours and starts %q", text, c.program)
			}
		}
	})
}
