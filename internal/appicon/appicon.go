// Package appicon draws Sallyport's icon at any size.
//
// The one idea: one drawing, in numbers, so that no system's icon differs from
// another's and no binary lies in the repository. It is that of
// frontend/public/icon.svg: a gate with a small door in it.
//
// It draws and writes nothing. Whoever shows the icon imports it: packages,
// the tray, notices.
package appicon

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
)

var (
	field = color.NRGBA{0x1f, 0x5f, 0x4a, 0xff}
	gate  = color.NRGBA{0xf4, 0xf1, 0xea, 0xff}
	door  = color.NRGBA{0xe0, 0xa8, 0x40, 0xff}
	alert = color.NRGBA{0xd9, 0x3a, 0x2b, 0xff}
)

// samples are taken along each side of a pixel.
const samples = 4

// Draw returns the icon, size pixels wide and high. With waiting it has a red dot at
// its upper right: somebody waits for an answer.
func Draw(size int, waiting bool) *image.NRGBA {
	picture := image.NewNRGBA(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			picture.SetNRGBA(x, y, pixel(x, y, size, waiting))
		}
	}
	return picture
}

// PNG is Draw as a file.
func PNG(size int, waiting bool) []byte {
	var out bytes.Buffer
	_ = png.Encode(&out, Draw(size, waiting)) // a buffer takes everything, and no size here is out of bounds
	return out.Bytes()
}

// ICO is one PNG of 1 to 256 pixels in the container that Windows wants (Vista and
// newer).
func ICO(size int, waiting bool) []byte {
	content := PNG(size, waiting)
	var out bytes.Buffer
	side := byte(size) // 256 is written as 0
	for _, part := range []any{
		[3]uint16{0, 1, 1}, [4]byte{side, side, 0, 0}, [2]uint16{1, 32}, [2]uint32{uint32(len(content)), 22},
	} {
		_ = binary.Write(&out, binary.LittleEndian, part) // a buffer takes everything
	}
	return append(out.Bytes(), content...)
}

// pixel is the mean of its samples, weighted by how much each covers.
func pixel(x, y, size int, waiting bool) color.NRGBA {
	var r, g, b, a int
	for i := range samples * samples {
		at := point{
			(float64(x) + (float64(i%samples)+0.5)/samples) * 64 / float64(size),
			(float64(y) + (float64(i/samples)+0.5)/samples) * 64 / float64(size),
		}
		c := at.colour(waiting)
		r, g, b, a = r+int(c.R)*int(c.A), g+int(c.G)*int(c.A), b+int(c.B)*int(c.A), a+int(c.A)
	}
	if a == 0 {
		return color.NRGBA{}
	}
	return color.NRGBA{uint8(r / a), uint8(g / a), uint8(b / a), uint8(a / (samples * samples))}
}

// point is a place on a canvas of 64 by 64.
type point struct{ x, y float64 }

func (p point) colour(waiting bool) color.NRGBA {
	switch {
	case waiting && p.within(50, 14, 12):
		return alert
	case waiting && p.within(50, 14, 15):
		return color.NRGBA{} // a gap, so that the dot stands apart on any ground
	case !p.inRounded(0, 0, 64, 64, 14):
		return color.NRGBA{}
	case p.inRounded(28, 34, 36, 52, 2):
		return door
	case p.inArch():
		return gate
	}
	return field
}

func (p point) within(x, y, radius float64) bool {
	return (p.x-x)*(p.x-x)+(p.y-y)*(p.y-y) <= radius*radius
}

func (p point) inRounded(left, top, right, bottom, radius float64) bool {
	if p.x < left || p.x > right || p.y < top || p.y > bottom {
		return false
	}
	x, y := min(max(p.x, left+radius), right-radius), min(max(p.y, top+radius), bottom-radius)
	return p.within(x, y, radius)
}

// inArch is the gate: two posts and the half ring over them.
func (p point) inArch() bool {
	if p.y > 52 {
		return false
	}
	if p.y >= 30 {
		return p.x >= 14 && p.x <= 22 || p.x >= 42 && p.x <= 50
	}
	return p.within(32, 30, 18) && !p.within(32, 30, 10)
}
