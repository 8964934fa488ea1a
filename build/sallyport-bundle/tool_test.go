package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"debug/elf"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/buildinfo"
	"sallyport/runtime/updates"
)

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestManifestNamesEveryPackageAndIsSigned(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"sallyport-1.2.0-linux-amd64.deb", "sallyport-headless-1.2.0-linux-amd64.deb", "sallyport-headless-1.2.0-linux-arm64.tar.gz",
		"sallyport-headless-1.2.0-macos-universal.zip", "sallyport-1.2.0-windows-amd64-installer.exe", "SHA256SUMS", "sallyport-companion-1.2.0.tgz",
	} {
		write(t, filepath.Join(dir, name), []byte(name))
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := write(t, filepath.Join(t.TempDir(), "key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	args := []string{"-version", "1.2.0", "-date", "1764500000", "-url", "https://dl.example.com/1.2.0/", "-notes", "https://example.com", "-key", key, dir}
	var out bytes.Buffer
	if err := announce(args, &out); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "update.json"))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := os.ReadFile(filepath.Join(dir, "update.json.sig"))
	if err != nil {
		t.Fatal(err)
	}
	if err := updates.Verify([]ed25519.PublicKey{public}, raw, signature); err != nil {
		t.Error(err)
	}
	m, err := updates.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range m.Files {
		got = append(got, file.OS+" "+file.Arch+" "+file.Kind)
	}
	want := "windows amd64 installer.exe; linux amd64 deb; linux amd64 headless-deb; linux arm64 headless-tar.gz; darwin universal headless-zip"
	if len(got) != 5 || strings.Count(want, "; ") != 4 {
		t.Errorf("names %v", got)
	}
	for _, one := range got {
		if !strings.Contains(want, one) {
			t.Errorf("names %q", one)
		}
	}
	if m.Files[0].URL != "https://dl.example.com/1.2.0/sallyport-1.2.0-linux-amd64.deb" {
		t.Errorf("the first lies at %s", m.Files[0].URL)
	}
}

func TestManifestOfTwoVersionsIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sallyport-1.1.0-linux-amd64.deb"), nil)
	if err := announce([]string{"-version", "1.2.0", "-url", "https://dl.example.com", "-notes", "https://example.com", dir}, &bytes.Buffer{}); err == nil {
		t.Error("it is written")
	}
}

func TestKeysOfOtherKindsAreRefused(t *testing.T) {
	for name, content := range map[string][]byte{
		"no PEM": []byte("hello"), "no PKCS #8": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}),
	} {
		if _, err := privateKey(content); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestProgramOfAWindowNeedsOnlyWhatItsPackageDependsOn(t *testing.T) {
	whole := []string{"libgtk-3.so.0", "libwebkit2gtk-4.1.so.0", "libc.so.6"}
	symbol := func(version string) []elf.ImportedSymbol { return []elf.ImportedSymbol{{Version: "GLIBC_" + version}} }
	for _, row := range []struct {
		name    string
		needed  []string
		symbols []elf.ImportedSymbol
		ok      bool
	}{
		{"what it should", whole, symbol("2.34"), true},
		{"a library that nobody brings", append([]string{"libX11.so.6"}, whole...), nil, false},
		{"no webkit", []string{"libgtk-3.so.0", "libc.so.6"}, nil, false},
		{"the older webkit", []string{"libgtk-3.so.0", "libwebkit2gtk-4.0.so.37", "libc.so.6"}, nil, false},
		{"a newer libc than Ubuntu 22.04 has", whole, symbol("2.36"), false},
		{"a libc with one digit more", whole, symbol("2.4"), true},
	} {
		if err := desktopLibraries("program", row.needed, row.symbols, &bytes.Buffer{}); (err == nil) != row.ok {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestWindowsHasFourNumbersForAVersion(t *testing.T) {
	for text, want := range map[string][4]uint16{"1.2.3": {1, 2, 3}, "1.20.3-rc.1": {1, 20, 3}} {
		if got := numbers(text); got != want {
			t.Errorf("%s is %v", text, got)
		}
	}
}

func TestResourcesCanBeMadeOfEveryStamp(t *testing.T) {
	set, err := resourcesOf(buildinfo.Info{Version: "1.2.3-rc.1", Date: "2026-11-30T20:00:00Z"})
	if err != nil || set.Count() < 3 {
		t.Errorf("has %d resources: %v", set.Count(), err)
	}
	if err := windowsProblem([]byte("MZ"), "1.2.3", false); err == nil {
		t.Error("what is no program is one")
	}
}
