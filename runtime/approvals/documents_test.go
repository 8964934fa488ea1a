package approvals

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"sallyport/runtime/store"
)

func openTestDocuments(t *testing.T, dir string) *documents {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(dir, "s.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	keeper, err := OpenKeeper(t.Context(), dir, db, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDocuments(t.Context(), db, keeper)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *documents) save(t *testing.T, b batch) {
	t.Helper()
	var apply func()
	err := d.db.Update(context.Background(), func(tx *sql.Tx) (err error) {
		apply, err = d.write(context.Background(), tx, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	apply()
	if err := d.saveHead(); err != nil {
		t.Fatal(err)
	}
}

// spec/approval.md 2.5: sealed by us, in a version that this program does not
// know. It is neither trusted nor rewritten.
func TestAGenuineRecordOfAnotherVersion(t *testing.T) {
	d := openTestDocuments(t, t.TempDir())
	body := []byte(`{"schema":2,"plugin":"demo","server":"main","run":{"identity":"i2:00","fields":{"artifact":"a1:00"}}}`)
	d.save(t, batch{docKey{approvalKind, "demo/main"}: body, docKey{settingKind, "other"}: []byte(`{"schema":1}`)})
	if err := d.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, ok, problem := d.get(approvalKind, "demo/main")
	if !ok || problem == nil || problem.Code != "approval-version" {
		t.Fatalf("got %v", problem)
	}
	d.save(t, batch{docKey{settingKind, "other"}: []byte(`{"schema":1,"on":true}`)})
	if err := d.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kept := d.rows[docKey{approvalKind, "demo/main"}]; string(kept.body) != string(body) {
		t.Fatalf("it was rewritten: %s", kept.body)
	}
}

func TestSealsSayWhereADocumentBelongs(t *testing.T) {
	key := make([]byte, keyBytes)
	base := string(seal(key, "install", "kind", "id", 1, []byte("body")))
	for what, other := range map[string][]byte{
		"another installation": seal(key, "instal", "kind", "id", 1, []byte("body")),
		"another kind":         seal(key, "install", "kin", "did", 1, []byte("body")),
		"another id":           seal(key, "install", "kind", "i", 1, []byte("dbody")),
		"another epoch":        seal(key, "install", "kind", "id", 11, []byte("body")),
		"another body":         seal(key, "install", "kind", "id", 1, []byte("bodY")),
		"another key":          seal(append([]byte{1}, key[1:]...), "install", "kind", "id", 1, []byte("body")),
	} {
		if string(other) == base {
			t.Errorf("%s gives the same seal", what)
		}
	}
}
