package host

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sallyport/internal/coded"
)

// settleAgain is how soon the keyring is asked again what became of a change.
const settleAgain = time.Second

// doubts are the secrets whose last change the keyring did not answer: it may have been
// made all the same, and what runs then has the old value.
type doubts struct {
	mu       sync.Mutex
	names    map[string]bool
	settling bool // somebody asks about them
}

// inDoubt reports whether a change that failed may have been made all the same.
func inDoubt(err error) bool {
	switch coded.Of(err) {
	case "keyring-not-answering", "secret-not-restored":
		return true
	}
	return false
}

// settleLater asks about name when the keyring answers again, and treats it as changed
// then: a restart too many harms nothing, an old value in use would.
func (h *Host) settleLater(name string) {
	h.doubts.mu.Lock()
	defer h.doubts.mu.Unlock()
	if h.doubts.names == nil {
		h.doubts.names = map[string]bool{}
	}
	h.doubts.names[name] = true
	if h.doubts.settling || h.ctx.Err() != nil {
		return
	}
	h.doubts.settling = true
	h.work.Go(h.settle)
}

// settle goes on until nothing is in doubt.
func (h *Host) settle() {
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-time.After(settleAgain):
		}
		for _, name := range h.inDoubt() {
			if err := h.Secrets.Settle(h.ctx, name); err != nil {
				continue
			}
			h.doubtEnds(name)
			h.log.Info("the keyring answers again, and a change of a secret that was in doubt is followed", "secret", name)
			h.secretChanged(context.WithoutCancel(h.ctx), name)
		}
		if h.nothingInDoubt() {
			return
		}
	}
}

func (h *Host) inDoubt() []string {
	h.doubts.mu.Lock()
	defer h.doubts.mu.Unlock()
	return slices.Sorted(maps.Keys(h.doubts.names))
}

func (h *Host) doubtEnds(name string) {
	h.doubts.mu.Lock()
	defer h.doubts.mu.Unlock()
	delete(h.doubts.names, name)
}

// nothingInDoubt ends the settling where nothing is, in one step with what begins it.
func (h *Host) nothingInDoubt() bool {
	h.doubts.mu.Lock()
	defer h.doubts.mu.Unlock()
	h.doubts.settling = len(h.doubts.names) > 0
	return !h.doubts.settling
}
