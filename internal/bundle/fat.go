package bundle

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	big    = binary.BigEndian
	little = binary.LittleEndian
)

// fatAlign is the power of two at which each program begins: a page of Apple's
// processors.
const fatAlign = 14

// Fat joins programs for different kinds of processor into one file.
func Fat(programs ...[]byte) ([]byte, error) {
	header := big.AppendUint32(nil, macho.MagicFat)
	header = big.AppendUint32(header, uint32(len(programs)))
	at := uint64(len(header) + 20*len(programs))
	var body []byte
	seen := map[macho.Cpu]bool{}
	start := at
	for _, program := range programs {
		f, err := macho.NewFile(bytes.NewReader(program))
		if err != nil {
			return nil, fmt.Errorf("cannot join programs: %w", err)
		}
		if seen[f.Cpu] {
			return nil, fmt.Errorf("cannot join programs: two are for %s", f.Cpu)
		}
		seen[f.Cpu] = true
		next := (at + 1<<fatAlign - 1) &^ (1<<fatAlign - 1)
		if next+uint64(len(program)) > 1<<32-1 {
			return nil, errors.New("cannot join programs: over 4 GiB")
		}
		body = append(body, make([]byte, next-at)...)
		body = append(body, program...)
		at = start + uint64(len(body))
		for _, field := range []uint32{uint32(f.Cpu), f.SubCpu, uint32(next), uint32(len(program)), fatAlign} {
			header = big.AppendUint32(header, field)
		}
	}
	return append(header, body...), nil
}
