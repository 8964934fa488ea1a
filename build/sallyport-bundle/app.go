package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/appicon"
	"sallyport/internal/atomicfile"
	"sallyport/internal/bundle"
)

// makeApp puts a bundle together, packs it, and checks it.
func makeApp(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("app", flag.ContinueOnError)
	headless := flags.Bool("headless", false, "the program has no window")
	date := flags.Int64("date", 0, "seconds since 1970 for the archive")
	if flags.Parse(args) != nil || flags.NArg() < 3 {
		return errUsage
	}
	dir, archive := flags.Arg(0), flags.Arg(1)
	app := bundle.App{Headless: *headless}
	for _, name := range flags.Args()[2:] {
		program, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		app.Programs = append(app.Programs, program)
	}
	plist, err := os.ReadFile(filepath.Join("build", "darwin", "Info.plist"))
	if err != nil {
		return err
	}
	app.Plist = string(plist)
	if app.License, err = os.ReadFile("LICENSE"); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := app.Make(dir); err != nil {
		return err
	}
	if err := complain(bundle.Check(dir, bundle.Want{})); err != nil {
		return err
	}
	packed, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer packed.Close()
	if err := bundle.Zip(packed, dir, time.Unix(*date, 0)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s and %s\n", dir, archive)
	return packed.Close()
}

func checkApp(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	version := flags.String("version", "", "the version that it must be")
	archs := flags.String("archs", "", "the processors that it must be for")
	if flags.Parse(args) != nil || flags.NArg() != 1 {
		return errUsage
	}
	want := bundle.Want{Version: *version}
	if *archs != "" {
		want.Archs = strings.Split(*archs, ",")
	}
	if err := complain(bundle.Check(flags.Arg(0), want)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is as it should be\n", flags.Arg(0))
	return nil
}

// complain makes one error of all that is wrong.
func complain(problems []bundle.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	lines := make([]string, 0, len(problems))
	for _, problem := range problems {
		lines = append(lines, problem.String())
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}

// icons writes the icon as the desktops of Linux want it, below DIR/hicolor.
func icons(args []string, _ io.Writer) error {
	if len(args) != 1 {
		return errUsage
	}
	for _, size := range []int{16, 24, 32, 48, 64, 128, 256, 512} {
		dir := filepath.Join(args[0], "hicolor", fmt.Sprintf("%dx%d", size, size), "apps")
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // files of a package, which everybody reads
			return err
		}
		if err := atomicfile.Write(filepath.Join(dir, bundle.ID+".png"), appicon.PNG(size, false), 0o644); err != nil {
			return err
		}
	}
	return nil
}
