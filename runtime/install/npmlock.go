package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/coded"
)

// lockFile is a package-lock.json: which package lies in which folder, and the
// hash of the archive that it came from.
type lockFile struct {
	Version  int                  `json:"lockfileVersion"`
	Packages map[string]lockEntry `json:"packages"`
}

type lockEntry struct {
	Version   string          `json:"version"`
	Resolved  string          `json:"resolved"`
	Integrity string          `json:"integrity"`
	Link      bool            `json:"link"`
	InBundle  bool            `json:"inBundle"`
	Dev       bool            `json:"dev"`
	Scripts   bool            `json:"hasInstallScript"`
	Bundled   json.RawMessage `json:"bundleDependencies"`
}

// sha512 returns the one hash that is looked at.
func (e lockEntry) sha512() string {
	for hash := range strings.FieldsSeq(e.Integrity) {
		if strings.HasPrefix(hash, "sha512-") {
			return hash
		}
	}
	return ""
}

// lockKey is the folder of a package, as a lock file names it.
var lockKey = regexp.MustCompile(`^(node_modules/(@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*)(/node_modules/(@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*)*$`)

// readLock refuses a lock file that leaves open what any package is.
func readLock(raw []byte, registry string) (*lockFile, error) {
	lock := &lockFile{}
	if err := json.Unmarshal(raw, lock); err != nil || lock.Version != 2 && lock.Version != 3 || len(lock.Packages) == 0 {
		return nil, &coded.Error{Code: "npm-lock-invalid", Sentence: "the lock file is none of version 2 or 3", Next: "use a newer npm", Err: err}
	}
	for _, key := range slices.Sorted(maps.Keys(lock.Packages)) {
		if key == "" {
			continue
		}
		if err := lock.check(key, registry); err != nil {
			return nil, err
		}
	}
	return lock, nil
}

func (l *lockFile) check(key, registry string) error {
	entry := l.Packages[key]
	switch {
	case !lockKey.MatchString(key):
		return &coded.Error{Code: "npm-lock-invalid", Sentence: fmt.Sprintf("the lock file names a place %q that is no package's", key), Next: "use another lock file"}
	case entry.Link:
		return &coded.Error{Code: "npm-not-from-registry", Sentence: fmt.Sprintf("%s is a link to a folder", key), Next: "install it from a folder that has everything"}
	case entry.InBundle && l.holder(key) != "":
		return nil // its bytes are in the archive of the package that holds it
	case !strings.HasPrefix(entry.Resolved, registry):
		return &coded.Error{Code: "npm-not-from-registry", Sentence: fmt.Sprintf("%s does not come from the registry", key), Next: "install it from a folder that has everything"}
	case entry.sha512() == "":
		return &coded.Error{Code: "npm-integrity-missing", Sentence: fmt.Sprintf("the registry gives no SHA-512 for %s", key), Next: "install it from a folder that has everything"}
	}
	if _, err := entry.sum(); err != nil {
		return &coded.Error{Code: "npm-lock-invalid", Sentence: fmt.Sprintf("the lock file has no usable hash for %s", key), Next: "use another lock file"}
	}
	return nil
}

// holder returns the nearest package above key that has an archive of its own.
func (l *lockFile) holder(key string) string {
	for {
		i := strings.LastIndex(key, "/node_modules/")
		if i < 0 {
			return ""
		}
		key = key[:i]
		if entry, found := l.Packages[key]; found && !entry.InBundle {
			return key
		}
	}
}

func (e lockEntry) sum() ([]byte, error) {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(e.sha512(), "sha512-"))
	if err == nil && len(sum) != sha512.Size {
		err = errors.New("not 64 bytes")
	}
	return sum, err
}

// own returns the entry of the package that was asked for.
func (l *lockFile) own(source Source) (lockEntry, error) {
	entry, found := l.Packages["node_modules/"+source.Name]
	version, _, _ := strings.Cut(source.Version, "+")
	if !found || entry.Version != version && entry.Version != source.Version {
		return entry, &coded.Error{Code: "npm-lock-invalid", Sentence: "the lock file names another package or version than the one that was asked for", Next: "use another lock file"}
	}
	return entry, nil
}

func (l *lockFile) withScripts() []string {
	var keys []string
	for key, entry := range l.Packages {
		if entry.Scripts && !entry.Dev {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// checkPackages compares every file that npm unpacked with the archives that the
// lock file's hashes name, which npm keeps in its cache. What is in none of them
// is refused, so npm is believed in nothing but the choice of versions.
func (j *job) checkPackages(ctx context.Context, lock *lockFile, raw []byte) error {
	if now, err := os.ReadFile(filepath.Join(j.tree, "package-lock.json")); err != nil || !bytes.Equal(now, raw) {
		return &coded.Error{Code: "npm-lock-changed", Sentence: "npm changed the lock file that it was given", Next: "try again; report it if it happens again"}
	}
	modules := filepath.Join(j.tree, "node_modules")
	// npm's own note of what it did; nothing at run time reads it.
	if err := os.Remove(filepath.Join(modules, ".package-lock.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove npm's note: %w", pathless(err))
	}
	want := map[string][sha256.Size]byte{}
	// In this order what lies in a package's folder replaces what it has there.
	for _, key := range slices.Sorted(maps.Keys(lock.Packages)) {
		entry := lock.Packages[key]
		if key == "" || entry.InBundle {
			continue
		}
		if _, err := os.Lstat(filepath.Join(j.tree, filepath.FromSlash(key))); errors.Is(err, fs.ErrNotExist) {
			continue // for another system, or a development dependency
		}
		if err := j.readTarball(ctx, key, entry, want); err != nil {
			return err
		}
		j.progress(Step{Doing: "checking", Entries: len(want)})
	}
	return j.compareFiles(ctx, modules, want)
}

// readTarball adds the hash of every file of a package to want, by its path in
// the bundle.
func (j *job) readTarball(ctx context.Context, key string, entry lockEntry, want map[string][sha256.Size]byte) error {
	sum, err := entry.sum()
	if err != nil {
		return err
	}
	name := hex.EncodeToString(sum)
	f, err := os.Open(filepath.Join(j.npmCache(), "_cacache", "content-v2", "sha512", name[:2], name[2:4], name[4:]))
	if err != nil {
		return &coded.Error{Code: "npm-integrity-wrong", Sentence: fmt.Sprintf("npm did not keep the archive of %s, so it cannot be checked", key), Next: "use a newer npm", Err: pathless(err)}
	}
	defer f.Close()
	hash := sha512.New()
	if err := hashTarball(ctx, io.TeeReader(f, hash), key, want, j.treeLimit()); err != nil {
		return err
	}
	if _, err := io.Copy(hash, f); err != nil {
		return fmt.Errorf("cannot read npm's cache: %w", pathless(err))
	}
	if !slices.Equal(hash.Sum(nil), sum) {
		return wrongFile(key, "the archive of %s is not the one that the lock file names")
	}
	return nil
}

func hashTarball(ctx context.Context, r io.Reader, key string, want map[string][sha256.Size]byte, limit int64) error {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return wrongFile(key, "the archive of %s cannot be read")
	}
	reader := tar.NewReader(io.LimitReader(unzipped, limit))
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return wrongFile(key, "the archive of %s cannot be read")
		}
		if header.Typeflag != tar.TypeReg {
			continue // npm makes neither links nor devices; were there one, nothing would name it
		}
		_, below, found := strings.Cut(path.Clean("/" + header.Name)[1:], "/")
		if !found {
			continue
		}
		hash := sha256.New()
		if _, err := io.Copy(hash, reader); err != nil { //nolint:gosec // reader ends at the limit
			return wrongFile(key, "the archive of %s cannot be read")
		}
		want[key+"/"+below] = [sha256.Size]byte(hash.Sum(nil))
	}
}

func wrongFile(name, sentence string) error {
	return &coded.Error{Code: "npm-integrity-wrong", Sentence: fmt.Sprintf(sentence, name), Next: "do not use it; try again later, and report it if it stays"}
}

// compareFiles walks what npm made. Every file must be one of want, with its
// bytes, and none may be missing; a mode is made one of two.
func (j *job) compareFiles(ctx context.Context, modules string, want map[string][sha256.Size]byte) error {
	root, err := os.OpenRoot(j.tree)
	if err != nil {
		return fmt.Errorf("cannot open what npm made: %w", pathless(err))
	}
	defer root.Close()
	missing := maps.Clone(want)
	err = filepath.WalkDir(modules, func(file string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return pathless(err)
		}
		name, err := filepath.Rel(j.tree, file)
		if err != nil {
			return err
		}
		key := filepath.ToSlash(name)
		switch {
		case d.IsDir():
			return pathless(root.Chmod(name, 0o755))
		case !d.Type().IsRegular():
			return wrongFile(key, "npm made %s, which is neither a file nor a folder")
		}
		delete(missing, key)
		return compareFile(root, name, key, want)
	})
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		if path.Base(key) != ".gitignore" { // which npm renames
			return wrongFile(key, "npm did not unpack %s, which the package's archive has")
		}
	}
	return nil
}

func compareFile(root *os.Root, name, key string, want map[string][sha256.Size]byte) error {
	f, err := root.Open(name)
	if err != nil {
		return pathless(err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return pathless(err)
	}
	sum, found := want[key]
	if !found && path.Base(key) == ".npmignore" {
		// npm renames this one file.
		sum, found = want[path.Dir(key)+"/.gitignore"]
	}
	if !found || sum != [sha256.Size]byte(hash.Sum(nil)) {
		return wrongFile(key, "npm made %s, which is not what the package's archive has")
	}
	info, err := f.Stat()
	if err != nil {
		return pathless(err)
	}
	mode := os.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	return pathless(f.Chmod(mode))
}
