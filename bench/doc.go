// Package bench measures the whole product from outside: a call through the
// gateway beside the same call straight to the server, and the start of the
// sidecar beside the smallest HTTP server in Go.
//
// The one idea: only ratios count, between things measured in turn in one run on
// one machine. Nothing here fails because a machine is slow.
//
// It has no code but its benchmarks; nothing imports it.
package bench
