package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/internal/onejson"
	"sallyport/runtime/audit"
)

// Keyring is where the seal key is kept in preference to a file (spec/approval.md
// 5.4). Whoever hands it in bounds each call. Errors but fs.ErrNotExist are coded and
// say what to do.
type Keyring interface {
	// Ready says, without asking a person, whether it could be used now.
	Ready(ctx context.Context) error
	// Get returns an entry, or fs.ErrNotExist. It may ask a person.
	Get(ctx context.Context, entry string) ([]byte, error)
	// Set keeps value, so that Get returns it, or leaves what was there.
	Set(ctx context.Context, entry string, value []byte) error
	// Delete removes an entry, if there is one.
	Delete(ctx context.Context, entry string) error
}

// KeyPlace is where the seal key is.
type KeyPlace string

// The places of the seal key.
const (
	KeyNowhere   KeyPlace = "" // none was made yet, or it is lost
	KeyInFile    KeyPlace = "file"
	KeyInKeyring KeyPlace = "keyring"
)

const (
	placeFile       = "seal.json" // there where the key is in the keyring
	codeUnavailable = "seal-key-unavailable"
)

// placed is seal.json. Where it is, the key is in the keyring and nowhere else: a
// keyring that is locked or gone is waited for, and no second key is made.
type placed struct {
	In      KeyPlace `json:"in"`
	Install string   `json:"install"`
}

// KeptInKeyring reports whether the folder of keys says that the key is in the keyring.
func KeptInKeyring(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, placeFile))
	return err == nil
}

func (k *Keeper) readPlace() (placed, error) {
	raw, err := os.ReadFile(filepath.Join(k.dir, placeFile))
	if err != nil {
		return placed{}, err
	}
	var p placed
	if onejson.Decode(raw, &p) != nil || p.In != KeyInKeyring || p.Install == "" {
		return placed{}, errors.New("the note of where the seal key is cannot be understood")
	}
	return p, nil
}

func (k *Keeper) writePlace(p placed) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(k.dir, placeFile), append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot note where the seal key is: %w", err)
	}
	return nil
}

// entryOf is the key's name in the keyring. Each installation has its own, so that a
// new one does not overwrite the key of one that may come back from a backup.
func entryOf(install string) string { return "seal-key-" + install }

func unavailable(cause error) *coded.Error {
	e := &coded.Error{Code: codeUnavailable, Err: cause,
		Sentence: "no approval can be checked yet: the keyring is being asked for the key that they are sealed with",
		Next:     "wait a moment, then try again"}
	var why *coded.Error
	if errors.As(cause, &why) {
		e.Sentence = "no approval can be checked before the keyring gives the key that they are sealed with: " + why.Sentence
		e.Next = "sallyport doctor says what to do on this system"
	}
	return e
}

// fetched is what came of asking the keyring.
type fetched struct {
	key keyText
	in  KeyPlace
}

// waits reports whether the keyring has still to be asked.
func (k *Keeper) waits() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting
}

// place says where the key is.
func (k *Keeper) place() KeyPlace {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.in
}

// fetch asks the keyring once, without a lock: it takes as long as a call may. With
// ask it may ask a person. The refusal is seal-key-unavailable while it is worth asking
// again.
func (k *Keeper) fetch(ctx context.Context, ask bool) (fetched, *coded.Error) {
	k.mu.Lock()
	install, first := k.install, k.in == KeyNowhere
	k.mu.Unlock()
	if first {
		return k.firstKey(ctx), nil
	}
	if !ask {
		if err := k.ring.Ready(ctx); err != nil {
			return fetched{}, unavailable(err)
		}
	}
	raw, err := k.ring.Get(ctx, entryOf(install))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fetched{}, &coded.Error{Code: "seal-key-missing", Err: err,
			Sentence: "the keyring no longer has the key that seals the approvals, so none can be checked",
			Next:     "start Sallyport in the session whose keyring has it; if it is lost: sallyport decisions accept-store, and approve every connector again"}
	case err != nil:
		return fetched{}, unavailable(err)
	}
	key, err := parseKey(raw)
	if err == nil && key.install != install {
		err = errors.New("the keyring's key is another installation's")
	}
	if err != nil {
		return fetched{}, keyFault("seal-key-damaged", "the seal key in the keyring cannot be used", err)
	}
	return fetched{key, KeyInKeyring}, nil
}

// firstKey makes the first key of an installation, in the keyring if that takes it
// without asking a person. Nothing is sealed with it before it is adopted; one that could
// not be adopted (a full disk) is the one of the next try, so that the keyring has one entry.
func (k *Keeper) firstKey(ctx context.Context) fetched {
	k.mu.Lock()
	if k.made == nil {
		made := newKey()
		k.made = &made
	}
	key := *k.made
	k.mu.Unlock()
	if k.ring.Ready(ctx) != nil || k.ring.Set(ctx, entryOf(key.install), key.text()) != nil {
		return fetched{key, KeyInFile}
	}
	return fetched{key, KeyInKeyring}
}

// adopt takes over what fetch brought, unless an operator accepted the loss of the
// key meanwhile.
func (k *Keeper) adopt(f fetched) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.waiting {
		return nil
	}
	if k.in == KeyNowhere {
		if err := k.keep(f); err != nil {
			return err
		}
	}
	k.waiting, k.fault, k.key = false, nil, f.key.key
	switch err := k.readHead(); {
	case errors.Is(err, fs.ErrNotExist) && !k.used:
		if err := k.saveHead(); err != nil {
			k.key, k.fault = nil, keyFault("seal-key-damaged", "the sealed head cannot be written", err)
			return err
		}
	case err != nil:
		k.fault = rolledBack("the sealed head is missing or damaged", err)
	}
	if k.in == KeyInKeyring {
		k.dropCopy(f.key)
	}
	return nil
}

// keep makes f the key, and durable where it is a file. k.mu is held.
func (k *Keeper) keep(f fetched) error {
	if f.in == KeyInKeyring {
		if err := k.writePlace(placed{KeyInKeyring, f.key.install}); err != nil {
			return err
		}
	} else if err := atomicfile.WriteNew(filepath.Join(k.dir, keyFile), f.key.text(), 0o600); err != nil {
		return fmt.Errorf("cannot keep the seal key: %w", err)
	}
	k.key, k.install, k.in = f.key.key, f.key.install, f.in
	k.head.Install = k.install
	return nil
}

// dropCopy removes the file of a key that is in the keyring: what a crash in the
// middle of a move left. Another key's is left alone.
func (k *Keeper) dropCopy(key keyText) {
	path := filepath.Join(k.dir, keyFile)
	if raw, err := os.ReadFile(path); err == nil && bytes.Equal(raw, key.text()) {
		_ = os.Remove(path) // tried again at the next start
	}
}

// gaveUp keeps why the keyring did not give the key. Only seal-key-unavailable is
// waited for.
func (k *Keeper) gaveUp(why *coded.Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting {
		k.fault, k.waiting = why, why.Code == codeUnavailable
	}
}

// move puts the key into the other place. It is there before it leaves the first, and
// until seal.json says otherwise the first is the one that counts.
func (k *Keeper) move(ctx context.Context, to KeyPlace) error {
	k.moving.Lock()
	defer k.moving.Unlock()
	k.mu.Lock()
	key, in, fault := keyText{k.install, k.key}, k.in, k.fault
	k.mu.Unlock()
	switch {
	case fault != nil:
		return fault
	case in == to:
		return &coded.Error{Code: "seal-key-there", Sentence: "the seal key is in the " + string(to) + " already"}
	case k.ring == nil:
		return &coded.Error{Code: "seal-key-no-keyring", Sentence: "no keyring is used here", Next: "start Sallyport without an encrypted file of secrets, in a session with a keyring"}
	case to == KeyInKeyring:
		return k.intoKeyring(ctx, key)
	}
	return k.intoFile(ctx, key)
}

func (k *Keeper) intoKeyring(ctx context.Context, key keyText) error {
	if err := k.ring.Set(ctx, entryOf(key.install), key.text()); err != nil {
		return err
	}
	if err := k.writePlace(placed{KeyInKeyring, key.install}); err != nil {
		return err
	}
	k.nowIn(KeyInKeyring)
	if err := os.Remove(filepath.Join(k.dir, keyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &coded.Error{Code: "seal-key-copy", Sentence: "the seal key is in the keyring now, but its file could not be removed", Err: err,
			Next: "remove seal.key from the folder keys of the state folder"}
	}
	return nil
}

func (k *Keeper) intoFile(ctx context.Context, key keyText) error {
	k.dropCopy(key)
	if err := atomicfile.WriteNew(filepath.Join(k.dir, keyFile), key.text(), 0o600); err != nil {
		return fmt.Errorf("cannot keep the seal key: %w", err)
	}
	if err := os.Remove(filepath.Join(k.dir, placeFile)); err != nil {
		return fmt.Errorf("cannot note where the seal key is: %w", err)
	}
	k.nowIn(KeyInFile)
	if err := k.ring.Delete(ctx, entryOf(key.install)); err != nil {
		return &coded.Error{Code: "seal-key-copy", Sentence: "the seal key is in its file now, but the keyring still has a copy", Err: err,
			Next: "remove the entry in the keyring's own program, if you do not want it there"}
	}
	return nil
}

func (k *Keeper) nowIn(place KeyPlace) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.in = place
}

// Waiting says why nothing counts yet where the keyring is still being asked for the
// seal key, or returns nil.
func (g *Gate) Waiting() *coded.Error {
	if !g.keeper.waits() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.docs.fault
}

// KeyPlace says where the seal key is.
func (g *Gate) KeyPlace() KeyPlace { return g.keeper.place() }

// FetchKey asks the keyring once for the seal key, or makes the first, and takes over
// what it seals. It takes as long as a call to the keyring may; nothing waits for it
// but its caller. With ask the keyring may ask a person. The refusal is
// seal-key-unavailable while it is worth trying again. Where nothing is waited for it
// does nothing.
func (g *Gate) FetchKey(ctx context.Context, ask bool) error {
	if !g.keeper.waits() {
		return nil
	}
	got, why := g.keeper.fetch(ctx, ask)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot wait for the keyring: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return coded.New("closing", "Sallyport is closing")
	}
	if why != nil {
		g.keeper.gaveUp(why)
		if _, fault := g.keeper.state(); fault != nil {
			g.docs.fault = fault
		}
		return why
	}
	if err := g.keeper.adopt(got); err != nil {
		return err
	}
	return g.reload(ctx)
}

// reload judges everything anew, with the key that has come. g.mu is held.
func (g *Gate) reload(ctx context.Context) error {
	if err := g.docs.load(ctx); err != nil {
		return err
	}
	g.takeOver()
	if err := g.settleProbes(ctx); err != nil {
		return err
	}
	if err := g.interruptCalls(ctx); err != nil {
		return err
	}
	g.tell(Event{Kind: "settings", Code: "seal-key"})
	if err := g.cfg.Audit.Recompare(ctx); err != nil {
		return fmt.Errorf("the approvals count, but the audit's head is not sealed: %w", err)
	}
	return nil
}

// MoveKey moves the seal key into the keyring or into a file, on record first. It may
// ask a person to unlock the keyring.
func (g *Gate) MoveKey(ctx context.Context, to KeyPlace, by By) error {
	head, _ := g.keeper.state()
	if err := by.mayAnswer(head.GUIOnly); err != nil {
		return err
	}
	if to != KeyInFile && to != KeyInKeyring {
		return coded.New("bad-request", "the seal key is kept in the keyring or in a file")
	}
	record := audit.Record{Action: audit.Setting, Result: audit.OK, Target: "seal-key-" + string(to), Actor: by.User, Via: by.Via}
	if _, err := g.cfg.Audit.Append(ctx, record); err != nil {
		return err
	}
	err := g.keeper.move(ctx, to)
	if err != nil {
		record.Result, record.Reason = audit.Failed, coded.Of(err)
		_, recordErr := g.cfg.Audit.Append(context.WithoutCancel(ctx), record)
		return errors.Join(err, recordErr)
	}
	return nil
}
