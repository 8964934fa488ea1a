package loopback

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sallyport/internal/coded"
)

// start listens with the given state folder and returns the port and notes; the
// listener is closed at once, as if the service had ended.
func start(t *testing.T, dir string) (int, []Note) {
	t.Helper()
	ln, notes, err := Listen(Config{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if host, _, _ := net.SplitHostPort(ln.Addr().String()); host != "127.0.0.1" {
		t.Errorf("bound to %s, want 127.0.0.1 only", host)
	}
	return Port(ln), notes
}

func savedPort(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, portFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func kinds(notes []Note) string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Kind)
	}
	return strings.Join(all, " ")
}

// occupy listens as another program would.
func occupy(t *testing.T, network, address string) int {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return Port(ln)
}

func TestPortIsKeptFromStartToStart(t *testing.T) {
	dir := t.TempDir()
	first, notes := start(t, dir)
	if len(notes) != 0 {
		t.Errorf("first start has notes: %v", notes)
	}
	if got := savedPort(t, dir); got != strconv.Itoa(first)+"\n" {
		t.Errorf("saved %q, bound %d", got, first)
	}
	for range 3 {
		again, notes := start(t, dir)
		if again != first || len(notes) != 0 {
			t.Errorf("later start: port %d with %v, want %d without notes", again, notes, first)
		}
	}
	info, err := os.Stat(filepath.Join(dir, portFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf("port file is %v, want its owner's alone", info.Mode())
	}
}

func TestFirstPortIsOutsideTheRangesOfOutgoingConnections(t *testing.T) {
	port, _ := start(t, t.TempDir())
	if port < lowestChoice || port >= highestChoice {
		t.Errorf("first choice is %d, want %d to %d", port, lowestChoice, highestChoice)
	}
}

func TestPortTakenByAStrangerIsReplacedAndTheNewOneKept(t *testing.T) {
	dir := t.TempDir()
	taken := occupy(t, "tcp4", "127.0.0.1:0")
	writePort(t, dir, strconv.Itoa(taken)+"\n")

	port, notes := start(t, dir)
	if port == taken || kinds(notes) != PortChanged {
		t.Fatalf("port %d with %v, want another one and %s", port, notes, PortChanged)
	}
	if notes[0].Old != taken || notes[0].Port != port {
		t.Errorf("note says %d to %d, want %d to %d", notes[0].Old, notes[0].Port, taken, port)
	}
	if again, notes := start(t, dir); again != port || len(notes) != 0 {
		t.Errorf("next start: port %d with %v, want the new one kept", again, notes)
	}
}

// C67.
func TestSavedValueThatIsNoPortIsReplacedWithANote(t *testing.T) {
	tests := map[string]string{
		"zero":              "0",
		"negative":          "-1",
		"plus sign":         "+8080",
		"above 65535":       "99999",
		"beyond an int":     "99999999999999999999",
		"privileged":        "80",
		"quoted":            `"8080"`,
		"fraction":          "8080.5",
		"exponent":          "8e3",
		"word":              "abc",
		"not a number":      "NaN",
		"empty":             "",
		"only a line end":   "\n",
		"two lines":         "8080\n8081\n",
		"blank before":      " 8080",
		"leading zero":      "08080",
		"NUL after":         "8080\x00",
		"half a megabyte":   strings.Repeat("8", 1<<19),
		"other digits":      "٨٠٨٠",
		"byte order mark":   "\ufeff8080",
		"JSON":              `{"port":8080}`,
		"underscore":        "8_080",
		"hexadecimal":       "0x1F90",
		"carriage returns":  "8080\r\r\n",
		"blank line before": "\n8080",
	}
	for name, value := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writePort(t, dir, value)
			port, notes := start(t, dir)
			if kinds(notes) != PortValueBad || notes[0].Port != port {
				t.Errorf("notes %v, want one %s about port %d", notes, PortValueBad, port)
			}
			if got := savedPort(t, dir); got != strconv.Itoa(port)+"\n" {
				t.Errorf("saved %.40q, bound %d", got, port)
			}
			if again, notes := start(t, dir); again != port || len(notes) != 0 {
				t.Errorf("next start: port %d with %v, want %d without notes", again, notes, port)
			}
		})
	}
}

func TestSavedValueWithALineEndOfAnySystemIsRead(t *testing.T) {
	for _, end := range []string{"", "\n", "\r\n"} {
		if port, err := parsePort("8080" + end); port != 8080 || err != nil {
			t.Errorf("parsePort(%q) = %d, %v", "8080"+end, port, err)
		}
	}
}

func TestPortFileThatCannotBeAFileIsNotedAndServingGoesOn(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, portFile, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, notes := start(t, dir)
	if kinds(notes) != PortValueBad+" "+PortUnsaved {
		t.Errorf("notes %v, want %s and %s", notes, PortValueBad, PortUnsaved)
	}
	for _, n := range notes {
		if strings.Contains(n.Text, dir) {
			t.Errorf("note %q shows an absolute path", n.Text)
		}
	}
}

func TestWantedPortIsTakenAndSaved(t *testing.T) {
	dir := t.TempDir()
	free, _ := start(t, t.TempDir())
	ln, notes, err := Listen(Config{StateDir: dir, Want: free})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if Port(ln) != free || len(notes) != 0 || savedPort(t, dir) != strconv.Itoa(free)+"\n" {
		t.Errorf("bound %d, saved %q, notes %v; want %d", Port(ln), savedPort(t, dir), notes, free)
	}
}

func TestWantedPortThatCannotBeHadIsRefusedAndTheKeptOneStays(t *testing.T) {
	tests := []struct {
		name string
		want int
		code string
	}{
		{"another program has it", occupy(t, "tcp4", "127.0.0.1:0"), "port-taken"},
		{"it is privileged", 80, "port-out-of-range"},
		{"it is negative", -1, "port-out-of-range"},
		{"it is above 65535", 99999, "port-out-of-range"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			writePort(t, dir, "23456\n")
			if _, _, err := Listen(Config{StateDir: dir, Want: tt.want}); coded.Of(err) != tt.code {
				t.Errorf("error %v, want code %s", err, tt.code)
			}
			if got := savedPort(t, dir); got != "23456\n" {
				t.Errorf("saved %q, want it untouched", got)
			}
		})
	}
}

// C66.
func TestTwinOnTheIPv6AddressIsNoticed(t *testing.T) {
	probe, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		if twinTaken(23456) {
			t.Error("without IPv6 a twin was seen")
		}
		return
	}
	probe.Close()
	dir := t.TempDir()
	taken := occupy(t, "tcp6", "[::1]:0")
	writePort(t, dir, strconv.Itoa(taken)+"\n")
	port, notes := start(t, dir)
	if port != taken || kinds(notes) != PortTwin {
		t.Errorf("port %d with %v, want %d and %s", port, notes, taken, PortTwin)
	}
}

func writePort(t *testing.T, dir, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, portFile), []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
}

func FuzzParsePort(f *testing.F) {
	for _, seed := range []string{"", "0", "8080", "8080\n", "8080\r\n", "-1", "99999", "\"8080\"", "8080.5", "1024", "65535"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		port, err := parsePort(text)
		if err != nil {
			return
		}
		if port < LowestPort || port > HighestPort {
			t.Errorf("parsePort(%q) = %d, outside the range", text, port)
		}
		if line := strconv.Itoa(port); text != line && text != line+"\n" && text != line+"\r\n" {
			t.Errorf("parsePort(%q) = %d: two texts mean the same port", text, port)
		}
	})
}
