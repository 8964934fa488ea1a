package approvals_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
)

// ring is a keyring in memory that can be locked or lose what it has.
type ring struct {
	mu      sync.Mutex
	entries map[string]string
	locked  bool
	calls   []string
	during  func() // runs in Get
}

func newRing() *ring { return &ring{entries: map[string]string{}} }

func (r *ring) begin(call string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	if r.locked {
		return &coded.Error{Code: "keyring-locked", Sentence: "the keyring is locked", Next: "unlock it"}
	}
	return nil
}

func (r *ring) lock(locked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.locked = locked
}

func (r *ring) Ready(context.Context) error { return r.begin("ready") }

func (r *ring) Get(_ context.Context, entry string) ([]byte, error) {
	if err := r.begin("get"); err != nil {
		return nil, err
	}
	if r.during != nil {
		r.during()
	}
	value, ok := r.entries[entry]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(value), nil
}

func (r *ring) Set(_ context.Context, entry string, value []byte) error {
	if err := r.begin("set"); err != nil {
		return err
	}
	r.entries[entry] = string(value)
	return nil
}

func (r *ring) Delete(_ context.Context, entry string) error {
	if err := r.begin("delete"); err != nil {
		return err
	}
	delete(r.entries, entry)
	return nil
}

// newOn is a Rig whose first start met the keyring.
func newOn(t *testing.T, keyring approvals.Keyring) *approvalstest.Rig {
	t.Helper()
	r := approvalstest.New(t)
	r.Close()
	for _, folder := range []string{"keys", "data"} { // before its first start
		if err := os.RemoveAll(filepath.Join(r.Dir, folder)); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(r.Dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r.Keyring = keyring
	r.Open()
	return r
}

func fetch(t *testing.T, r *approvalstest.Rig) {
	t.Helper()
	if err := r.Gate.FetchKey(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}

func wantFiles(t *testing.T, r *approvalstest.Rig, want string) {
	t.Helper()
	entries, err := os.ReadDir(r.Keys())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != want {
		t.Errorf("the folder of keys has %v, want %s", got, want)
	}
}

func TestTheFirstKeyGoesIntoTheKeyring(t *testing.T) {
	keyring := newRing()
	r := newOn(t, keyring)
	wantCode(t, r.Gate.Waiting(), "seal-key-unavailable")
	if _, err := r.Gate.AddClient(t.Context(), "x", approvals.Scope{All: true}, operator); coded.Of(err) != "seal-key-unavailable" {
		t.Errorf("before there is a key: %v", err)
	}
	fetch(t, r)
	if r.Gate.Waiting() != nil || r.Gate.KeyPlace() != approvals.KeyInKeyring || len(keyring.entries) != 1 {
		t.Fatalf("place %q, %d entries", r.Gate.KeyPlace(), len(keyring.entries))
	}
	wantFiles(t, r, "head.json seal.json")
	r.Approve(offer, "read_notes")
	r.Grant()
	r.Reopen()
	wantState(t, r, approvals.Blocked, "seal-key-unavailable")
	fetch(t, r)
	r.Grant()
	if len(keyring.entries) != 1 {
		t.Errorf("%d keys were made", len(keyring.entries))
	}
	for entry, key := range keyring.entries { // and nothing of it lies about
		for _, name := range []string{"head.json", "seal.json"} {
			raw, err := os.ReadFile(filepath.Join(r.Keys(), name))
			if err != nil || strings.Contains(string(raw), strings.Fields(key)[2]) {
				t.Errorf("%s of %s: %v", name, entry, err)
			}
		}
	}
}

func TestTheFirstKeyIsAFileWhereNoKeyringAnswers(t *testing.T) {
	keyring := newRing()
	keyring.lock(true)
	r := newOn(t, keyring)
	fetch(t, r)
	if r.Gate.KeyPlace() != approvals.KeyInFile {
		t.Fatalf("place %q", r.Gate.KeyPlace())
	}
	r.Approve(offer, "read_notes")
	keyring.lock(false)
	calls := len(keyring.calls)
	r.Reopen()
	r.Grant() // it stays there, and the keyring is not asked again
	if r.Gate.KeyPlace() != approvals.KeyInFile || len(keyring.calls) != calls {
		t.Errorf("place %q, calls %v", r.Gate.KeyPlace(), keyring.calls)
	}
}

func TestALockedKeyringIsWaitedForAndNeverReplaced(t *testing.T) {
	keyring := newRing()
	r := newOn(t, keyring)
	fetch(t, r)
	r.Approve(offer, "read_notes")
	keyring.lock(true)
	r.Reopen()
	for _, ask := range []bool{true, false, false} {
		wantCode(t, r.Gate.FetchKey(t.Context(), ask), "seal-key-unavailable")
	}
	wantState(t, r, approvals.Blocked, "seal-key-unavailable")
	_, err := r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "seal-key-unavailable")
	if why := r.Gate.Waiting(); !strings.Contains(why.Error(), "the keyring is locked") {
		t.Errorf("it does not say why: %v", why)
	}
	_, err = r.Gate.Ask(t.Context(), r.ID, operator)
	wantCode(t, err, "seal-key-unavailable")
	_, _, err = r.Gate.NewSessionToken(approvalstest.Client)
	wantCode(t, err, "seal-key-unavailable")
	wantCode(t, r.Gate.AcceptRollback(t.Context(), false, operator), "seal-key-unavailable")
	wantCode(t, r.Gate.MoveKey(t.Context(), approvals.KeyInFile, operator), "seal-key-unavailable")
	if err := r.Gate.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	wantFiles(t, r, "head.json seal.json")

	keyring.lock(false)
	if err := r.Gate.FetchKey(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	r.Grant() // its snapshot was kept too
	if len(keyring.entries) != 1 {
		t.Errorf("%d keys were made", len(keyring.entries))
	}
}

// No person is asked again and again: only the first attempt may open a window.
func TestAskingAgainAsksNobody(t *testing.T) {
	keyring := newRing()
	r := newOn(t, keyring)
	fetch(t, r)
	r.Reopen()
	keyring.lock(true)
	keyring.calls = nil
	for range 3 {
		_ = r.Gate.FetchKey(t.Context(), false)
	}
	if got := strings.Join(keyring.calls, " "); got != "ready ready ready" {
		t.Errorf("calls: %s", got)
	}
}

func TestAKeyThatTheKeyringLost(t *testing.T) {
	for _, row := range []struct {
		what, code string
		lose       func(entries map[string]string)
	}{
		{"gone", "seal-key-missing", func(entries map[string]string) { clear(entries) }},
		{"cut", "seal-key-damaged", func(entries map[string]string) {
			for name := range entries {
				entries[name] = "sallyport-seal-1"
			}
		}},
		{"another installation's", "seal-key-damaged", func(entries map[string]string) {
			for name := range entries {
				entries[name] = "sallyport-seal-1 OTHER " + strings.Repeat("00", 32)
			}
		}},
	} {
		t.Run(row.what, func(t *testing.T) {
			keyring := newRing()
			r := newOn(t, keyring)
			fetch(t, r)
			r.Approve(offer, "read_notes")
			row.lose(keyring.entries)
			before := len(keyring.entries)
			r.Reopen()
			wantCode(t, r.Gate.FetchKey(t.Context(), true), row.code)
			wantState(t, r, approvals.ApprovalRequired, row.code)
			wantFiles(t, r, "head.json seal.json")
			if err := r.Gate.AcceptRollback(t.Context(), false, operator); err != nil {
				t.Fatal(err)
			}
			if len(keyring.entries) != before || r.Gate.KeyPlace() != approvals.KeyInFile {
				t.Errorf("%d entries, place %q", len(keyring.entries), r.Gate.KeyPlace())
			}
			r.Approve(offer, "read_notes")
			r.Reopen()
			r.Grant()
		})
	}
}

func TestTheLossOfAKeyThatIsWaitedForIsAnExplicitWord(t *testing.T) {
	keyring := newRing()
	r := newOn(t, keyring)
	fetch(t, r)
	r.Approve(offer, "read_notes")
	keyring.lock(true)
	r.Reopen()
	// Its answer comes while the loss is accepted: it is too late then.
	keyring.lock(false)
	keyring.during = func() {
		keyring.during = nil
		if err := r.Gate.AcceptRollback(t.Context(), true, operator); err != nil {
			t.Error(err)
		}
	}
	if err := r.Gate.FetchKey(t.Context(), true); err != nil {
		t.Error(err)
	}
	wantState(t, r, approvals.ApprovalRequired, "never-approved")
	if r.Gate.KeyPlace() != approvals.KeyInFile || len(keyring.entries) != 1 {
		t.Errorf("place %q, %d entries: the old key is left where it is", r.Gate.KeyPlace(), len(keyring.entries))
	}
	r.Approve(offer, "read_notes")
	r.Reopen()
	r.Grant()
}

// The strict setting holds although the seal of the head that has it cannot be checked.
func TestTheWindowsSettingHoldsWhileTheKeyIsWaitedFor(t *testing.T) {
	keyring := newRing()
	r := newOn(t, keyring)
	fetch(t, r)
	r.Approve(offer, "read_notes")
	if err := r.Gate.SetAnswerOnlyInGUI(t.Context(), true, approvals.By{User: "x", Via: approvals.ViaGUI}); err != nil {
		t.Fatal(err)
	}
	keyring.lock(true)
	r.Reopen()
	if !r.Gate.AnswerOnlyInGUI() {
		t.Error("it does not hold")
	}
	wantCode(t, r.Gate.AcceptRollback(t.Context(), true, operator), "answer-only-in-gui")
	keyring.lock(false)
	fetch(t, r)
	wantCode(t, r.Gate.MoveKey(t.Context(), approvals.KeyInFile, operator), "answer-only-in-gui")
}

func TestTheKeyMovesAndComesBack(t *testing.T) {
	keyring := newRing()
	keyring.lock(true)
	r := newOn(t, keyring)
	fetch(t, r)
	r.Approve(offer, "read_notes")
	wantCode(t, r.Gate.MoveKey(t.Context(), approvals.KeyInKeyring, operator), "keyring-locked")
	wantFiles(t, r, "head.json seal.key")
	keyring.lock(false)
	for _, step := range []struct {
		to    approvals.KeyPlace
		files string
		keys  int
	}{
		{approvals.KeyInKeyring, "head.json seal.json", 1},
		{approvals.KeyInFile, "head.json seal.key", 0},
		{approvals.KeyInKeyring, "head.json seal.json", 1},
	} {
		if err := r.Gate.MoveKey(t.Context(), step.to, operator); err != nil {
			t.Fatal(err)
		}
		wantCode(t, r.Gate.MoveKey(t.Context(), step.to, operator), "seal-key-there")
		r.Grant()
		r.Reopen()
		fetch(t, r)
		r.Grant() // nothing needs to be approved again
		wantFiles(t, r, step.files)
		if len(keyring.entries) != step.keys || r.Gate.KeyPlace() != step.to {
			t.Errorf("%d entries, place %q", len(keyring.entries), r.Gate.KeyPlace())
		}
	}
	wantCode(t, r.Gate.MoveKey(t.Context(), "elsewhere", operator), "bad-request")
	wantCode(t, r.Gate.MoveKey(t.Context(), approvals.KeyInFile, approvals.By{User: "a", Via: approvals.ViaAgent}), "answer-not-allowed")
	wantMoves(t, r, `keyring ok
keyring failed keyring-locked
keyring ok
keyring ok
keyring failed seal-key-there
file ok
file ok
file failed seal-key-there
keyring ok
keyring ok
keyring failed seal-key-there
`)
}

// wantMoves compares the records of moves: each before it is made, and where it failed.
func wantMoves(t *testing.T, r *approvalstest.Rig, want string) {
	t.Helper()
	var got string
	err := r.DB.View(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRow(`SELECT group_concat(replace(target, 'seal-key-', '') || ' ' || result || CASE reason WHEN '' THEN '' ELSE ' ' || reason END || char(10), '')
			FROM (SELECT * FROM audit WHERE action = 'setting' ORDER BY seq)`).Scan(&got)
	})
	if err != nil || got != want {
		t.Errorf("%v: on record is\n%s", err, got)
	}
}

// A crash in the middle of a move leaves the key in both places, and one note of which
// of them counts.
func TestACrashInTheMiddleOfAMove(t *testing.T) {
	keyring := newRing()
	r := newOn(t, keyring)
	fetch(t, r)
	r.Approve(offer, "read_notes")
	r.Close()
	file := filepath.Join(r.Keys(), "seal.key")
	for _, key := range keyring.entries {
		if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.Open()
	fetch(t, r)
	r.Grant()
	wantFiles(t, r, "head.json seal.json")

	// Another key's file is nobody's leftover, and is not used either.
	r.Close()
	if err := os.WriteFile(file, []byte("sallyport-seal-1 OTHER "+strings.Repeat("00", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Open()
	fetch(t, r)
	r.Grant()
	wantFiles(t, r, "head.json seal.json seal.key")
}

func TestANoteOfThePlaceThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"", "{}", `{"in":"file","install":"x"}`, `{"in":"keyring","install":""}`, `{"in":"keyring","install":"x","more":1}`} {
		keyring := newRing()
		r := newOn(t, keyring)
		fetch(t, r)
		r.Approve(offer, "read_notes")
		r.Close()
		if err := os.WriteFile(filepath.Join(r.Keys(), "seal.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.Open()
		fetch(t, r)
		wantState(t, r, approvals.ApprovalRequired, "seal-key-damaged")
	}
}

// Where the note is gone and the key with it, none is made beside a used store.
func TestALostNoteIsALostKey(t *testing.T) {
	keyring := newRing()
	r := newOn(t, keyring)
	fetch(t, r)
	r.Approve(offer, "read_notes")
	r.Close()
	if err := os.Remove(filepath.Join(r.Keys(), "seal.json")); err != nil {
		t.Fatal(err)
	}
	r.Open()
	fetch(t, r)
	wantState(t, r, approvals.ApprovalRequired, "seal-key-missing")
	if len(keyring.entries) != 1 {
		t.Errorf("%d keys", len(keyring.entries))
	}
}

func TestAnOlderStorePutBackUnderAKeyInTheKeyring(t *testing.T) {
	keyring := newRing()
	r := newOn(t, keyring)
	fetch(t, r)
	r.Approve(offer, "read_notes")
	r.Close()
	old := filepath.Join(r.Dir, "old.db")
	copyStore(t, r.Database(), old)
	r.Open()
	fetch(t, r)
	if err := r.Gate.Revoke(t.Context(), r.ID, operator); err != nil {
		t.Fatal(err)
	}
	r.Close()
	copyStore(t, old, r.Database())
	r.Open()
	fetch(t, r)
	wantState(t, r, approvals.ApprovalRequired, "approval-rolled-back")
}

// What is recorded before the key is there is sealed once it is, and an end that was cut
// meanwhile is seen.
func TestTheAuditIsComparedOnceTheKeyIsThere(t *testing.T) {
	keyring := newRing()
	r := newOn(t, keyring)
	fetch(t, r)
	r.Approve(offer, "read_notes")
	r.Reopen()
	if err := r.Audit.Problem(); err == nil {
		t.Error("an audit whose head cannot be read has no problem")
	}
	fetch(t, r)
	if err := r.Audit.Problem(); err != nil {
		t.Errorf("with the key: %v", err)
	}
	r.Close()
	r.Open()
	edit(t, r, "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)")
	fetch(t, r)
	if err := r.Audit.Problem(); coded.Of(err) != "audit-truncated" {
		t.Errorf("a cut end: %v", err)
	}
}

func TestAClosedGateFetchesNothing(t *testing.T) {
	r := newOn(t, newRing())
	gate := r.Gate
	r.Close()
	if err := gate.FetchKey(t.Context(), true); !errors.Is(err, coded.New("closing", "")) {
		t.Errorf("got %v", err)
	}
}
