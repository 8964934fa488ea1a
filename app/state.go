package app

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"sallyport/internal/atomicfile"
	"sallyport/internal/onejson"
)

// frame is where the window was and how large.
type frame struct {
	Width     int  `json:"width"`
	Height    int  `json:"height"`
	X         int  `json:"x"`
	Y         int  `json:"y"`
	Placed    bool `json:"placed"` // X and Y were told by the system
	Maximised bool `json:"maximised"`
}

// The window's sizes. The pages work from the least on.
const (
	leastWidth, leastHeight     = 640, 480
	usualWidth, usualHeight     = 1280, 800
	largestWidth, largestHeight = 16384, 16384
)

func usual() frame { return frame{Width: usualWidth, Height: usualHeight} }

const frameFile = "frame.json"

// readFrame reads what was kept. What cannot be read, or is no window's, is no reason to
// say anything: the window gets its usual size.
func readFrame(dir string) frame {
	file, err := os.Open(filepath.Join(dir, frameFile))
	if err != nil {
		return usual()
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, 4<<10))
	var f frame
	if err != nil || onejson.Decode(raw, &f) != nil {
		return usual()
	}
	return f.bounded()
}

// bounded replaces what a window cannot be.
func (f frame) bounded() frame {
	if f.Width < leastWidth || f.Width > largestWidth || f.Height < leastHeight || f.Height > largestHeight {
		f.Width, f.Height = usualWidth, usualHeight
	}
	if far(f.X) || far(f.Y) {
		f.X, f.Y, f.Placed = 0, 0, false
	}
	return f
}

// far reports whether a place is on no screen that there is. Screens left of and above
// the first have negative places.
func far(n int) bool { return n < -largestWidth || n > largestWidth }

// on moves the window onto a screen of this size, where it would lie outside: screens are
// unplugged. A window that begins left of or above it stays, as there may be another one.
func (f frame) on(width, height int) frame {
	if width <= 0 || height <= 0 {
		return f
	}
	f.Width, f.Height = max(min(f.Width, width), leastWidth), max(min(f.Height, height), leastHeight)
	const visible = 80 // of its title, to be taken by
	if f.X > width-visible || f.Y > height-visible || f.X < visible-f.Width || f.Y < 0 {
		f.X, f.Y, f.Placed = 0, 0, false
	}
	return f
}

// keep writes the frame for the next start.
func (f frame) keep(dir string) error {
	raw, err := json.Marshal(f.bounded())
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, frameFile), append(raw, '\n'), 0o600)
}
