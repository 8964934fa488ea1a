package host

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/secrets"
)

const (
	// KeyringLimit is how long a call to the keyring may take, with a little for what
	// surrounds it.
	KeyringLimit = 6 * time.Second
	// keyMoment is how long a start waits for the seal key: an open keyring answers in
	// a few milliseconds, and where there is none that is known at once.
	keyMoment = 250 * time.Millisecond
	// keyAgain is how soon the keyring is asked again.
	keyAgain = 2 * time.Second
)

// keyring is the system's keyring as the approvals need it. It is nil where the
// operator said that there is none, by choosing an encrypted file, before a key was in
// it.
func (h *Host) keyring() approvals.Keyring {
	if h.Secrets != h.keys && !approvals.KeptInKeyring(h.Places.Keys()) {
		return nil
	}
	return sealKeyring{h.keys}
}

// sealKeyring lets the approvals keep the seal key in the keyring.
type sealKeyring struct{ keys *secrets.Store }

func (s sealKeyring) Ready(ctx context.Context) error { return s.keys.Ready(ctx) }

func (s sealKeyring) Get(ctx context.Context, entry string) ([]byte, error) {
	value, err := s.keys.Own(entry).Get(ctx)
	if errors.Is(err, secrets.ErrNotFound) {
		return nil, fs.ErrNotExist
	}
	return value, err
}

func (s sealKeyring) Set(ctx context.Context, entry string, value []byte) error {
	return s.keys.Own(entry).Set(ctx, value)
}

func (s sealKeyring) Delete(ctx context.Context, entry string) error {
	return s.keys.Own(entry).Delete(ctx)
}

// fetchKey asks the keyring for the seal key until it is there or lost for good, apart
// from whatever else goes on. A person is asked once; after that the keyring is looked
// at until somebody has unlocked it.
func (h *Host) fetchKey() {
	h.keyed = make(chan struct{})
	h.work.Go(func() {
		for ask := true; ; ask = false {
			err := h.Gate.FetchKey(h.ctx, ask)
			if ask {
				close(h.keyed)
			}
			if coded.Of(err) != "seal-key-unavailable" {
				if err != nil && h.ctx.Err() == nil {
					h.log.Error("the seal key cannot be had", "error", err)
				}
				h.keyFetched()
				return
			}
			if ask {
				h.log.Warn("no approval counts before the keyring gives the seal key", "error", err)
			}
			select {
			case <-h.ctx.Done():
				return
			case <-time.After(keyAgain):
			}
		}
	})
}

// ReportSealKey tells health at once what was done about the key.
func (h *Host) ReportSealKey() { h.reportGate() }

// awaitKey gives the keyring a moment for its first answer, whatever that is, or as long
// as the configuration says.
func (h *Host) awaitKey(ctx context.Context) {
	wait := h.config.KeyWait
	if wait == 0 {
		wait = keyMoment
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-h.keyed:
	case <-late.C:
	case <-ctx.Done():
	}
}

// keyFetched shows at once what counts now, where health is reported.
func (h *Host) keyFetched() {
	if h.started.Load() && h.ctx.Err() == nil {
		h.reportGate()
		h.sweepInstallations() // which decisions there are is known only now
	}
}

// ProbeKeyring asks how the place of the secrets is now, and what to do about it. The
// seal key may wait for another one: where the secrets are in an encrypted file and the
// key is not, the keyring that has the key is asked.
func (h *Host) ProbeKeyring(ctx context.Context) (secrets.State, secrets.Help) {
	store := h.Secrets
	if h.Gate.Waiting() != nil {
		store = h.keys
	}
	state := store.Probe(ctx)
	return state, store.Help(state.Code)
}
