package artifact

import (
	"runtime"
)

// Product size policy (spec/artifact-digest.md 6).
const (
	DefaultEntries   = 100_000
	DefaultFileBytes = 512 << 20
	DefaultTreeBytes = 2 << 30
)

// Bounds of the encoding, which no option moves (spec/artifact-digest.md 4.2, 5).
const (
	maxPath   = 4096
	maxDepth  = 128
	maxTarget = 4096
	maxHops   = 64
)

// Limits bound one call. They are no part of the encoding: the same tree under
// larger limits has the same digest. A zero field means the product policy.
type Limits struct {
	Entries   int
	FileBytes int64
	TreeBytes int64
}

func (l Limits) orDefault() Limits {
	if l.Entries <= 0 {
		l.Entries = DefaultEntries
	}
	if l.FileBytes <= 0 {
		l.FileBytes = DefaultFileBytes
	}
	if l.TreeBytes <= 0 {
		l.TreeBytes = DefaultTreeBytes
	}
	return l
}

// Progress is how far a digest has come.
type Progress struct {
	Entries int
	Bytes   int64
}

// Options of a call. The zero value is the product policy.
type Options struct {
	Limits Limits
	// Workers is how many goroutines read; zero means one a processor, 8 at most.
	Workers int
	// Progress is called now and then, never by two goroutines at once, and once
	// at the end of the reading. It must be quick; may be nil.
	Progress func(Progress)

	// source reads instead of the system's own source (tests only); may be nil.
	source source
	// hook is called at the named moment of an entry's life (tests only).
	hook func(moment, path string)
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return min(runtime.GOMAXPROCS(0), 8)
}
