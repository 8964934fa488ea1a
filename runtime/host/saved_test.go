package host

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/coded"
)

// TestPathsThatWillNotBeThereTomorrow (C72): the place that macOS runs a program from
// that was not moved is never written into another program's file.
func TestPathsThatWillNotBeThereTomorrow(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]string{
		self: "",
		"/private/var/folders/x/T/AppTranslocation/0F-1/d/Sallyport.app/Contents/MacOS/sallyport": "program-translocated",
		filepath.Join(t.TempDir(), "sallyport (deleted)"):                                         "program-moved",
	} {
		if err := mayBeSaved(path); coded.Of(err) != code {
			t.Errorf("%s: %v", path, err)
		}
	}
}
