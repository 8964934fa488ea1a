package process

import (
	"encoding/json"
	"os"
	"runtime"

	"sallyport/runtime/plugins"
)

// ShimArg is the first argument by which main knows that it is to call
// ShimMain with the rest.
const ShimArg = "__exec"

// Shim returns the command for Config.Shim: this very program. On Linux it is
// the running image, also after the file was replaced by an update.
func Shim() ([]string, error) {
	if runtime.GOOS == "linux" {
		return []string{"/proc/self/exe", ShimArg}, nil
	}
	self, err := os.Executable()
	return []string{self, ShimArg}, err
}

// shimOrder is what the shim is told, as its first argument. Nothing in it is
// secret.
type shimOrder struct {
	Budget plugins.Budget `json:"budget"`
	// Signals says that the child, which a person types to, gets every signal as
	// systems do it: also those that Sallyport was started to ignore.
	Signals bool `json:"signals,omitempty"`
}

func (o shimOrder) String() string {
	text, _ := json.Marshal(o) // numbers only: cannot fail
	return string(text)
}

// The lines that the shim writes to descriptor 3. Its end without "failed" is
// the exec itself, because the descriptor closes with it.
const (
	shimTraced   = "traced"   // said before, so that no signal can come in between
	shimUntraced = "untraced" // tracing is not allowed after all
	shimFailed   = "failed"
)

const shimStatus = 3
