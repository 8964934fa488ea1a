package bundle

import (
	"bytes"
	"crypto/sha256"
	"debug/macho"
	"errors"
	"fmt"
)

// Signature says what an ad-hoc signature covers besides the program itself: it is
// signed by nobody, and says only that these bytes belong together. Apple's
// processors start no program without one.
type Signature struct {
	Identifier string
	InfoPlist  []byte // nil outside of a bundle
	Resources  []byte // CodeResources; nil outside of a bundle
	// Bare leaves out what codesign adds and Go's linker does not: the empty
	// requirements and the empty place for a certificate.
	Bare  bool
	Flags uint32 // besides ad-hoc
}

// Numbers of Apple's format (Security/OSX/libsecurity_codesigning, cs_blobs.h).
const (
	loadCodeSignature = 0x1d

	magicSuper        = 0xfade0cc0
	magicDirectory    = 0xfade0c02
	magicRequirements = 0xfade0c01
	magicWrapper      = 0xfade0b01

	slotDirectory    = 0
	slotInfo         = 1
	slotRequirements = 2
	slotResources    = 3
	slotWrapper      = 0x10000

	flagAdhoc     = 0x2
	directoryVers = 0x20400 // with the executable segment
	directorySize = 88
	pageBits      = 12
	pageSize      = 1 << pageBits
	mainBinary    = 1
)

// places are where the parts lie that a signature changes.
type places struct {
	commands       int // end of the load commands
	signature      int // offset of LC_CODE_SIGNATURE, 0 without
	dataOffset     int // where the signature is or will be
	linkedit       int // offset of the command for __LINKEDIT
	linkeditStart  uint64
	text           uint64 // offset and size of __TEXT in the file
	textSize       uint64
	firstSection   uint32
	numberCommands uint32
	sizeCommands   uint32
}

// Sign returns program, a Mach-O file for one kind of processor, with its signature
// replaced or added.
func Sign(program []byte, s Signature) ([]byte, error) {
	at, err := find(program)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the program: %w", err)
	}
	out := bytes.Clone(program[:at.dataOffset])
	if at.signature == 0 {
		if uint32(at.commands+16) > at.firstSection {
			return nil, errors.New("cannot sign the program: there is no room for one more load command")
		}
		at.signature = at.commands
		little.PutUint32(out[16:], at.numberCommands+1)
		little.PutUint32(out[20:], at.sizeCommands+16)
		out = append(out, make([]byte, (16-len(out)%16)%16)...)
		at.dataOffset = len(out)
	}
	size := s.size(len(out))
	little.PutUint32(out[at.signature:], loadCodeSignature)
	little.PutUint32(out[at.signature+4:], 16)
	little.PutUint32(out[at.signature+8:], uint32(at.dataOffset))
	little.PutUint32(out[at.signature+12:], uint32(size))
	held := uint64(at.dataOffset+size) - at.linkeditStart
	little.PutUint64(out[at.linkedit+32:], held) // in memory, as the linker has it: not rounded
	little.PutUint64(out[at.linkedit+48:], held)
	return append(out, s.blob(out, at)...), nil
}

// find reads the load commands by hand: debug/macho does not say where they lie.
func find(program []byte) (places, error) {
	f, err := macho.NewFile(bytes.NewReader(program))
	if err != nil {
		return places{}, err
	}
	if f.Magic != macho.Magic64 || f.Type != macho.TypeExec {
		return places{}, errors.New("it is no program of 64 bits")
	}
	at := places{commands: 32, dataOffset: len(program), firstSection: ^uint32(0), numberCommands: f.Ncmd, sizeCommands: f.Cmdsz}
	for _, section := range f.Sections {
		if section.Offset > 0 {
			at.firstSection = min(at.firstSection, section.Offset)
		}
	}
	for _, load := range f.Loads {
		raw := load.Raw()
		switch kind := little.Uint32(raw); {
		case kind == loadCodeSignature:
			at.signature, at.dataOffset = at.commands, int(little.Uint32(raw[8:]))
		case kind == uint32(macho.LoadCmdSegment64) && name(raw) == "__LINKEDIT":
			at.linkedit, at.linkeditStart = at.commands, little.Uint64(raw[40:])
		case kind == uint32(macho.LoadCmdSegment64) && name(raw) == "__TEXT":
			at.text, at.textSize = little.Uint64(raw[40:]), little.Uint64(raw[48:])
		}
		at.commands += len(raw)
	}
	if at.linkedit == 0 || at.dataOffset > len(program) || uint64(at.dataOffset) < at.linkeditStart {
		return places{}, errors.New("its last segment is not where a signature goes")
	}
	return at, nil
}

// name is that of a segment.
func name(raw []byte) string {
	text, _, _ := bytes.Cut(raw[8:24], []byte{0})
	return string(text)
}

// special are the hashes of what lies outside of the program, from the last slot to
// the first.
func (s Signature) special() [][]byte {
	if s.Bare {
		return nil
	}
	slots := [][]byte{hash(s.Resources), hash(requirements()), hash(s.InfoPlist)}
	if s.Resources == nil {
		slots = slots[1:]
	}
	return slots
}

func hash(content []byte) []byte {
	if content == nil {
		return make([]byte, sha256.Size)
	}
	sum := sha256.Sum256(content)
	return sum[:]
}

func requirements() []byte {
	return big.AppendUint32(big.AppendUint32(big.AppendUint32(nil, magicRequirements), 12), 0)
}

func wrapper() []byte { return big.AppendUint32(big.AppendUint32(nil, magicWrapper), 8) }

func (s Signature) directoryLength(code int) int {
	return directorySize + len(s.Identifier) + 1 + sha256.Size*(len(s.special())+(code+pageSize-1)/pageSize)
}

// size is that of the blob for so many bytes of code.
func (s Signature) size(code int) int {
	if s.Bare {
		return 12 + 8 + s.directoryLength(code)
	}
	return 12 + 3*8 + s.directoryLength(code) + len(requirements()) + len(wrapper())
}

// blob is the signature of code.
func (s Signature) blob(code []byte, at places) []byte {
	type part struct {
		slot uint32
		body []byte
	}
	parts := []part{{slotDirectory, s.directory(code, at)}}
	if !s.Bare {
		parts = append(parts, part{slotRequirements, requirements()}, part{slotWrapper, wrapper()})
	}
	index := big.AppendUint32(nil, uint32(len(parts)))
	var bodies []byte
	for _, p := range parts {
		index = big.AppendUint32(index, p.slot)
		index = big.AppendUint32(index, uint32(12+8*len(parts)+len(bodies)))
		bodies = append(bodies, p.body...)
	}
	out := big.AppendUint32(nil, magicSuper)
	out = big.AppendUint32(out, uint32(8+len(index)+len(bodies)))
	return append(append(out, index...), bodies...)
}

func (s Signature) directory(code []byte, at places) []byte {
	special := s.special()
	identAt := directorySize
	hashesAt := identAt + len(s.Identifier) + 1 + sha256.Size*len(special)
	pages := (len(code) + pageSize - 1) / pageSize
	var out []byte
	for _, field := range []uint32{
		magicDirectory, uint32(s.directoryLength(len(code))), directoryVers, flagAdhoc | s.Flags,
		uint32(hashesAt), uint32(identAt), uint32(len(special)), uint32(pages), uint32(len(code)),
	} {
		out = big.AppendUint32(out, field)
	}
	out = append(out, sha256.Size, 2 /* SHA-256 */, 0, pageBits)
	out = append(out, make([]byte, 4*4)...) // spare, scatter, team, spare
	for _, field := range []uint64{0, at.text, at.textSize, mainBinary} {
		out = big.AppendUint64(out, field)
	}
	out = append(append(out, s.Identifier...), 0)
	for _, slot := range special {
		out = append(out, slot...)
	}
	for from := 0; from < len(code); from += pageSize {
		sum := sha256.Sum256(code[from:min(from+pageSize, len(code))])
		out = append(out, sum[:]...)
	}
	return out
}
