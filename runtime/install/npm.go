package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// Vendor says how to make a plugin of an npm package that is none.
type Vendor struct {
	Name, Version string // of the package; the version is exact
	// Bin is the package's program to start; "" takes the one that npx would.
	Bin  string
	Args []string // after the program
	// Env is literal: names and values that a package may set. References and
	// secrets are the operator's and belong into the overlay.
	Env map[string]string
	// Plugin is the plugin's name; "" makes one from the package's.
	Plugin string
	// Lock is a package-lock.json to use instead of resolving anew: with it, the
	// same bundle comes out again. May be nil.
	Lock []byte
}

// VendorNPM stages a plugin that starts a program of an npm package, with the
// package and everything it needs inside the bundle. It is Stage otherwise.
func (i *Installer) VendorNPM(ctx context.Context, vendor Vendor, progress func(Step)) (*Staged, error) {
	source, err := parseNPM(vendor.Name + "@" + vendor.Version)
	if err != nil {
		return nil, err
	}
	return i.stage(ctx, progress, func(ctx context.Context, j *job) error {
		if err := j.fetch(ctx, source, vendor); err != nil {
			return err
		}
		return j.wrap(source, vendor)
	})
}

// npm stages a package: as the plugin that it is, or with a small plugin around
// it that starts its program.
func (j *job) npm(ctx context.Context, source Source) error {
	if err := j.fetch(ctx, source, Vendor{}); err != nil {
		return err
	}
	inner, err := plugins.Load(ctx, j.packageDir(source.Name))
	if err != nil {
		return err
	}
	if inner.Invalid == nil {
		return j.hoist(source)
	}
	return j.wrap(source, Vendor{})
}

func (j *job) packageDir(name string) string {
	return filepath.Join(j.tree, "node_modules", filepath.FromSlash(name))
}

// fetch makes the bundle's folder with node_modules: npm resolves and unpacks,
// scripts off; then everything that it did is checked against the lock file.
func (j *job) fetch(ctx context.Context, source Source, vendor Vendor) error {
	npm, err := j.helper(ctx, "npm")
	if err != nil {
		return err
	}
	if err := os.Mkdir(j.tree, 0o700); err != nil {
		return fmt.Errorf("cannot make a staging folder: %w", pathless(err))
	}
	npm.dir = j.tree
	if err := j.writeProject(source, vendor); err != nil {
		return err
	}
	if vendor.Lock == nil {
		if err := j.runNPM(ctx, npm, "resolving", "install", "--package-lock-only"); err != nil {
			return err
		}
	}
	raw, err := os.ReadFile(filepath.Join(j.tree, "package-lock.json"))
	if err != nil {
		return fmt.Errorf("cannot read the lock file: %w", pathless(err))
	}
	lock, err := readLock(raw, j.installer.config.Registry)
	if err != nil {
		return err
	}
	own, err := lock.own(source)
	if err != nil {
		return err
	}
	// Not "npm ci", which refuses lock files that npm itself made: what came of this
	// is compared with the lock file below.
	if err := j.runNPM(ctx, npm, "fetching", "install", "--no-save", "--no-bin-links"); err != nil {
		return err
	}
	if err := j.within(measure(ctx, j.tree)); err != nil {
		return err
	}
	j.installer.at("fetched")
	if err := j.checkPackages(ctx, lock, raw); err != nil {
		return err
	}
	for _, key := range lock.withScripts() {
		j.record.Warnings = append(j.record.Warnings, Warning{Code: "npm-scripts-not-run", Path: key})
	}
	sum := sha256.Sum256(raw)
	j.record.Origin = Origin{Kind: NPM, Text: "npm:" + source.Name + "@" + source.Version, Version: source.Version,
		Integrity: own.sha512(), Lock: "sha256-" + base64.StdEncoding.EncodeToString(sum[:])}
	return nil
}

// writeProject writes the project whose one dependency is the package.
func (j *job) writeProject(source Source, vendor Vendor) error {
	project, err := pretty(map[string]any{
		"name": "sallyport-bundle", "private": true, "dependencies": map[string]string{source.Name: source.Version},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(j.tree, "package.json"), project, 0o600)
	}
	if err == nil && vendor.Lock != nil {
		err = os.WriteFile(filepath.Join(j.tree, "package-lock.json"), vendor.Lock, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot write what npm is to fetch: %w", pathless(err))
	}
	return nil
}

// runNPM runs npm with fixed arguments: no script, no program of a package's, no
// git, nothing but the registry, and no configuration but this.
func (j *job) runNPM(ctx context.Context, npm helper, doing string, args ...string) error {
	args = append(args,
		"--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--omit=dev", "--loglevel=error",
		"--allow-git=none", "--allow-remote=none", "--allow-file=none", "--allow-directory=none", "--git="+filepath.Join(j.work, "no-git"),
		"--omit-lockfile-registry-resolved=false", "--lockfile-version=3", "--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=2000",
		"--install-strategy=hoisted", "--no-workspaces",
		"--registry="+j.installer.config.Registry, "--cache="+j.npmCache(),
		"--userconfig="+filepath.Join(j.work, "npmrc-user"), "--globalconfig="+filepath.Join(j.work, "npmrc-global"))
	watching, stop := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.watch(watching, doing, stop)
	}()
	said, err := npm.run(watching, args...)
	cause := context.Cause(watching)
	stop(nil)
	<-done
	var refusal *coded.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(cause, &refusal):
		return refusal
	case err != nil:
		return npmTrouble(said, err)
	}
	return nil
}

func (j *job) npmCache() string { return filepath.Join(j.work, "npm-cache") }

// watchEvery is how often a run of npm is looked at.
const watchEvery = 300 * time.Millisecond

// watch tells how far npm has come, and ends it when it has unpacked more than a
// bundle may hold: npm itself has no limit.
func (j *job) watch(ctx context.Context, doing string, stop context.CancelCauseFunc) {
	j.progress(Step{Doing: doing})
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		entries, size := measure(ctx, j.dir)
		j.progress(Step{Doing: doing, Entries: entries, Bytes: size})
		// npm's cache holds everything once more, packed.
		if err := j.within(entries/2, size/2); err != nil {
			stop(err)
		}
	}
}

// within refuses what is more than a bundle may hold.
func (j *job) within(entries int, size int64) error {
	switch {
	case size > j.treeLimit():
		return &coded.Error{Code: "tree-too-large", Sentence: "the package and what it needs are larger than a bundle may be", Next: "ask its maker for a smaller one"}
	case entries > j.entryLimit():
		return &coded.Error{Code: "too-many-entries", Sentence: "the package and what it needs have more files than a bundle may have", Next: "ask its maker for a smaller one"}
	}
	return nil
}

func (j *job) entryLimit() int {
	if limit := j.installer.config.Limits.Entries; limit > 0 {
		return limit
	}
	return 100_000
}

// measure counts what npm has written so far; what it is just renaming does not
// matter.
func measure(ctx context.Context, dir string) (entries int, size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil //nolint:nilerr // gone since it was listed
		}
		entries++
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return entries, size
}

var npmCode = regexp.MustCompile(`(?m)^npm (?:error|ERR!) code ([A-Z0-9_]+)$`)

// npmTrouble says in words what npm says in a code.
func npmTrouble(said string, err error) error {
	code := ""
	if found := npmCode.FindStringSubmatch(said); found != nil {
		code = found[1]
	}
	e := &coded.Error{Code: "npm-failed", Sentence: "npm could not fetch the package", Next: "try npm view NAME@VERSION; look at its message", Err: err}
	switch code {
	case "E404":
		e.Code, e.Sentence, e.Next = "npm-no-package", "the registry does not have the package, or one that it needs", "check the name"
	case "ETARGET", "ENOVERSIONS":
		e.Code, e.Sentence, e.Next = "npm-no-version", "the registry does not have this version of the package, or one of a package that it needs", "npm view NAME versions lists them"
	case "EINTEGRITY":
		e.Code, e.Sentence, e.Next = "npm-integrity-wrong", "a package's bytes are not those that the lock file names", "do not use it; try again later, and report it if it stays"
	case "EALLOWGIT", "EALLOWREMOTE", "EALLOWFILE", "EALLOWDIRECTORY":
		e.Code, e.Sentence, e.Next = "npm-not-from-registry", "the package needs something that is not in the registry, or brings packages inside its own archive", "install it from a folder that has everything"
	case "ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT", "ENETUNREACH", "EHOSTUNREACH":
		e.Code, e.Sentence, e.Next = "npm-unreachable", "the registry cannot be reached", "check the network and the proxy variables, then try again"
	case "TAR_ABORT", "TAR_BAD_ARCHIVE", "ZLIB_ERROR", "Z_DATA_ERROR":
		e.Code, e.Sentence, e.Next = "npm-package-invalid", "a package's archive cannot be unpacked, or inflates to far more than its size", "do not use it"
	case "ENOSPC":
		e.Code, e.Sentence, e.Next = "disk-full", "the disk is full", "free some space, then try again"
	case "":
	default:
		e.Sentence += " (" + code + ")"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Code, e.Sentence, e.Next = "npm-slow", "npm took too long", "check the network, then try again"
	}
	return e
}

// wrap writes the plugin around a package: a manifest and one server. It holds no
// time, path or version of ours, so that the same package and lock give the same
// digest.
func (j *job) wrap(source Source, vendor Vendor) error {
	pkg, err := j.readPackage(source.Name)
	if err != nil {
		return err
	}
	script, err := pkg.program(source.Name, vendor.Bin)
	if err != nil {
		return err
	}
	name := vendor.Plugin
	if name == "" {
		name = pluginName(source.Name)
	}
	server := map[string]any{
		"type": "stdio", "command": "node",
		"args": append([]string{"${PLUGIN_ROOT}/node_modules/" + source.Name + "/" + script}, vendor.Args...),
	}
	if len(vendor.Env) > 0 {
		server["env"] = vendor.Env
	}
	manifest := map[string]any{
		"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": name, "version": source.Version,
	}
	if text := strings.Join(strings.Fields(pkg.Description), " "); text != "" {
		manifest["description"] = text
	}
	return errors.Join(
		j.writeJSON("plugin.json", manifest),
		j.writeJSON("mcp.json", map[string]any{
			"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": map[string]any{"main": server},
		}),
	)
}

// hoist makes the package itself the bundle's top, with what it needs below it.
func (j *job) hoist(source Source) error {
	lifted := filepath.Join(j.work, "lifted")
	inner := j.packageDir(source.Name)
	if _, err := os.Lstat(filepath.Join(inner, "node_modules")); err == nil {
		return &coded.Error{Code: "npm-layout", Sentence: "the package has packages of its own beside those it shares", Next: "unpack it into a folder, run npm install there, and install that folder"}
	}
	if err := os.Rename(inner, lifted); err != nil {
		return fmt.Errorf("cannot move the package: %w", pathless(err))
	}
	_ = os.Remove(filepath.Dir(inner)) // an empty scope; a full one stays
	if err := os.Rename(filepath.Join(j.tree, "node_modules"), filepath.Join(lifted, "node_modules")); err != nil {
		return fmt.Errorf("cannot move the package: %w", pathless(err))
	}
	if err := removeAll(j.tree); err != nil {
		return err
	}
	if err := os.Rename(lifted, j.tree); err != nil {
		return fmt.Errorf("cannot move the package: %w", pathless(err))
	}
	return nil
}

func (j *job) writeJSON(name string, value any) error {
	data, err := pretty(value)
	if err == nil {
		err = os.WriteFile(filepath.Join(j.tree, name), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, pathless(err))
	}
	return nil
}

// pretty is JSON that a person can read, the same for the same value.
func pretty(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return b.Bytes(), err
}

// npmPackage is what is needed of a package.json.
type npmPackage struct {
	Description string          `json:"description"`
	Bin         json.RawMessage `json:"bin"`
}

func (j *job) readPackage(name string) (npmPackage, error) {
	var pkg npmPackage
	data, err := os.ReadFile(filepath.Join(j.packageDir(name), "package.json"))
	if err == nil {
		err = json.Unmarshal(data, &pkg)
	}
	if err != nil {
		return pkg, &coded.Error{Code: "npm-package-invalid", Sentence: "the package's package.json cannot be read", Next: "ask its maker", Err: pathless(err)}
	}
	return pkg, nil
}

// program returns the script that npx would start, or the one that is asked for.
func (p npmPackage) program(name, asked string) (string, error) {
	short := name[strings.LastIndexByte(name, '/')+1:]
	programs := map[string]string{}
	var one string
	if json.Unmarshal(p.Bin, &one) == nil && one != "" {
		programs[short] = one
	} else if len(p.Bin) > 0 {
		_ = json.Unmarshal(p.Bin, &programs) // a wrong one names no program
	}
	if asked == "" {
		asked = only(programs, short)
	}
	script, found := programs[asked]
	script = filepath.ToSlash(filepath.Clean(filepath.FromSlash(script)))
	switch {
	case len(programs) == 0:
		return "", &coded.Error{Code: "npm-no-program", Sentence: "the package has no program to start", Next: "is it the right package? A library is no MCP server"}
	case !found:
		return "", &coded.Error{Code: "npm-which-program", Sentence: "it is not clear which of the package's programs to start",
			Next: "name one of: " + strings.Join(slices.Sorted(maps.Keys(programs)), ", ")}
	case !filepath.IsLocal(script) || strings.ContainsAny(script, `\$`):
		return "", &coded.Error{Code: "npm-package-invalid", Sentence: "the package's program lies outside the package", Next: "do not use it"}
	}
	return script, nil
}

// only returns the name of the program that is not in question.
func only(programs map[string]string, short string) string {
	if _, found := programs[short]; found {
		return short
	}
	names := slices.Sorted(maps.Keys(programs))
	for _, name := range names {
		if programs[name] != programs[names[0]] {
			return ""
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// pluginName makes the name of a plugin from that of a package.
func pluginName(name string) string {
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-.")
	for _, twice := range []string{"--", ".."} {
		for strings.Contains(name, twice) {
			name = strings.ReplaceAll(name, twice, twice[:1])
		}
	}
	return strings.TrimRight(name[:min(len(name), 64)], "-.")
}
