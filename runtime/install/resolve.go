package install

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/coded"
)

// ExactVersion asks npm which version of a package a tag or range means now; "" is
// the newest. An exact version is returned as it is, without asking.
func (i *Installer) ExactVersion(ctx context.Context, name, wanted string) (string, error) {
	if exactVersion.MatchString(wanted) {
		return wanted, nil
	}
	if !packageName.MatchString(name) || strings.HasPrefix(name, "-") || strings.HasPrefix(wanted, "-") || strings.ContainsAny(wanted, "/:\x00") {
		return "", noVersion(name, nil)
	}
	if wanted == "" {
		wanted = "latest"
	}
	id := "s-" + strings.ToLower(rand.Text()[:16])
	i.setActive(id, true)
	defer i.setActive(id, false)
	dir := filepath.Join(i.config.Staging, id)
	if err := os.MkdirAll(filepath.Join(dir, workName), 0o700); err != nil {
		return "", fmt.Errorf("cannot make a staging folder: %w", pathless(err))
	}
	defer func() { _ = removeAll(dir) }()
	j := &job{installer: i, dir: dir, work: filepath.Join(dir, workName)}
	npm, err := j.helper(ctx, "npm")
	if err != nil {
		return "", err
	}
	said, err := npm.run(ctx, "view", name+"@"+wanted, "version", "--json", "--ignore-scripts", "--no-update-notifier", "--loglevel=silent",
		"--registry="+i.config.Registry, "--cache="+j.npmCache(), "--userconfig="+filepath.Join(j.work, "npmrc-user"), "--globalconfig="+filepath.Join(j.work, "npmrc-global"))
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	version := lastVersion(said)
	if err != nil || !exactVersion.MatchString(version) {
		return "", noVersion(name, err)
	}
	return version, nil
}

func noVersion(name string, err error) error {
	return &coded.Error{Code: "npm-version-unknown", Sentence: fmt.Sprintf("npm does not know which version of %q that is", name),
		Next: "name an exact version: npm view NAME versions lists them", Err: err}
}

// lastVersion reads what npm view prints: one version, or the list of a range, the
// newest last.
func lastVersion(said string) string {
	var one string
	if json.Unmarshal([]byte(said), &one) == nil {
		return one
	}
	var list []string
	if json.Unmarshal([]byte(said), &list) == nil && len(list) > 0 {
		return list[len(list)-1]
	}
	return ""
}
