package process

import "time"

// The restart policy of spec/child-environment.md 7.
const (
	// FirstDelay is the wait before the first restart; it doubles each time.
	FirstDelay = time.Second
	// LastDelay is what the wait never exceeds.
	LastDelay = 60 * time.Second
	// SteadyUptime is how long a child must have run for its failures to be forgotten.
	SteadyUptime = 60 * time.Second
	// ParkAfter is how many failures in a row end the restarts.
	ParkAfter = 5
)

// Backoff says how long to wait before the next start and whether to stop
// trying. failures counts the failures in a row, this one included; uptime is
// how long the child ran this time. A handshake or an answered call resets
// nothing: only SteadyUptime does, and this failure is then the first.
func Backoff(failures int, uptime time.Duration) (delay time.Duration, parked bool) {
	if uptime >= SteadyUptime || failures < 1 {
		failures = 1
	}
	delay = FirstDelay
	for i := 1; i < failures && delay < LastDelay; i++ {
		delay *= 2
	}
	return min(delay, LastDelay), failures >= ParkAfter
}
