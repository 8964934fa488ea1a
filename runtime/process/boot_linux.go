package process

import (
	"os"
	"strings"
)

// bootID tells one run of the system from another: start times count from boot.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}
