package host

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/mcp"
	"sallyport/runtime/oauth"
	"sallyport/runtime/plugins"
	"sallyport/runtime/store"
)

// loginLimit is how long a person may take to sign in.
const loginLimit = 5 * time.Minute

// Login is one attempt to sign in to a connector.
type Login struct {
	Connector string
	State     string // LoginWaiting, LoginDone or LoginFailed
	// Address is what a browser has to open while it waits; it is for one person, once.
	Address string
	// Opened says that Sallyport has opened the browser itself.
	Opened    bool
	ExpiresAt time.Time
	// Code, Sentence and Next say why it failed, or why the connector did not come up
	// after it.
	Code, Sentence, Next string
	// Decision is the question that follows a first try: which tools may be used.
	Decision string
}

// The states of an attempt. It waits until it is over.
const (
	LoginWaiting = "waiting"
	LoginDone    = "done"
	LoginFailed  = "failed"
)

// logins are the last attempts, one for each connector.
type logins struct {
	mu   sync.Mutex
	last map[plugins.ID]*attempt
}

// attempt is one while it goes on, and its outcome afterwards.
type attempt struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	known  chan struct{} // closed when the address is known, or it is over
	once   sync.Once
	done   chan struct{}

	mu  sync.Mutex
	now Login
	err error
}

func (a *attempt) change(change func(*Login)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.now)
}

func (a *attempt) state() (Login, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now, a.err
}

func (a *attempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// openLogins prepares the sign-ins; nothing is read yet.
func (h *Host) openLogins() {
	h.OAuth = oauth.New(oauth.Config{
		Vault: h.Secrets.Internal(), Index: loginIndex{h.Store}, Network: h.config.Network, Limit: loginLimit,
		Record: h.recordLogin, Needed: h.loginMissing, Now: h.config.Now, Logger: h.log,
	})
}

type byKey struct{}

// recordLogin puts an act on record: of the operator whose request it is, or of
// Sallyport's own.
func (h *Host) recordLogin(ctx context.Context, action string, id plugins.ID, result, reason string) error {
	by, ok := ctx.Value(byKey{}).(approvals.By)
	if !ok {
		by = approvals.By{User: "sallyport", Via: approvals.ViaSallyport}
	}
	_, err := h.Audit.Append(ctx, audit.Record{Action: action, Result: result, Reason: reason, Actor: by.User, Via: by.Via,
		Plugin: id.Plugin, Binding: id.Server})
	return err
}

// loginMissing blocks a connector until a person signs in. Nothing signs in by itself.
func (h *Host) loginMissing(id plugins.ID, why *coded.Error) {
	if why.Code == "oauth-login-needed" {
		h.Gate.Block(id, why)
		return
	}
	h.startFailed(id, why)
}

// BeginLogin begins to sign in to a connector and returns when the address for a
// browser is known; it goes on when ctx ends. Where one is under way already, that is
// returned. With open the browser of this computer is opened.
func (h *Host) BeginLogin(ctx context.Context, id plugins.ID, open bool, by approvals.By) (Login, error) {
	grant, decision, err := h.Gate.LoginGrant(ctx, id, by)
	if err != nil {
		return Login{}, err
	}
	a, begun := h.claimLogin(id)
	if begun {
		h.work.Go(func() { h.login(context.WithValue(a.ctx, byKey{}, by), a, grant, decision, open) })
	}
	select {
	case <-a.known:
	case <-ctx.Done():
		return Login{}, context.Cause(ctx)
	}
	return a.state()
}

// claimLogin returns the attempt under way, or a new one.
func (h *Host) claimLogin(id plugins.ID) (a *attempt, begun bool) {
	h.logins.mu.Lock()
	defer h.logins.mu.Unlock()
	if a := h.logins.last[id]; a != nil && !a.over() {
		return a, false
	}
	if h.logins.last == nil {
		h.logins.last = map[plugins.ID]*attempt{}
	}
	ctx, cancel := context.WithCancelCause(h.ctx)
	a = &attempt{ctx: ctx, cancel: cancel, known: make(chan struct{}), done: make(chan struct{})}
	a.now = Login{Connector: id.String(), State: LoginWaiting, ExpiresAt: h.now().Add(loginLimit).UTC().Truncate(time.Second)}
	h.logins.last[id] = a
	return a, true
}

func (h *Host) login(ctx context.Context, a *attempt, grant approvals.Grant, decision string, open bool) {
	defer a.cancel(nil)
	id := grant.ID()
	err := h.OAuth.Login(ctx, grant, func(address string) error {
		opened := open && h.openBrowser(ctx, address)
		a.change(func(l *Login) { l.Address, l.Opened = address, opened })
		a.once.Do(func() { close(a.known) })
		return nil
	})
	var next string
	var later error
	if err == nil {
		next, later = h.signedIn(id, decision)
	}
	a.change(func(l *Login) {
		l.Address, l.Decision, l.State = "", next, LoginDone
		if err != nil {
			l.State, a.err = LoginFailed, err
			later = err
		}
		l.Code, l.Sentence, l.Next = inWords(later)
	})
	a.once.Do(func() { close(a.known) })
	close(a.done)
	h.Events.add("login", id.String(), coded.Of(err))
}

// inWords is an error as far as it may be shown.
func inWords(err error) (code, sentence, next string) {
	var why *coded.Error
	switch {
	case err == nil:
		return "", "", ""
	case errors.As(err, &why):
		return why.Code, why.Error(), why.Next
	}
	return "internal", "something went wrong inside Sallyport", "see the log, and try again"
}

// openBrowser reports whether one was opened. That none could be is no failure: the
// address is shown in any case.
func (h *Host) openBrowser(ctx context.Context, address string) bool {
	err := h.config.Browser.Open(ctx, address)
	if err != nil {
		h.log.Warn("no browser was opened", "error", err)
	}
	return err == nil
}

// signedIn lets a connector go on: its first try, if one waited, or its next start.
func (h *Host) signedIn(id plugins.ID, decision string) (next string, err error) {
	if decision == "" {
		h.Gate.Unpark(id)
		return "", h.Pool.Stop(h.ctx, id, coded.New("signed-in", "somebody has just signed in to it; try again"))
	}
	allowed, err := h.Gate.Decision(h.ctx, decision)
	if err != nil {
		return "", err
	}
	asked, err := h.probe(allowed)
	if err != nil {
		return "", err
	}
	return asked.ID, nil
}

// LoginState returns the last attempt to sign in to a connector. It waits until that
// is over, or for ctx.
func (h *Host) LoginState(ctx context.Context, id plugins.ID) (Login, error) {
	a, err := h.lastLogin(id)
	if err != nil {
		return Login{}, err
	}
	select {
	case <-a.done:
	case <-ctx.Done():
	}
	state, _ := a.state()
	return state, nil
}

// CancelLogin ends an attempt that waits; one that is over stays as it is.
func (h *Host) CancelLogin(ctx context.Context, id plugins.ID) error {
	a, err := h.lastLogin(id)
	if err != nil {
		return err
	}
	a.cancel(&coded.Error{Code: "oauth-login-cancelled", Sentence: "the sign-in was cancelled", Next: "begin again: sallyport login " + id.String()})
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *Host) lastLogin(id plugins.ID) (*attempt, error) {
	h.logins.mu.Lock()
	defer h.logins.mu.Unlock()
	if a := h.logins.last[id]; a != nil {
		return a, nil
	}
	return nil, &coded.Error{Code: "login-unknown", Sentence: "nobody has begun to sign in to it", Next: "sallyport login " + id.String()}
}

// Logout forgets what a connector was given when somebody signed in, and stops it. It
// returns how many sign-ins there were.
func (h *Host) Logout(ctx context.Context, id plugins.ID, by approvals.By) (int, error) {
	n, err := h.OAuth.Logout(context.WithValue(ctx, byKey{}, by), id)
	if n == 0 {
		return 0, err
	}
	why := &coded.Error{Code: "oauth-login-needed", Sentence: "somebody signed out of it", Next: "sallyport login " + id.String()}
	return n, errors.Join(err, h.Pool.Stop(context.WithoutCancel(ctx), id, why))
}

// forgetLogins is Logout for a connector whose approval has ended for good.
func (h *Host) forgetLogins(id plugins.ID) {
	if _, err := h.OAuth.Logout(h.ctx, id); err != nil && h.ctx.Err() == nil {
		h.log.Error("the tokens of a connector could not be removed from the keyring", "connector", id.String(), "error", err)
	}
}

// bearer signs what a connector sends.
func (h *Host) bearer(l approvals.Launch, probe bool) mcp.Bearer { return h.OAuth.Bearer(l, probe) }

// loginIndex keeps the list of sign-ins in the database. It grants nothing, so it is
// not sealed: a token is found by its connector and endpoint alone.
type loginIndex struct{ db *store.DB }

const loginIndexKey = "oauth-logins"

// Logins returns the list.
func (n loginIndex) Logins(ctx context.Context) (list []oauth.Entry, err error) {
	err = n.db.View(ctx, func(tx *sql.Tx) error {
		list, err = readLogins(ctx, tx)
		return err
	})
	return list, err
}

// ChangeLogins replaces the list.
func (n loginIndex) ChangeLogins(ctx context.Context, change func([]oauth.Entry) []oauth.Entry) error {
	return n.db.Update(ctx, func(tx *sql.Tx) error {
		list, err := readLogins(ctx, tx)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(change(list))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", loginIndexKey, raw)
		return err
	})
}

func readLogins(ctx context.Context, tx *sql.Tx) (list []oauth.Entry, err error) {
	var raw []byte
	err = tx.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", loginIndexKey).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of sign-ins: %w", err)
	}
	return list, nil
}
