package approvals_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/audit"
)

// edit runs one statement on the store, as somebody with a shell could.
func edit(t *testing.T, r *approvalstest.Rig, statement string, args ...any) {
	t.Helper()
	err := r.DB.Update(t.Context(), func(tx *sql.Tx) error {
		result, err := tx.Exec(statement, args...)
		if err != nil {
			return err
		}
		if n, _ := result.RowsAffected(); n == 0 {
			return errors.New("the statement changed nothing: " + statement)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const approvalRow = "kind = 'approval' AND id = 'demo/main'"

// TestTamperingWithOneColumn edits each column of a genuine approval alone, while
// Sallyport runs and while it does not.
func TestTamperingWithOneColumn(t *testing.T) {
	for _, row := range []struct{ column, statement string }{
		{"body", `UPDATE sealed SET body = replace(CAST(body AS TEXT), 'read_notes', 'kill_notes') WHERE ` + approvalRow},
		{"body, one space more", `UPDATE sealed SET body = CAST(body AS TEXT) || ' ' WHERE ` + approvalRow},
		{"seal", `UPDATE sealed SET seal = zeroblob(32) WHERE ` + approvalRow},
		{"epoch", `UPDATE sealed SET epoch = epoch + 1 WHERE ` + approvalRow},
		{"id", `UPDATE sealed SET id = 'demo/other' WHERE ` + approvalRow},
		{"kind", `UPDATE sealed SET kind = 'decision' WHERE ` + approvalRow},
		{"all: the row is deleted", `DELETE FROM sealed WHERE ` + approvalRow},
	} {
		t.Run(row.column, func(t *testing.T) {
			r := approvalstest.New(t)
			r.Approve(offer, "read_notes")
			running := r.Grant()
			// SQLite would make text of a body that is changed as text.
			statement := strings.Replace(row.statement, "body = ", "body = CAST(", 1)
			if statement != row.statement {
				statement = strings.Replace(statement, " WHERE", " AS BLOB) WHERE", 1)
			}
			edit(t, r, statement)
			_, err := r.Gate.Grant(t.Context(), r.ID)
			wantCode(t, err, "approval-tampered")
			wantCode(t, running.Err(), "approval-tampered")
			r.Reopen()
			wantState(t, r, approvals.ApprovalRequired, "approval-tampered")
			_, err = r.Gate.Grant(t.Context(), r.ID)
			wantCode(t, err, "approval-tampered")
			if len(r.Gate.Problems()) == 0 {
				t.Fatal("no problem is told")
			}
			// Asked and answered again, it counts; what was there is kept aside.
			r.Approve(offer, "read_notes")
			r.Grant()
			r.Reopen()
			r.Grant()
		})
	}
}

func readRow(t *testing.T, r *approvalstest.Rig, where string) (body, seal []byte, epoch int64) {
	t.Helper()
	err := r.DB.View(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRow("SELECT body, seal, epoch FROM sealed WHERE "+where).Scan(&body, &seal, &epoch)
	})
	if err != nil {
		t.Fatal(err)
	}
	return body, seal, epoch
}

func TestAGenuineOldRowPutBack(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes", "delete_notes")
	body, seal, epoch := readRow(t, r, approvalRow)
	r.Approve(offer, "read_notes")
	edit(t, r, "UPDATE sealed SET body = ?, seal = ?, epoch = ? WHERE "+approvalRow, body, seal, epoch)
	r.Reopen()
	wantState(t, r, approvals.ApprovalRequired, "approval-tampered")
}

func TestARevokedApprovalPutBackWithItsList(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	body, seal, epoch := readRow(t, r, approvalRow)
	listBody, listSeal, listEpoch := readRow(t, r, "kind = 'list'")
	if err := r.Gate.Revoke(t.Context(), r.ID, operator); err != nil {
		t.Fatal(err)
	}
	edit(t, r, "UPDATE sealed SET body = ?, seal = ?, epoch = ? WHERE "+approvalRow, body, seal, epoch)
	edit(t, r, "UPDATE sealed SET body = ?, seal = ?, epoch = ? WHERE kind = 'list'", listBody, listSeal, listEpoch)
	r.Reopen()
	wantState(t, r, approvals.ApprovalRequired, "approval-rolled-back")
}

func copyStore(t *testing.T, from, to string) {
	t.Helper()
	for _, suffix := range []string{"-wal", "-shm"} {
		os.Remove(to + suffix)
	}
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnOlderStorePutBack(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	r.Close()
	old := filepath.Join(r.Dir, "old.db")
	copyStore(t, r.Database(), old)
	r.Open()
	if err := r.Gate.Revoke(t.Context(), r.ID, operator); err != nil {
		t.Fatal(err)
	}
	r.Close()
	copyStore(t, old, r.Database())
	r.Open()
	wantState(t, r, approvals.ApprovalRequired, "approval-rolled-back")
	_, err := r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "approval-rolled-back")
	_, err = r.Gate.Ask(t.Context(), r.ID, operator)
	wantCode(t, err, "approval-rolled-back")
	if _, known := r.Gate.ClientByToken("sp_x"); known || len(r.Gate.Clients()) != 0 {
		t.Fatal("clients of an older store count")
	}
	wantCode(t, r.Gate.AcceptRollback(t.Context(), false, approvals.By{User: "a", Via: approvals.ViaAgent}), "answer-not-allowed")
	if err := r.Gate.AcceptRollback(t.Context(), false, operator); err != nil {
		t.Fatal(err)
	}
	r.Grant()
	r.Reopen()
	r.Grant()
}

func TestAnEmptyStoreIsAnOlderOneToo(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	r.Close()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		os.Remove(r.Database() + suffix)
	}
	r.Open()
	wantState(t, r, approvals.ApprovalRequired, "approval-rolled-back")
	if err := r.Gate.AcceptRollback(t.Context(), false, operator); err != nil {
		t.Fatal(err)
	}
	wantState(t, r, approvals.ApprovalRequired, "never-approved")
	r.Approve(offer, "read_notes")
}

func TestAStoreOfAnotherInstallation(t *testing.T) {
	theirs := approvalstest.New(t)
	theirs.Approve(offer, "read_notes")
	theirs.Close()
	r := approvalstest.New(t)
	r.Close()
	copyStore(t, theirs.Database(), r.Database())
	r.Open()
	s := r.Gate.Status(t.Context(), r.ID)
	if s.State != approvals.ApprovalRequired || s.Reason != "approval-rolled-back" && s.Reason != "approval-tampered" {
		t.Fatalf("got %s (%s)", s.State, s.Reason)
	}
	if err := r.Gate.AcceptRollback(t.Context(), false, operator); err != nil {
		t.Fatal(err)
	}
	_, err := r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "never-approved")
}

func TestALostKeyIsNotReplacedInSilence(t *testing.T) {
	for _, row := range []struct {
		code string
		lose func(path string) error
	}{
		{"seal-key-missing", os.Remove},
		{"seal-key-damaged", func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }},
	} {
		r := approvalstest.New(t)
		r.Approve(offer, "read_notes")
		r.Close()
		key := filepath.Join(r.Keys(), "seal.key")
		if err := row.lose(key); err != nil {
			t.Fatal(err)
		}
		r.Open()
		wantState(t, r, approvals.ApprovalRequired, row.code)
		_, err := r.Gate.Ask(t.Context(), r.ID, operator)
		wantCode(t, err, row.code)
		r.Reopen()
		wantState(t, r, approvals.ApprovalRequired, row.code)
		if err := r.Gate.AcceptRollback(t.Context(), false, operator); err != nil {
			t.Fatal(err)
		}
		_, err = r.Gate.Grant(t.Context(), r.ID)
		wantCode(t, err, "never-approved")
		r.Approve(offer, "read_notes")
		r.Reopen()
		r.Grant()
	}
}

func TestAHeadThatIsGoneOrEdited(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"gone": os.Remove,
		"edited": func(path string) error {
			raw, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(raw), `"guiOnly":false`, `"guiOnly":true`, 1)), 0o600))
		},
		"cut": func(path string) error { return os.Truncate(path, 20) },
		"old bytes behind its end": func(path string) error {
			raw, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, append(raw, "}\n"...), 0o600))
		},
	} {
		r := approvalstest.New(t)
		r.Approve(offer, "read_notes")
		r.Close()
		if err := damage(filepath.Join(r.Keys(), "head.json")); err != nil {
			t.Fatal(name, err)
		}
		r.Open()
		wantState(t, r, approvals.ApprovalRequired, "approval-rolled-back")
		r.Close()
	}
}

func TestACrashBetweenCommitAndHead(t *testing.T) {
	r := approvalstest.New(t)
	path := filepath.Join(r.Keys(), "head.json")
	behind, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r.Approve(offer, "read_notes")
	r.Close()
	if err := os.WriteFile(path, behind, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Open()
	r.Grant()
	caughtUp, _ := os.ReadFile(path)
	var head struct{ Epoch int64 }
	if json.Unmarshal(caughtUp, &head) != nil || strings.Contains(string(behind), fmt.Sprintf(`"epoch":%d,`, head.Epoch)) {
		t.Fatalf("the head did not catch up: %s", caughtUp)
	}
}

func TestKeyAndHeadAreOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there the folder's access list keeps others out")
	}
	r := approvalstest.New(t)
	for _, name := range []string{"seal.key", "head.json"} {
		info, err := os.Stat(filepath.Join(r.Keys(), name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatal(name, info.Mode(), err)
		}
	}
}

func TestAKeyThatIsOpenToOthersIsToldAndUsed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there the folder's access list keeps others out")
	}
	for mode, told := range map[os.FileMode]string{0o640: "seal-key-open", 0o604: "seal-key-open", 0o644: "seal-key-open", 0o620: "seal-key-open", 0o600: "", 0o400: ""} {
		r := approvalstest.New(t)
		r.Approve(offer, "read_notes")
		r.Close()
		key := filepath.Join(r.Keys(), "seal.key")
		chmod := func(mode os.FileMode) {
			if err := os.Chmod(key, mode); err != nil {
				t.Fatal(err)
			}
		}
		chmod(mode)
		r.Open()
		var codes []string
		for _, problem := range r.Gate.Problems() {
			codes = append(codes, problem.Code)
		}
		if strings.Join(codes, " ") != told {
			t.Errorf("mode %o: told %q, want %q", mode, codes, told)
		}
		r.Grant() // it is used
		chmod(0o600)
		if problems := r.Gate.Problems(); len(problems) != 0 {
			t.Errorf("mode %o, mended: still told %v", mode, problems)
		}
		r.Close()
	}
}

// C78: absent is not zero.
func TestEntriesFromBefore(t *testing.T) {
	for _, row := range []struct{ what, body, code string }{
		{"no schema version", `{"plugin":"demo","server":"main","approved":true,"tools":["read_notes"]}`, "legacy-approval"},
		{"no digest", `{"schema":1,"plugin":"demo","server":"main","run":{"identity":"i1:00","fields":{}}}`, "legacy-approval"},
		{"a schema of the future, not sealed by us", `{"schema":99,"plugin":"demo","server":"main"}`, "approval-tampered"},
		{"no JSON", `yes`, "approval-tampered"},
	} {
		r := approvalstest.New(t)
		edit(t, r, "INSERT INTO sealed (kind, id, body, seal, epoch) VALUES ('approval', 'demo/main', CAST(? AS BLOB), x'', 0)", row.body)
		r.Reopen()
		wantState(t, r, approvals.ApprovalRequired, row.code)
		_, err := r.Gate.Grant(t.Context(), r.ID)
		wantCode(t, err, row.code)
		if body, _, _ := readRow(t, r, approvalRow); string(body) != row.body {
			t.Fatalf("%s: the entry was rewritten: %s", row.what, body)
		}
		r.Approve(offer, "read_notes")
		r.Grant()
		if body, _, _ := readRow(t, r, "kind = 'kept'"); string(body) != row.body {
			t.Fatalf("%s: the entry was not kept", row.what)
		}
		r.Close()
	}
}

// spec/audit.md 3: what cannot be written does not happen.
func TestNothingHappensThatCannotBeWritten(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	running := r.Grant()
	d := r.Ask()
	edit := func(statement string) {
		if err := r.DB.Update(context.Background(), func(tx *sql.Tx) error { _, err := tx.Exec(statement); return err }); err != nil {
			t.Fatal(err)
		}
	}
	edit("CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END")
	if err := r.Gate.Revoke(t.Context(), r.ID, operator); err == nil || running.Err() != nil {
		t.Fatal(err, running.Err())
	}
	if err := r.Gate.Disable(t.Context(), r.ID, operator); err == nil {
		t.Fatal("disabled without a record")
	}
	if _, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator); err == nil {
		t.Fatal("allowed without a record")
	}
	if _, err := r.Gate.ProbeGrant(t.Context(), d.ID); coded.Of(err) != "no-probe" {
		t.Fatal(err)
	}
	if _, err := r.Gate.AddClient(t.Context(), "other", approvals.Scope{All: true}, operator); err == nil || len(r.Gate.Clients()) != 1 {
		t.Fatal("a client was added without a record")
	}
	edit("DROP TRIGGER full")
	if kept, _ := r.Gate.Decision(t.Context(), d.ID); kept.State != approvals.DecisionOpen {
		t.Fatalf("got %s", kept.State)
	}
	if _, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator); err != nil {
		t.Fatal(err)
	}
}

func TestEveryStepIsInTheAudit(t *testing.T) {
	r := approvalstest.New(t)
	d := r.Approve(offer, "read_notes")
	r.Gate.Disable(t.Context(), r.ID, operator)
	r.Gate.Enable(t.Context(), r.ID, operator)
	r.Gate.Revoke(t.Context(), r.ID, operator)
	r.Gate.Answer(t.Context(), r.Ask().ID, approvals.Answer{}, operator)
	r.Ask()
	r.Clock.Add(approvals.DefaultDecisionTTL)
	r.Gate.Sweep(t.Context())
	var actions []string
	err := r.DB.View(t.Context(), func(tx *sql.Tx) error {
		rows, err := tx.Query("SELECT action, actor, via, plugin, binding, identity FROM audit WHERE plugin <> '' ORDER BY seq")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var action, actor, via, plugin, binding, identity string
			if err := rows.Scan(&action, &actor, &via, &plugin, &binding, &identity); err != nil {
				return err
			}
			if plugin != "demo" || binding != "main" || identity != string(d.Identity) {
				t.Errorf("%s: %s %s %s", action, plugin, binding, identity)
			}
			if action != audit.Expire && (actor != operator.User || via != operator.Via) {
				t.Errorf("%s: %s via %s", action, actor, via)
			}
			actions = append(actions, action)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "ask allow ask enable disable enable revoke ask deny ask expire"
	if got := strings.Join(actions, " "); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func TestAcceptingThatCannotBeWrittenAcceptsNothing(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	r.Close()
	if err := os.Remove(filepath.Join(r.Keys(), "head.json")); err != nil {
		t.Fatal(err)
	}
	r.Open()
	err := r.DB.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec("CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Gate.AcceptRollback(t.Context(), false, operator); err == nil {
		t.Fatal("accepted without a record")
	}
	_, err = r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "approval-rolled-back")
}

func TestTheWindowsSettingOutlivesAnOlderStore(t *testing.T) {
	r := approvalstest.New(t)
	r.Close()
	old := filepath.Join(r.Dir, "old.db")
	copyStore(t, r.Database(), old)
	r.Open()
	gui := approvals.By{User: "x", Via: approvals.ViaGUI}
	if err := r.Gate.SetAnswerOnlyInGUI(t.Context(), true, gui); err != nil {
		t.Fatal(err)
	}
	r.Close()
	copyStore(t, old, r.Database())
	r.Open()
	if !r.Gate.AnswerOnlyInGUI() {
		t.Fatal("an older store put back loosened the setting")
	}
	wantCode(t, r.Gate.AcceptRollback(t.Context(), false, operator), "answer-only-in-gui")
	if err := r.Gate.AcceptRollback(t.Context(), false, gui); err != nil || !r.Gate.AnswerOnlyInGUI() {
		t.Fatal(err, "accepting the store loosened the setting")
	}
}
