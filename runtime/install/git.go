package install

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git names its objects so; the bundle has its own digest
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"sallyport/internal/coded"
	"sallyport/internal/unpack"
)

// git takes the files of one commit as its objects have them. git is asked for
// objects and for nothing else: no checkout, so no hook, filter, attribute, line
// ending, submodule or LFS server takes part; and every object is hashed again,
// from the commit down, so that what comes out is what the hash names.
func (j *job) git(ctx context.Context, source Source) error {
	objects, err := j.openObjects(ctx, source.Path)
	if err != nil {
		return err
	}
	if err := j.fillFromGit(ctx, objects, source); err != nil {
		return errors.Join(err, objects.close())
	}
	if err := objects.close(); err != nil {
		return err
	}
	j.record.Origin = Origin{Kind: Git, Text: j.installer.label(source.Path) + "#" + source.Commit, Commit: source.Commit}
	return nil
}

func (j *job) fillFromGit(ctx context.Context, objects *objects, source Source) error {
	tree, err := objects.commit(source.Commit)
	if err != nil {
		return j.gitTrouble(ctx, objects, err)
	}
	options := j.options("reading")
	options.KeepCase = true
	target, err := unpack.Create(ctx, j.tree, options)
	if err != nil {
		return err
	}
	if err := objects.tree(target, tree, ""); err != nil {
		return errors.Join(j.gitTrouble(ctx, objects, err), target.Abandon())
	}
	result, err := target.Close()
	if err != nil {
		return err
	}
	j.warn(result)
	for _, path := range objects.pointers {
		j.record.Warnings = append(j.record.Warnings, Warning{Code: "lfs-pointer", Path: path})
	}
	return nil
}

// gitTrouble prefers what git says about itself to a broken pipe.
func (j *job) gitTrouble(ctx context.Context, objects *objects, err error) error {
	var refusal *coded.Error
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.As(err, &refusal) || !errors.Is(err, errGitEnded) {
		return err
	}
	_ = objects.close() // it has ended; what it said is whole then
	e := &coded.Error{Code: "git-failed", Sentence: "git could not read the repository", Next: "check that git log works in it", Err: err}
	switch said := objects.said.String(); {
	case strings.Contains(said, "dubious ownership"):
		e.Code, e.Sentence, e.Next = "git-not-yours", "the repository belongs to another user", "clone it, and install from your own clone"
	case strings.Contains(said, "not a git repository"):
		e.Code, e.Sentence, e.Next = "git-not-a-repository", "the folder is not the top of a git repository", "name the repository's own folder"
	}
	return e
}

// objects reads one repository's objects through git cat-file.
type objects struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	said     *tail
	closed   bool
	pointers []string // files that only point to an LFS server
	held     int      // bytes of the lists that are being read, one in another
}

var errGitEnded = errors.New("git ended")

func (j *job) openObjects(ctx context.Context, path string) (*objects, error) {
	git, err := j.helper(ctx, "git")
	if err != nil {
		return nil, err
	}
	git.environ = append(git.environ,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+nullDevice, "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_OPTIONAL_LOCKS=0",
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(path))
	cmd := git.command(ctx, "-c", "core.hooksPath="+nullDevice, "-c", "core.fsmonitor=false", "-c", "protocol.allow=never", "-c", "core.pager=cat",
		"-C", path, "cat-file", "--batch")
	o := &objects{cmd: cmd, said: &tail{}}
	cmd.Stderr = o.said
	if o.in, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("cannot start git: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start git: %w", err)
	}
	o.out = bufio.NewReaderSize(out, 64<<10)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start git: %w", pathless(err))
	}
	return o, nil
}

// close ends git. Nothing that it says then changes what was read and hashed.
func (o *objects) close() error {
	if o.closed {
		return nil
	}
	o.closed = true
	o.in.Close()
	_, _ = io.Copy(io.Discard, o.out) // so that it is not stuck writing
	_ = o.cmd.Wait()                  // its objects speak for themselves
	return nil
}

// object is one that is being read.
type object struct {
	kind string
	size int64
	body io.Reader
	hash hash.Hash
	id   string
}

// open asks for an object; it must be read to its end and finished.
func (o *objects) open(id string) (*object, error) {
	if _, err := io.WriteString(o.in, id+"\n"); err != nil {
		return nil, fmt.Errorf("%w: %w", errGitEnded, err)
	}
	line, err := o.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGitEnded, err)
	}
	fields := strings.Fields(line)
	if len(fields) == 2 && fields[1] == "missing" {
		return nil, &coded.Error{Code: "git-object-missing", Sentence: "the repository does not have " + short(id), Next: "fetch it with git, then try again"}
	}
	if len(fields) != 3 || fields[0] != id {
		return nil, damagedObject(id)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size < 0 {
		return nil, damagedObject(id)
	}
	sum := sha1.New() //nolint:gosec // see the import
	if len(id) == 2*sha256.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "%s %d\x00", fields[1], size)
	return &object{kind: fields[1], size: size, body: io.TeeReader(io.LimitReader(o.out, size), sum), hash: sum, id: id}, nil
}

// finish checks that an object which was read is the one its name says.
func (o *objects) finish(object *object) error {
	if end, err := o.out.ReadByte(); err != nil || end != '\n' {
		return fmt.Errorf("%w: %w", errGitEnded, io.ErrUnexpectedEOF)
	}
	if hex.EncodeToString(object.hash.Sum(nil)) != object.id {
		return damagedObject(object.id)
	}
	return nil
}

func damagedObject(id string) error {
	return &coded.Error{Code: "git-object-damaged", Sentence: "the repository's " + short(id) + " is not what its name says", Next: "check the repository with: git fsck"}
}

func short(id string) string { return "object " + id[:min(len(id), 12)] }

// maxObject is how large a commit or a list of files may be, and all the lists together
// that lead to one file: a repository of a few bytes can hold very large ones.
const maxObject = 32 << 20

// read returns a whole object of a kind.
func (o *objects) read(id, kind string) ([]byte, error) {
	object, err := o.open(id)
	if err != nil {
		return nil, err
	}
	if object.kind != kind || object.size > maxObject {
		return nil, &coded.Error{Code: "git-not-a-" + kind, Sentence: short(id) + " is a " + object.kind + " and no " + kind, Next: "name a commit: git rev-parse HEAD"}
	}
	data, err := io.ReadAll(object.body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGitEnded, err)
	}
	return data, o.finish(object)
}

// commit returns the tree of a commit.
func (o *objects) commit(id string) (string, error) {
	data, err := o.read(id, "commit")
	if err != nil {
		return "", err
	}
	tree, ok := strings.CutPrefix(string(data[:min(len(data), 5+len(id))]), "tree ")
	if !ok || !fullHash.MatchString(tree) || len(tree) != len(id) {
		return "", damagedObject(id)
	}
	return tree, nil
}

// tree writes the entries of a tree below prefix.
func (o *objects) tree(target *unpack.Target, id, prefix string) error {
	data, err := o.read(id, "tree")
	if err != nil {
		return err
	}
	size := len(data)
	if o.held += size; o.held > maxObject {
		return &coded.Error{Code: "too-many-entries", Sentence: "the commit's lists of files are larger than a bundle's may be", Next: "install from a folder"}
	}
	defer func() { o.held -= size }()
	for len(data) > 0 {
		head, rest, found := bytes.Cut(data, []byte{0})
		mode, name, two := strings.Cut(string(head), " ")
		hash := len(id) / 2
		if !found || !two || len(rest) < hash || strings.Contains(name, "/") {
			return damagedObject(id)
		}
		entry := hex.EncodeToString(rest[:hash])
		data = rest[hash:]
		if err := o.entry(target, mode, prefix+name, entry); err != nil {
			return err
		}
	}
	return nil
}

func (o *objects) entry(target *unpack.Target, mode, path, id string) error {
	switch mode {
	case "40000":
		if err := target.Dir(path); err != nil {
			return err
		}
		return o.tree(target, id, path+"/")
	case "100644", "100664", "100755":
		return o.blob(target, path, id, mode == "100755")
	case "120000":
		text, err := o.read(id, "blob")
		if err != nil {
			return err
		}
		return target.Link(path, string(text))
	case "160000":
		return &coded.Error{Code: "git-submodule", Sentence: "a submodule is not part of the commit", Next: "install from a folder that has everything", Path: path}
	}
	return damagedObject(id)
}

func (o *objects) blob(target *unpack.Target, path, id string, executable bool) error {
	object, err := o.open(id)
	if err != nil {
		return err
	}
	if object.kind != "blob" {
		return damagedObject(id)
	}
	const pointer = "version https://git-lfs.github.com/spec/"
	content := bufio.NewReader(object.body)
	if start, _ := content.Peek(len(pointer)); string(start) == pointer {
		o.pointers = append(o.pointers, path)
	}
	n, err := target.File(path, executable, content)
	if err != nil {
		return err
	}
	if n != object.size {
		return fmt.Errorf("%w: %w", errGitEnded, io.ErrUnexpectedEOF)
	}
	return o.finish(object)
}
