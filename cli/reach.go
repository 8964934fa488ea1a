package cli

import (
	"context"
	"errors"
	"time"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
	"sallyport/internal/loopback"
	"sallyport/runtime/host"
)

// startGrace is how long a command waits for a sidecar that holds the data
// folder but does not answer yet: it is starting or stopping.
const startGrace = 10 * time.Second

// withHost runs do with a client: of the running sidecar, or of a host that is
// opened for this command alone.
func (c *command) withHost(ctx context.Context, do func(*client.Client) error) error {
	deadline := time.Now().Add(startGrace)
	for {
		err := c.withSidecar(ctx, do)
		if coded.Of(err) != noSidecar {
			return err
		}
		err = c.inProcess(ctx, do)
		if !errors.Is(err, loopback.ErrHeld) {
			return err
		}
		if time.Now().After(deadline) {
			return &coded.Error{Code: "not-answering", Sentence: "another Sallyport has the data folder and does not answer",
				Next: "look for it with: sallyport health; stop it and try again"}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// noSidecar is the code of an error before anything was asked of a sidecar. It is
// not "not-running", which a sidecar that ends meanwhile gives: what was asked of
// that one is not asked again.
const noSidecar = "no-sidecar"

func (c *command) withSidecar(ctx context.Context, do func(*client.Client) error) error {
	running, err := c.sidecar(ctx)
	if coded.Of(err) == "not-running" {
		return coded.New(noSidecar, "no sidecar is running")
	}
	if err != nil {
		return err
	}
	defer running.Close()
	return do(running.Client)
}

// running is a sidecar that has proved itself.
type running struct {
	*client.Client
	found loopback.Discovery
	key   []byte
}

// sidecar connects to the running sidecar after it has proved itself: only then
// does it get to see a token (spec/local-api.md 4).
func (c *command) sidecar(ctx context.Context) (*running, error) {
	places := c.places()
	found, key, err := c.findSidecar(ctx)
	if err != nil {
		return nil, err
	}
	token, err := places.ReadToken("operator")
	if err != nil {
		return nil, err
	}
	return &running{client.New(found.Port, key, token, "cli"), found, key}, nil
}

// findSidecar is client.Find for these places.
func (c *command) findSidecar(ctx context.Context) (loopback.Discovery, []byte, error) {
	return client.Find(ctx, c.places().State)
}

// inProcess opens the host for one command. Nothing listens: the API is called
// in memory, by the same rules.
func (c *command) inProcess(ctx context.Context, do func(*client.Client) error) (err error) {
	passphrase, err := c.passphrase(ctx)
	if err != nil {
		return err
	}
	h, err := host.Open(ctx, host.Config{Places: c.places(), Version: c.build.Version, Commit: c.build.Commit, Date: c.build.Date, Logger: c.logger(), SecretsPassphrase: passphrase,
		KeyWait: host.KeyringLimit})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(ctx))) }()
	if err := h.Rescan(ctx); err != nil {
		return err
	}
	handler := api.Handler(api.Config{Host: h, Tokens: api.Tokens{Operator: h.Tokens.Operator}, Logger: c.logger()})
	return do(client.InMemory(handler, h.Tokens.Operator, "cli"))
}
