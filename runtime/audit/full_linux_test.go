package audit

import (
	"context"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/coded"
	"sallyport/runtime/store"
)

// C77 on a disk that is really full, where a small one may be mounted; failing
// covers it for everybody else.
func TestOnAFullDiskAppendIsAnErrorAndWhatIsThereVerifies(t *testing.T) {
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Logf("no tmpfs here (%v)", err)
		return
	}
	defer unix.Unmount(folder, unix.MNT_DETACH)
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(folder, "sallyport.db")})
	must(t, err)
	defer db.Close()
	l, err := Open(t.Context(), Config{DB: db})
	must(t, err)
	defer l.Close(context.Background())
	var last Record
	for {
		r, err := l.Append(t.Context(), typical)
		if err != nil {
			wantCode(t, "Append", err, store.CodeFull)
			break
		}
		last = r
	}
	wantVerified(t, db, nil, last.Seq)
	if _, err := l.Append(t.Context(), typical); coded.Of(err) != store.CodeFull {
		t.Errorf("again: %v", err)
	}
}
