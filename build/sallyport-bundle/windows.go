package main

import (
	"bytes"
	"debug/pe"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tc-hib/winres"
	"github.com/tc-hib/winres/version"

	"sallyport/internal/appicon"
	"sallyport/internal/atomicfile"
	"sallyport/internal/buildinfo"
	"sallyport/internal/bundle"
)

// iconID is the one that Wails takes for its window.
const iconID = winres.ID(3)

// resources puts icon, manifest and version into a program for Windows. The version is
// the one that it is stamped with.
func resources(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errUsage
	}
	program, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	info, ok := buildinfo.Find(program)
	if !ok {
		return fmt.Errorf("%s does not say one version", args[0])
	}
	set, err := resourcesOf(info)
	if err != nil {
		return err
	}
	var with bytes.Buffer
	if err := set.WriteToEXE(&with, bytes.NewReader(program)); err != nil {
		return fmt.Errorf("cannot put resources into %s: %w", args[0], err)
	}
	if err := atomicfile.Write(args[0], with.Bytes(), 0o755); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, args[0], "has icon, manifest and version", info.Version)
	return err
}

func resourcesOf(info buildinfo.Info) (*winres.ResourceSet, error) {
	set := &winres.ResourceSet{}
	var images []image.Image
	for _, size := range []int{256, 128, 64, 48, 32, 24, 16} {
		images = append(images, appicon.Draw(size, false))
	}
	icon, err := winres.NewIconFromImages(images)
	if err != nil {
		return nil, err
	}
	if err := set.SetIcon(iconID, icon); err != nil {
		return nil, err
	}
	numbers := numbers(info.Version)
	set.SetManifest(winres.AppManifest{
		Identity:       winres.AssemblyIdentity{Name: bundle.ID, Version: numbers},
		Description:    "Sallyport",
		Compatibility:  winres.Win10AndAbove,
		ExecutionLevel: winres.AsInvoker, // never as administrator
		DPIAwareness:   winres.DPIPerMonitorV2,
		LongPathAware:  true, UseCommonControlsV6: true,
	})
	date, err := time.Parse(time.RFC3339, info.Date)
	if err != nil {
		return nil, err
	}
	said := version.Info{FileVersion: numbers, ProductVersion: numbers, Timestamp: date}
	for key, value := range map[string]string{
		version.ProductName: "Sallyport", version.FileDescription: "Runs agent plugins only as you approved them",
		version.CompanyName: "The Sallyport contributors", version.LegalCopyright: "Apache License 2.0",
		version.ProductVersion: info.Version, version.FileVersion: info.Version,
		version.InternalName: "sallyport", version.OriginalFilename: "sallyport.exe", version.Comments: info.Commit,
	} {
		if err := said.Set(version.LangDefault, key, value); err != nil {
			return nil, err
		}
	}
	set.SetVersionInfo(said)
	return set, nil
}

// numbers are the four that Windows has for a version; rc.1 and the like have none.
func numbers(text string) (out [4]uint16) {
	plain, _, _ := strings.Cut(text, "-")
	for i, part := range strings.SplitN(plain, ".", 4) {
		n, _ := strconv.ParseUint(part, 10, 16)
		out[i] = uint16(n)
	}
	return out
}

// checkWindows compares a program for Windows with what it should be.
func checkWindows(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("windows", flag.ContinueOnError)
	want := flags.String("version", "", "the version that it must be")
	window := flags.Bool("window", false, "it has a window and no console")
	if flags.Parse(args) != nil || flags.NArg() != 1 {
		return errUsage
	}
	name := flags.Arg(0)
	program, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := windowsProblem(program, *want, *window); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = fmt.Fprintln(out, name, "is as it should be")
	return err
}

func windowsProblem(program []byte, want string, window bool) error {
	f, err := pe.NewFile(bytes.NewReader(program))
	if err != nil {
		return errors.New("it is no program for Windows")
	}
	header, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok || f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		return errors.New("it is not for 64 bits of amd64")
	}
	if hasWindow := header.Subsystem == pe.IMAGE_SUBSYSTEM_WINDOWS_GUI; hasWindow != window {
		return fmt.Errorf("window instead of console is %v and should be %v", hasWindow, window)
	}
	stamp, ok := buildinfo.Find(program)
	if !ok || stamp.Version != want {
		return fmt.Errorf("it is stamped %q and should be %q", stamp.Version, want)
	}
	set, err := winres.LoadFromEXE(bytes.NewReader(program))
	if err != nil {
		return errors.New("it has no resources")
	}
	if _, err := set.GetIcon(iconID); err != nil {
		return errors.New("it has no icon")
	}
	manifest := set.Get(winres.RT_MANIFEST, winres.ID(1), winres.LCIDDefault)
	if !bytes.Contains(manifest, []byte("asInvoker")) {
		return errors.New("it has no manifest, or one that asks for an administrator")
	}
	said, err := version.FromBytes(set.Get(winres.RT_VERSION, winres.ID(1), winres.LCIDDefault))
	if err != nil {
		return errors.New("it has no version resource")
	}
	for _, table := range said.Table() {
		if (*table)[version.ProductVersion] != want || said.FileVersion != numbers(want) {
			return fmt.Errorf("its resource says %s, and its stamp %s", (*table)[version.ProductVersion], want)
		}
	}
	return nil
}

// ico writes the icon as installers want it.
func ico(args []string, _ io.Writer) error {
	if len(args) != 1 {
		return errUsage
	}
	return atomicfile.Write(args[0], appicon.ICO(256, false), 0o644)
}
