package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/coded"
)

// helperLimit is how long one run of npm may take.
const helperLimit = 10 * time.Minute

// passed are the variables that helpers get from Sallyport's environment: ways
// out to the network, certificates, and where version managers keep node. No
// other one, so no token and no npm or git setting of the user's.
var passed = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"VOLTA_HOME", "NVM_DIR", "NVM_HOME", "NVM_SYMLINK", "FNM_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR",
	"SYSTEMROOT", "SystemRoot", "WINDIR", "COMSPEC", "PATHEXT",
}

// helper is a program of the closed list, and the environment it gets.
type helper struct {
	program string
	environ []string
	dir     string
}

// helper finds npm or git on the user's PATH.
func (j *job) helper(ctx context.Context, name string) (helper, error) {
	search, err := j.installer.searchPath(ctx)
	if err != nil {
		return helper{}, err
	}
	program := findProgram(name, search)
	if program == "" {
		return helper{}, &coded.Error{Code: "helper-missing", Sentence: name + " is needed for this source and is not on your PATH", Next: "install " + name + ", then try again"}
	}
	home := filepath.Join(j.work, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return helper{}, fmt.Errorf("cannot make a folder for %s: %w", name, pathless(err))
	}
	environ := []string{"PATH=" + search, "HOME=" + home, "USERPROFILE=" + home, "TMPDIR=" + home, "TEMP=" + home, "TMP=" + home, "LC_ALL=C"}
	for _, entry := range j.installer.config.Environ {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(passed, name) {
			environ = append(environ, entry)
		}
	}
	return helper{program: program, environ: environ, dir: home}, nil
}

func (i *Installer) searchPath(ctx context.Context) (string, error) {
	if i.config.Path != nil {
		return i.config.Path(ctx)
	}
	for _, entry := range i.config.Environ {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			return value, nil
		}
	}
	return "", nil
}

// findProgram looks in the absolute folders of a PATH.
func findProgram(name, search string) string {
	names := []string{name}
	if runtime.GOOS == "windows" {
		names = []string{name + ".exe", name + ".cmd"}
	}
	for _, dir := range filepath.SplitList(search) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			info, err := os.Stat(path)
			if err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
				return path
			}
		}
	}
	return ""
}

// command prepares a run whose whole process group ends with ctx.
func (h helper) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Env, cmd.Dir = h.environ, h.dir
	cmd.WaitDelay = 3 * time.Second
	ownGroup(cmd)
	return cmd
}

// run runs a helper to its end and returns the last part of what it said.
func (h helper) run(ctx context.Context, args ...string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, helperLimit)
	defer cancel()
	cmd := h.command(ctx, args...)
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.String(), err
}

// tail keeps the last bytes written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 16 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if extra := len(t.b) - tailBytes; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.b, []byte("?")))
}
