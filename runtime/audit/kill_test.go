package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/runtime/store"
)

// fileHead is a keeper without a seal, as durable as the real one.
type fileHead string

func (f fileHead) Load() (head Head, kept bool, err error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &head)
	}
	return head, err == nil, err
}

func (f fileHead) Save(head Head) error {
	data, err := json.Marshal(head)
	if err != nil {
		return err
	}
	return atomicfile.Write(string(f), data, 0o600)
}

// writeUntilKilled is the child: it appends, queues and prints what Append has
// acknowledged.
func writeUntilKilled(path string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	db, err := store.Open(context.Background(), store.Config{Path: path})
	fail(err)
	l, err := Open(context.Background(), Config{DB: db, Head: fileHead(path + ".head")})
	fail(err)
	fail(l.Problem())
	for {
		l.Call(Record{Action: Call, Result: OK, Plugin: "demo"})
		l.Refused(Record{Plugin: "demo", Reason: "r"})
		r, err := l.Append(context.Background(), Record{Action: Start, Result: OK})
		fail(err)
		fmt.Println(r.Seq, r.Hash)
	}
}

func TestKillingTheWriterLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sallyport.db")
	for range 20 {
		seq, hash := killAfter(t, path, 1+rand.IntN(40), time.Duration(rand.IntN(3000))*time.Microsecond)
		db, err := store.Open(t.Context(), store.Config{Path: path, MustExist: true})
		must(t, err)
		report, err := VerifyDatabase(t.Context(), db, fileHead(path+".head"))
		must(t, err)
		if report.Last < seq {
			t.Fatalf("record %d was acknowledged, the last is %d", seq, report.Last)
		}
		page, err := QueryDatabase(t.Context(), db, Filter{After: seq - 1, Before: seq + 1})
		must(t, err)
		if len(page.Records) != 1 || page.Records[0].Hash != hash {
			t.Fatalf("record %d is now %+v", seq, page.Records)
		}
		must(t, db.Check(t.Context()))
		must(t, db.Close())
	}
}

// killAfter starts a writer and kills it once it has acknowledged lines records
// and a moment has passed; it returns the last one acknowledged.
func killAfter(t *testing.T, path string, lines int, moment time.Duration) (seq uint64, hash string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "SALLYPORT_AUDIT_WRITER="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	scanner := bufio.NewScanner(out)
	for n := 0; scanner.Scan(); n++ {
		if strings.HasPrefix(scanner.Text(), "error") {
			t.Error(scanner.Text())
		}
		if _, err := fmt.Sscan(scanner.Text(), &seq, &hash); err != nil {
			t.Errorf("the writer said %q", scanner.Text())
		}
		if n == lines {
			time.AfterFunc(moment, func() { cmd.Process.Kill() }) // at a random point of its work
		}
	}
	cmd.Wait()
	return seq, hash
}
