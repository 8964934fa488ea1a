package main

import (
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/buildinfo"
)

// stamp says which version the program in a file is, of whatever system it is.
func stamp(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errUsage
	}
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	info, ok := buildinfo.Find(content)
	if !ok {
		return fmt.Errorf("%s does not say one version", args[0])
	}
	_, err = fmt.Fprintln(out, info.Version, info.Commit, info.Date)
	return err
}

// newestGlibc is that of the oldest system which the desktop package is for (Ubuntu
// 22.04).
const newestGlibc = "2.35"

// libraries are the packages that the libraries of a window come with: gtk and webkit
// depend on the others, on every system that the packages are for.
func libraries() map[string]string {
	return map[string]string{
		"libgtk-3.so.0": "gtk", "libgdk-3.so.0": "gtk", "libgdk_pixbuf-2.0.so.0": "gtk", "libcairo.so.2": "gtk", "libcairo-gobject.so.2": "gtk",
		"libpango-1.0.so.0": "gtk", "libpangocairo-1.0.so.0": "gtk", "libharfbuzz.so.0": "gtk", "libatk-1.0.so.0": "gtk",
		"libgio-2.0.so.0": "gtk", "libgobject-2.0.so.0": "gtk", "libglib-2.0.so.0": "gtk", "libgmodule-2.0.so.0": "gtk", "libz.so.1": "gtk",
		"libwebkit2gtk-4.1.so.0": "webkit", "libjavascriptcoregtk-4.1.so.0": "webkit", "libsoup-3.0.so.0": "webkit",
		"libc.so.6": "libc", "libm.so.6": "libc", "libpthread.so.0": "libc", "libdl.so.2": "libc", "libresolv.so.2": "libc", "ld-linux-x86-64.so.2": "libc",
	}
}

// checkLibraries compares what a program for Linux is linked to with what its package
// depends on: nothing for "static", gtk, webkit and libc for "desktop".
func checkLibraries(args []string, out io.Writer) error {
	if len(args) != 2 || args[0] != "static" && args[0] != "desktop" {
		return errUsage
	}
	f, err := elf.Open(args[1])
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	symbols, err := f.ImportedSymbols()
	if err != nil && len(needed) > 0 {
		return err
	}
	if args[0] == "static" {
		if len(needed) > 0 {
			return fmt.Errorf("%s needs %s, and should need nothing", args[1], strings.Join(needed, ", "))
		}
		_, err := fmt.Fprintln(out, args[1], "needs no library")
		return err
	}
	return desktopLibraries(args[1], needed, symbols, out)
}

func desktopLibraries(name string, needed []string, symbols []elf.ImportedSymbol, out io.Writer) error {
	from := map[string]bool{}
	for _, library := range needed {
		pkg, ok := libraries()[library]
		if !ok {
			return fmt.Errorf("%s needs %s, which comes with no package that ours depends on", name, library)
		}
		from[pkg] = true
	}
	if !maps.Equal(from, map[string]bool{"gtk": true, "webkit": true, "libc": true}) {
		return fmt.Errorf("%s needs %v, and should need gtk, webkit and libc", name, slices.Sorted(maps.Keys(from)))
	}
	newest := "0"
	for _, symbol := range symbols {
		if version, ok := strings.CutPrefix(symbol.Version, "GLIBC_"); ok && newer(version, newest) {
			newest = version
		}
	}
	if newer(newest, newestGlibc) {
		return fmt.Errorf("%s needs glibc %s, and the oldest system that it is for has %s", name, newest, newestGlibc)
	}
	_, err := fmt.Fprintf(out, "%s needs %d libraries, glibc %s\n", name, len(needed), newest)
	return err
}

// newer compares versions like 2.34.
func newer(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	return slices.CompareFunc(x, y, func(p, q string) int {
		m, _ := strconv.Atoi(p)
		n, _ := strconv.Atoi(q)
		return m - n
	}) > 0
}
