package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
)

// The test's own binary is the browser: it writes down what it was given.
func TestMain(m *testing.M) {
	if file := os.Getenv("BROWSER_TEST_FILE"); file != "" {
		if err := os.WriteFile(file+".part", []byte(strings.Join(os.Args[1:], "\n")), 0o600); err == nil {
			_ = os.Rename(file+".part", file)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestABrowserGetsTheAddressAsOneArgument(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "asked")
	opener := Opener{Program: []string{self, "--fixed"}, Environ: append(os.Environ(), "BROWSER_TEST_FILE="+file)}
	const address = "https://login.example.com/authorize?a=1&b=%27--help"
	if err := opener.Open(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if got, err := os.ReadFile(file); err == nil {
			if string(got) != "--fixed\n"+address {
				t.Fatalf("it was given %q", got)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was opened")
		}
	}
}

func TestWhatABrowserIsNotGiven(t *testing.T) {
	opener := Opener{Program: []string{filepath.Join(t.TempDir(), "absent")}}
	for _, address := range []string{
		"", "file:///etc/passwd", "javascript:alert(1)", "http://login.example.com/", "http://10.0.0.7/", "https://u:p@example.com/",
		"--help", "-https://example.com/", "https:example.com", "https://example.com/$(id)", "https://example.com/`id`", "https://example.com/ --x",
		"https://example.com/\nx", "https://example.com/|calc", "https://example.com/;x", "smb://host/share", "https://bücher.example/",
	} {
		if err := opener.Open(t.Context(), address); coded.Of(err) != "oauth-address-refused" {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"https://example.com/a?b=c&d=%27", "http://127.0.0.1:8080/authorize", "http://localhost/x", "http://[::1]:1/"} {
		if err := opener.Open(t.Context(), address); coded.Of(err) != "browser-unavailable" {
			t.Errorf("%q: %v", address, err)
		}
	}
}
