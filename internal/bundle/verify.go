package bundle

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"howett.net/plist"
)

// errUnsigned means that a program has no signature at all.
var errUnsigned = errors.New("it has no signature")

// verify compares a program for one kind of processor with its own signature, and
// with what lies beside it. Who signed is not asked: only a Mac knows whom it trusts.
func verify(program, infoPlist, resources []byte) error {
	at, err := find(program)
	if err != nil {
		return err
	}
	if at.signature == 0 {
		return errUnsigned
	}
	size := int(little.Uint32(program[at.signature+12:]))
	if size < 12 || at.dataOffset+size > len(program) {
		return errors.New("its signature is cut off")
	}
	directory, err := directoryOf(program[at.dataOffset : at.dataOffset+size])
	if err != nil {
		return err
	}
	return directory.compare(program[:at.dataOffset], infoPlist, resources)
}

// directory is a CodeDirectory: hashes of pages, and of slots before them.
type directory []byte

func (d directory) field(n int) int { return int(big.Uint32(d[4*n:])) }

// directoryOf finds it in a signature.
func directoryOf(blob []byte) (directory, error) {
	broken := errors.New("its signature cannot be read")
	if big.Uint32(blob) != magicSuper {
		return nil, broken
	}
	count := int(big.Uint32(blob[8:]))
	if count < 1 || count > 64 || 12+8*count > len(blob) {
		return nil, broken
	}
	for i := range count {
		if big.Uint32(blob[12+8*i:]) != slotDirectory {
			continue
		}
		from := int(big.Uint32(blob[16+8*i:]))
		if from < 0 || from+directorySize > len(blob) {
			return nil, broken
		}
		d := directory(blob[from:])
		if length := d.field(1); big.Uint32(d) != magicDirectory || length < directorySize || length > len(d) {
			return nil, broken
		}
		d = d[:d.field(1)]
		if d[36] != sha256.Size || d[37] != 2 || d[39] > 20 {
			return nil, errors.New("its signature is not of SHA-256")
		}
		first, last := d.field(4)-sha256.Size*d.field(6), d.field(4)+sha256.Size*d.field(7)
		if first < directorySize || last > len(d) {
			return nil, broken
		}
		return d, nil
	}
	return nil, broken
}

func (d directory) hash(slot int) []byte {
	from := d.field(4) + sha256.Size*slot
	return d[from : from+sha256.Size]
}

func (d directory) compare(code, infoPlist, resources []byte) error {
	page := 1 << d[39]
	if d.field(8) != len(code) || d.field(7) != (len(code)+page-1)/page {
		return errors.New("its signature covers another length")
	}
	for i := range d.field(7) {
		if sum := sha256.Sum256(code[i*page : min((i+1)*page, len(code))]); !bytes.Equal(sum[:], d.hash(i)) {
			return fmt.Errorf("it was changed after it was signed, at byte %d or after", i*page)
		}
	}
	for slot, beside := range map[int][]byte{slotInfo: infoPlist, slotResources: resources} {
		switch {
		case beside == nil:
		case d.field(6) < slot:
			return errors.New("its signature is that of a program alone, and not of this bundle")
		case !bytes.Equal(d.hash(-slot), hash(beside)):
			return errors.New("its signature is that of another Info.plist or seal")
		}
	}
	return nil
}

// verifySeal compares every file with the seal.
func verifySeal(contents fs.FS, seal []byte, executable string) error {
	var said struct {
		Files map[string]struct {
			Hash    []byte `plist:"hash2"`
			Nested  []byte `plist:"cdhash"`
			Symlink string `plist:"symlink"`
		} `plist:"files2"`
	}
	if _, err := plist.Unmarshal(seal, &said); err != nil {
		return errors.New("the seal cannot be read")
	}
	seen := 0
	err := fs.WalkDir(contents, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !sealed(name, executable) {
			return err
		}
		want, ok := said.Files[name]
		if !ok {
			return fmt.Errorf("%s came after the seal", name)
		}
		seen++
		if want.Symlink != "" || want.Nested != nil {
			return nil // links are compared elsewhere; what is nested has a signature of its own
		}
		content, err := fs.ReadFile(contents, name)
		if err == nil && !bytes.Equal(hash(content), want.Hash) {
			err = fmt.Errorf("%s was changed after the seal", name)
		}
		return err
	})
	if err == nil && seen < len(said.Files) {
		err = errors.New("a sealed file is missing")
	}
	return err
}
