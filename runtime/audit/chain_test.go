package audit

import (
	"database/sql"
	"fmt"
	"testing"

	"sallyport/runtime/store"
)

// tenRecords is a log of ten sealed records, no two alike.
func tenRecords(t *testing.T) (*store.DB, *memoryHead) {
	t.Helper()
	head := &memoryHead{}
	l, db := newLog(t, Config{Head: head})
	for i := range 10 {
		mustAppend(t, l, Record{
			Action: Actions()[i], Result: Results()[i%3], Actor: "ada", Via: "cli", Plugin: fmt.Sprint("p", i),
			Version: "1", Binding: "main", Target: "t", Reason: "r", Identity: "i", Decision: "d", Client: "c",
			DurationMs: int64(i),
		})
	}
	wantVerified(t, db, head, 10)
	return db, head
}

func TestOneChangedFieldIsFoundAtItsRecord(t *testing.T) {
	t.Parallel()
	db, head := tenRecords(t)
	for _, field := range []string{
		"at", "actor", "via", "action", "plugin", "version", "binding", "target", "result",
		"reason", "identity", "decision", "client", "prev", "hash",
	} {
		for _, seq := range []int{1, 5, 10} {
			was := fmt.Sprintf(`(SELECT %s FROM audit WHERE seq = %d)`, field, seq)
			for _, value := range []string{`''`, `'x'`, was + ` || ' '`} {
				if field == "prev" || field == "hash" {
					value = `'x' || substr(` + was + `, 2)`
				}
				tamper(t, db, `CREATE TABLE saved AS SELECT * FROM audit`)
				tamper(t, db, fmt.Sprintf(`UPDATE audit SET %s = %s WHERE seq = %d`, field, value, seq))
				wantBreak(t, fmt.Sprintf("%s of %d is %s", field, seq, value), db, head, CodeBroken, uint64(seq))
				tamper(t, db, `DELETE FROM audit`)
				tamper(t, db, `INSERT INTO audit SELECT * FROM saved`)
				tamper(t, db, `DROP TABLE saved`)
			}
		}
	}
	for _, field := range []string{"count", "duration_ms"} {
		for _, change := range []string{"+ 1", "- 1", "* -1 - 5", "+ 9007199254740992"} {
			tamper(t, db, `CREATE TABLE saved AS SELECT * FROM audit`)
			tamper(t, db, fmt.Sprintf(`UPDATE audit SET %s = %s %s WHERE seq = 5`, field, field, change))
			wantBreak(t, field+change, db, head, CodeBroken, 5)
			tamper(t, db, `DELETE FROM audit`)
			tamper(t, db, `INSERT INTO audit SELECT * FROM saved`)
			tamper(t, db, `DROP TABLE saved`)
		}
	}
	wantVerified(t, db, head, 10)
}

func TestRecordsTakenAwayOrMoved(t *testing.T) {
	for _, v := range []struct {
		name, sql string
		code      string
		seq       uint64
	}{
		{"one from the middle", `DELETE FROM audit WHERE seq = 5`, CodeBroken, 5},
		{"several from the middle", `DELETE FROM audit WHERE seq IN (4, 5, 8)`, CodeBroken, 4},
		{"the first", `DELETE FROM audit WHERE seq = 1`, CodeBroken, 1},
		{"the first five", `DELETE FROM audit WHERE seq <= 5`, CodeBroken, 1},
		{"the last", `DELETE FROM audit WHERE seq = 10`, CodeTruncated, 10},
		{"the last three", `DELETE FROM audit WHERE seq > 7`, CodeTruncated, 8},
		{"all", `DELETE FROM audit`, CodeTruncated, 1},
		{"two swapped", `UPDATE audit SET seq = CASE seq WHEN 3 THEN -4 WHEN 4 THEN -3 END WHERE seq IN (3, 4);
			UPDATE audit SET seq = -seq WHERE seq < 0`, CodeBroken, 3},
		{"one moved to the end", `UPDATE audit SET seq = 11 WHERE seq = 5`, CodeBroken, 5},
		{"one before the first", `INSERT INTO audit SELECT 0, at, actor, via, action, plugin, version, binding, target, result,
			reason, identity, decision, client, count, duration_ms, prev, hash FROM audit WHERE seq = 1`, CodeBroken, 1},
		{"one with a negative seq", `UPDATE audit SET seq = -1 WHERE seq = 1`, CodeBroken, 1},
		{"one copied to the end", `INSERT INTO audit SELECT 11, at, actor, via, action, plugin, version, binding, target, result,
			reason, identity, decision, client, count, duration_ms, prev, hash FROM audit WHERE seq = 10`, CodeBroken, 11},
	} {
		db, head := tenRecords(t)
		tamper(t, db, v.sql)
		wantBreak(t, v.name, db, head, v.code, v.seq)
	}
}

// Somebody who can write the database can compute hashes; only the sealed head
// tells then.
func TestAWholeChainWrittenAnewIsNotTheSealedOne(t *testing.T) {
	_, head := tenRecords(t)
	for _, n := range []int{9, 10, 12} {
		forged, db := newLog(t, Config{})
		fill(t, forged, n, Record{})
		wantVerified(t, db, nil, uint64(n))
		if n < 10 {
			wantBreak(t, "a shorter one", db, head, CodeTruncated, 10)
		} else {
			wantBreak(t, "one as long", db, head, CodeBroken, 10)
		}
	}
}

func TestADatabaseAheadOfTheHeadIsFine(t *testing.T) {
	db, head := tenRecords(t)
	l := openLog(t, Config{DB: db}) // a crash between commit and Save
	mustAppend(t, l, Record{Action: Stop, Result: OK})
	wantVerified(t, db, head, 11)
	again := openLog(t, Config{DB: db, Head: head})
	must(t, again.Problem())
	report, err := again.Verify(t.Context())
	if err != nil || !report.HeadChecked || report.Last != 11 {
		t.Errorf("got %+v, %v", report, err)
	}
}

func TestASealedHeadThatDoesNotMatchIsKeptUntilReseal(t *testing.T) {
	db, head := tenRecords(t)
	sealed := head.get()
	tamper(t, db, `DELETE FROM audit WHERE seq > 7`)
	l := openLog(t, Config{DB: db, Head: head})
	wantCode(t, "after opening", l.Problem(), CodeTruncated)
	for range 5 { // even when there are more records again than were sealed
		mustAppend(t, l, Record{Action: Stop, Result: OK})
	}
	must(t, l.SaveHead(t.Context()))
	must(t, l.Flush(t.Context()))
	if head.get() != sealed {
		t.Error("the evidence was overwritten")
	}
	_, err := l.Verify(t.Context())
	wantCode(t, "verifying", err, CodeBroken)
	wantCode(t, "retention", l.Retain(t.Context()), CodeTruncated)

	must(t, l.Reseal(t.Context()))
	must(t, l.Problem())
	wantVerified(t, db, head, 12)
	mustAppend(t, l, Record{Action: Stop, Result: OK})
	if head.get().Seq != 13 {
		t.Errorf("sealed is %d", head.get().Seq)
	}
}

func TestAHeadThatCannotBeReadOrKeptIsAProblem(t *testing.T) {
	db, head := tenRecords(t)
	l := openLog(t, Config{DB: db, Head: head})
	head.fail(errDisk)
	mustAppend(t, l, Record{Action: Stop, Result: OK}) // the record is there all the same
	wantCode(t, "not kept", l.Problem(), CodeUnsealed)
	wantCode(t, "Flush", l.Flush(t.Context()), CodeUnsealed)
	_, err := l.Verify(t.Context())
	wantCode(t, "Verify", err, CodeUnsealed)

	unread := openLog(t, Config{DB: db, Head: head})
	wantCode(t, "not read", unread.Problem(), CodeUnsealed)
	head.fail(nil)
	must(t, l.Flush(t.Context()))
	must(t, l.Problem())
	if head.get().Seq != 11 {
		t.Errorf("sealed is %d", head.get().Seq)
	}
}

// A changed record with a hash that fits it: the next one gives it away.
func TestOneRecordWrittenAnewBreaksTheNext(t *testing.T) {
	db, head := tenRecords(t)
	must(t, db.Update(t.Context(), func(tx *sql.Tx) error {
		var forged row
		err := eachRow(tx, func(r *row) error { forged = *r; return nil }, selectRows+` WHERE seq = 5`)
		if err != nil {
			return err
		}
		forged.Actor = "eve"
		forged.Hash, _ = forged.sum()
		_, err = tx.Exec(`UPDATE audit SET actor = ?, hash = ? WHERE seq = 5`, forged.Actor, forged.Hash)
		return err
	}))
	wantBreak(t, "one written anew", db, head, CodeBroken, 6)
	wantBreak(t, "and nothing sealed", db, nil, CodeBroken, 6)
}
