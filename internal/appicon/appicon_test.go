package appicon

import (
	"bytes"
	"encoding/binary"
	"image/color"
	"image/png"
	"testing"
)

func TestTheDrawing(t *testing.T) {
	for name, row := range map[string]struct {
		waiting bool
		x, y    int
		want    color.NRGBA
	}{
		"the corner is clear":           {false, 0, 0, color.NRGBA{}},
		"the middle of a post":          {false, 72, 160, gate},
		"the door":                      {false, 128, 170, door},
		"beside the posts is the field": {false, 20, 160, field},
		"the dot":                       {true, 200, 56, alert},
		"no dot unless somebody waits":  {false, 200, 56, field},
	} {
		if got := Draw(256, row.waiting).NRGBAAt(row.x, row.y); got != row.want {
			t.Errorf("%s: %v, and not %v", name, got, row.want)
		}
	}
}

func TestFiles(t *testing.T) {
	for _, size := range []int{16, 256, 1024} {
		picture, err := png.Decode(bytes.NewReader(PNG(size, true)))
		if err != nil || picture.Bounds().Dx() != size {
			t.Errorf("a PNG of %d: %v", size, err)
		}
	}
	file := ICO(256, false)
	at, length := binary.LittleEndian.Uint32(file[18:]), binary.LittleEndian.Uint32(file[14:])
	if file[6] != 0 || int(at+length) != len(file) {
		t.Errorf("the directory of an icon of 256: side %d, %d+%d of %d", file[6], at, length, len(file))
	}
	if picture, err := png.Decode(bytes.NewReader(file[at:])); err != nil || picture.Bounds().Dx() != 256 {
		t.Errorf("the picture in an icon: %v", err)
	}
	if !bytes.Equal(PNG(64, false), PNG(64, false)) {
		t.Error("the same picture is not the same bytes")
	}
}
