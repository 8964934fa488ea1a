package client

import (
	"context"

	"sallyport/internal/coded"
	"sallyport/internal/loopback"
	"sallyport/runtime/health"
)

// Find finds the sidecar whose state folder this is and proves it, and returns the key
// that it proves itself by. Whatever else is on its port counts as no sidecar: the error
// is then "not-running".
func Find(ctx context.Context, state string) (loopback.Discovery, []byte, error) {
	notRunning := &coded.Error{Code: "not-running", Sentence: "no sidecar is running", Next: "start it: sallyport serve"}
	found, err := loopback.ReadDiscovery(state)
	if err != nil {
		return found, nil, notRunning
	}
	key, err := health.ReadKey(state)
	if err != nil {
		return found, nil, notRunning
	}
	reply, err := health.Prove(ctx, found.Port, key)
	if err != nil || reply.Instance != found.Instance {
		return found, nil, notRunning
	}
	return found, key, nil
}
