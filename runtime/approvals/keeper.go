package approvals

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/internal/jcs"
	"sallyport/internal/onejson"
	"sallyport/runtime/audit"
	"sallyport/runtime/store"
)

const (
	keyFile    = "seal.key"
	headFile   = "head.json"
	keyVersion = "sallyport-seal-1"
	keyBytes   = 32
)

// Keeper holds the key of the seals and the sealed head: how far the store and
// the audit had come (spec/approval.md 5.4). The head is a 0600 file, and so is the
// key where no keyring has it, in a folder that is not the database's, so that a store
// that is put back, copied or edited does not bring its own proof along. It is open
// before the audit and the gate, which both keep their part of the head in it.
//
// A keyring is asked later (fetch) and by somebody who can wait: until then nothing
// that was sealed counts, and nothing is sealed.
type Keeper struct {
	dir    string
	ring   Keyring    // nil: the key is in a file
	moving sync.Mutex // one at a time

	mu      sync.Mutex
	key     []byte // nil: there is none, and nothing that was sealed counts
	install string
	in      KeyPlace
	waiting bool     // for the keyring; fault says so
	used    bool     // the store held sealed documents when this was opened
	made    *keyText // the first key, until it is adopted
	head    head
	fault   *coded.Error // why the key or the head cannot be believed
}

// head is head.json. Its seal covers every other field.
type head struct {
	Install   string `json:"install"`
	Epoch     int64  `json:"epoch"`
	List      string `json:"list"`     // seal of the list of seals of that epoch
	AuditSeq  string `json:"auditSeq"` // decimal
	AuditHash string `json:"auditHash"`
	GUIOnly   bool   `json:"guiOnly"` // so that a store put back does not loosen it
	Seal      string `json:"seal,omitempty"`
}

// OpenKeeper reads key and head from dir, which must exist, without a call to ring,
// which may be nil. A key is made only where db holds nothing that was ever sealed: a
// missing key beside sealed documents is reported by the gate and never replaced in
// silence. Where the key is ring's, or could be, Gate.FetchKey has to follow.
func OpenKeeper(ctx context.Context, dir string, db *store.DB, ring Keyring) (*Keeper, error) {
	k, err := readKeeper(ctx, dir, db, ring)
	switch {
	case err != nil:
		return nil, err
	case k.fault != nil:
		return k, nil
	case k.key != nil:
		if k.head.Seal == "" {
			return k, k.saveHead()
		}
		return k, nil
	case ring != nil:
		k.waiting, k.fault = true, unavailable(nil)
		return k, nil
	}
	return k, k.makeKey()
}

// ReadKeeper is OpenKeeper for whoever only compares: it makes nothing, and asks ring
// at once for a key that is in it.
func ReadKeeper(ctx context.Context, dir string, db *store.DB, ring Keyring) (*Keeper, error) {
	k, err := readKeeper(ctx, dir, db, ring)
	if err != nil || !k.waiting {
		return k, err
	}
	got, why := k.fetch(ctx, true)
	if why != nil {
		return nil, why
	}
	return k, k.adopt(got)
}

// readKeeper reads what there is. Without a key and a fault there is none yet.
func readKeeper(ctx context.Context, dir string, db *store.DB, ring Keyring) (*Keeper, error) {
	used, err := hasSealed(ctx, db)
	if err != nil {
		return nil, err
	}
	k := &Keeper{dir: dir, ring: ring, used: used}
	switch place, err := k.readPlace(); {
	case err == nil:
		k.install, k.in, k.head.GUIOnly = place.Install, KeyInKeyring, k.claimedGUIOnly()
		k.waiting, k.fault = ring != nil, unavailable(nil)
		if ring == nil {
			k.fault = unavailable(coded.New("keyring-none", "no keyring is used here"))
		}
		return k, nil
	case !errors.Is(err, fs.ErrNotExist):
		k.fault = keyFault("seal-key-damaged", "the place of the seal key cannot be read", err)
		return k, nil
	}
	switch err := k.readKey(); {
	case err == nil:
		err = k.readHead()
		if err != nil && (used || !errors.Is(err, fs.ErrNotExist)) {
			k.fault = rolledBack("the sealed head is missing or damaged", err)
		}
		return k, nil
	case !errors.Is(err, fs.ErrNotExist):
		k.fault = keyFault("seal-key-damaged", "the seal key cannot be read", err)
		return k, nil
	case used:
		k.head.GUIOnly = k.claimedGUIOnly()
		k.fault = keyFault("seal-key-missing", "the seal key is missing, so no approval can be checked", err)
	}
	return k, nil
}

// claimedGUIOnly reads the setting from a head whose seal cannot be checked: it is
// believed where it is the strict one.
func (k *Keeper) claimedGUIOnly() bool {
	raw, err := os.ReadFile(filepath.Join(k.dir, headFile))
	var claimed head
	return err == nil && onejson.Decode(raw, &claimed) == nil && claimed.GUIOnly
}

func keyFault(code, sentence string, cause error) *coded.Error {
	return &coded.Error{Code: code, Sentence: sentence, Err: cause,
		Next: "put back the key file, or accept the loss (sallyport decisions accept-store) and approve every connector again"}
}

func rolledBack(sentence string, cause error) *coded.Error {
	return &coded.Error{Code: "approval-rolled-back", Sentence: sentence, Err: cause,
		Next: "put the newer store back, or look at what is approved and then: sallyport decisions accept-store"}
}

// hasSealed reports whether db holds a document of this version's. Entries from
// before seals do not count: there never was a key for them.
func hasSealed(ctx context.Context, db *store.DB) (found bool, err error) {
	err = db.View(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT kind, body, length(seal) FROM sealed")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var kind string
			var body []byte
			var sealed int
			if err := rows.Scan(&kind, &body, &sealed); err != nil {
				return err
			}
			found = found || kind == listKind || (sealed > 0 && schemaOf(body) != 0)
		}
		return rows.Err()
	})
	return found, err
}

// keyText is a key as it is written, one line, in the file or the keyring.
type keyText struct {
	install string
	key     []byte
}

func (k keyText) text() []byte { return fmt.Appendf(nil, "%s %s %x\n", keyVersion, k.install, k.key) }

func newKey() keyText {
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails, see crypto/rand
	return keyText{rand.Text(), key}
}

func parseKey(raw []byte) (keyText, error) {
	words := strings.Fields(string(raw))
	if len(words) != 3 || words[0] != keyVersion {
		return keyText{}, errors.New("the key is not one of this version")
	}
	key, err := hex.DecodeString(words[2])
	if err != nil || len(key) != keyBytes {
		return keyText{}, errors.New("the key is damaged")
	}
	return keyText{words[1], key}, nil
}

func (k *Keeper) readKey() error {
	raw, err := os.ReadFile(filepath.Join(k.dir, keyFile))
	if err != nil {
		return err
	}
	read, err := parseKey(raw)
	if err != nil {
		return err
	}
	k.install, k.key, k.in = read.install, read.key, KeyInFile
	k.head.Install = k.install
	return nil
}

// exposed says that others on this computer can read or write the key, as its file
// is now, or returns nil. The key is used all the same: refusing it would stop everything
// that is approved and take nothing back from whoever has read it.
func (k *Keeper) exposed() *coded.Error {
	info, err := os.Stat(filepath.Join(k.dir, keyFile))
	if err != nil || k.place() != KeyInFile || !openToOthers(info) {
		return nil
	}
	return &coded.Error{Code: "seal-key-open", Sentence: "others on this computer can read or write the key that seals the approvals",
		Next: "take their right away (chmod 600) and review what is approved"}
}

// makeKey makes a key in a file.
func (k *Keeper) makeKey() error {
	key := newKey()
	k.head = head{GUIOnly: k.head.GUIOnly}
	if err := k.keep(fetched{key, KeyInFile}); err != nil {
		return err
	}
	return k.saveHead()
}

func (k *Keeper) readHead() error {
	raw, err := os.ReadFile(filepath.Join(k.dir, headFile))
	if err != nil {
		return err
	}
	var read head
	if onejson.Decode(raw, &read) != nil {
		return errors.New("the sealed head is damaged")
	}
	want, err := k.headSeal(read)
	if err != nil || !hmac.Equal([]byte(want), []byte(read.Seal)) || read.Install != k.install {
		return errors.New("the seal of the sealed head does not verify")
	}
	k.head = read
	return nil
}

func (k *Keeper) headSeal(h head) (string, error) {
	h.Seal = ""
	body, err := jcs.Marshal(h)
	if err != nil {
		return "", err
	}
	return sealText(seal(k.key, k.install, "head", "", h.Epoch, body)), nil
}

// saveHead writes the head as it is in memory. Without a key there is nothing to
// seal it with: it stays in memory.
func (k *Keeper) saveHead() error {
	if k.key == nil {
		return nil
	}
	sum, err := k.headSeal(k.head)
	if err != nil {
		return err
	}
	h := k.head
	h.Seal = sum
	raw, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(k.dir, headFile), append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot keep the sealed head: %w", err)
	}
	return nil
}

// Load returns the audit's part of the head (audit.HeadKeeper).
func (k *Keeper) Load() (audit.Head, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault != nil {
		return audit.Head{}, false, k.fault
	}
	seq, err := strconv.ParseUint(k.head.AuditSeq, 10, 64)
	if k.head.AuditSeq == "" || err != nil {
		return audit.Head{}, false, nil
	}
	return audit.Head{Seq: seq, Hash: k.head.AuditHash}, true, nil
}

// Save keeps the audit's part of the head durably (audit.HeadKeeper).
func (k *Keeper) Save(h audit.Head) error {
	return k.change(func(kept *head) {
		kept.AuditSeq, kept.AuditHash = strconv.FormatUint(h.Seq, 10), h.Hash
	})
}

// change applies edit to the head and writes it, unless nothing can be believed:
// then the files stay as they are for inspection.
func (k *Keeper) change(edit func(*head)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	edit(&k.head)
	if k.fault != nil {
		return k.fault
	}
	return k.saveHead()
}

// accept makes key and head believed again, after an operator said so. A key that
// cannot be read is moved aside, not overwritten, and one in the keyring is left there;
// the new one is in a file.
func (k *Keeper) accept(epoch int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key == nil {
		k.waiting = false
		for _, name := range []string{keyFile, placeFile} {
			path := filepath.Join(k.dir, name)
			if err := os.Rename(path, path+".kept-"+rand.Text()[:6]); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cannot move the damaged seal key aside: %w", err)
			}
		}
		if err := k.makeKey(); err != nil {
			return err
		}
	}
	k.head.Install, k.head.Epoch = k.install, max(k.head.Epoch, epoch)
	k.fault = nil
	return k.saveHead()
}

// doubt puts a fault back.
func (k *Keeper) doubt(fault *coded.Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault = fault
}

func (k *Keeper) state() (h head, fault *coded.Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.head, k.fault
}

// seal and verify answer for one document; without a key nothing verifies.
func (k *Keeper) seal(kind, id string, epoch int64, body []byte) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return seal(k.key, k.install, kind, id, epoch, body)
}

func (k *Keeper) verify(kind, id string, epoch int64, body, sum []byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.key != nil && hmac.Equal(seal(k.key, k.install, kind, id, epoch, body), sum)
}
