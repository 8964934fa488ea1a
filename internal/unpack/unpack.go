// Package unpack makes a new folder from an archive, or makes none.
//
// The one idea: an archive is a claim by a stranger, so nothing that it says
// about itself is used before it is checked, sizes are counted while inflating,
// and whatever is refused or given up leaves nothing on disk. Where two readers
// could understand an archive differently, it is refused.
//
// Target is the folder being made: it takes folders, files and (from whoever
// asks for them) links one by one and keeps the rules of names and limits, so
// that sources that are no archives have the same ones. Zip and TarGz read
// archives into one; neither makes a link.
//
// It knows no domain words and runs nothing. Every package may import it.
package unpack

import (
	"time"
)

// Limits bound one folder. A zero field is the default.
type Limits struct {
	Entries    int   // files, folders and links
	FileBytes  int64 // of one file
	TotalBytes int64 // of all files
	// Ratio is how many bytes may come out for one that went in. It counts past
	// ratioSlack, below which nothing is worth a refusal.
	Ratio     int64
	Depth     int // names in a path
	NameBytes int // of one name
	PathBytes int
}

const (
	defaultEntries    = 100_000
	defaultFileBytes  = 512 << 20
	defaultTotalBytes = 2 << 30
	defaultRatio      = 250
	defaultDepth      = 128
	defaultNameBytes  = 255
	defaultPathBytes  = 4096

	ratioSlack = 4 << 20
)

func (l Limits) orDefault() Limits {
	set(&l.Entries, defaultEntries)
	set(&l.FileBytes, defaultFileBytes)
	set(&l.TotalBytes, defaultTotalBytes)
	set(&l.Ratio, defaultRatio)
	set(&l.Depth, defaultDepth)
	set(&l.NameBytes, defaultNameBytes)
	set(&l.PathBytes, defaultPathBytes)
	return l
}

func set[T int | int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Options of a folder. The zero value is the strictest.
type Options struct {
	Limits Limits
	// KeepCase takes names that are equal but for letter case, which an archive
	// may not have: on macOS and Windows one of them would be lost.
	KeepCase bool
	// Progress is called now and then; it must be quick. May be nil.
	Progress func(Progress)
}

// Progress is how far a folder has come.
type Progress struct {
	Entries int
	Bytes   int64
}

// progressEvery is how often Progress is called at most.
const progressEvery = 100 * time.Millisecond

// Result is what a folder holds.
type Result struct {
	Entries, Files int
	Bytes          int64
	// Modeless are the files whose archive says nothing about who may execute
	// them; they were made 0644.
	Modeless []string
	Warnings []Warning
}

// Warning is something that a person should know and that refuses nothing.
type Warning struct{ Code, Path string }

// CodeNotOnWindows is the warning about a name that Windows cannot have. There it
// is a refusal.
const CodeNotOnWindows = "name-not-on-windows"

// maxWarnings is how many are kept: nobody reads more.
const maxWarnings = 100
