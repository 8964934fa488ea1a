package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/internal/onejson"
	"sallyport/internal/owneronly"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/clients"
	"sallyport/runtime/health"
)

// programsEvery is how often the entries that Sallyport wrote into other programs'
// files are looked at.
const programsEvery = time.Hour

// Program is an agent program and what is known of it here.
type Program struct {
	Client clients.Client
	// Files that it has on this computer.
	Found []clients.Found
	// Connections are Sallyport's entries in its files.
	Connections []Connection
}

// Connection is an entry that Sallyport wrote, and what has become of it.
type Connection struct {
	clients.Record
	State clients.State
	Where string // the project's label; "" for the user's own file
}

// system is this computer as the readers of other programs' files see it.
func (h *Host) system() clients.System {
	return clients.NewSystem(runtime.GOOS, h.home, h.config.Environ)
}

// Programs lists the agent programs that are known, with their files and Sallyport's
// entries in them. Nothing of theirs is run or written.
func (h *Host) Programs(projects ...string) ([]Program, error) {
	records, err := h.connections()
	if err != nil {
		return nil, err
	}
	found := clients.Read(h.system(), projects...)
	var all []Program
	for _, c := range clients.Clients() {
		p := Program{Client: c}
		for _, f := range found {
			if f.Client == c.Name {
				p.Found = append(p.Found, f)
			}
		}
		for _, r := range records {
			if r.Client == c.Name {
				one := Connection{Record: r, State: r.State()}
				if r.Project != "" {
					one.Where = h.system().Label(r.Project)
				}
				p.Connections = append(p.Connections, one)
			}
		}
		all = append(all, p)
	}
	h.tellPrograms(records)
	return all, nil
}

// Connecting says what is to be done to a program's file.
type Connecting struct {
	Program string // by name
	Project string // a folder below the home folder; "" is the user's own file
	// RemoveImported takes out the entries that were imported here.
	RemoveImported bool
	// Plan is what was agreed to: the name of a plan.
	Plan string
}

// PlanConnect works out how a program is made to use Sallyport.
func (h *Host) PlanConnect(what Connecting) (*clients.Change, error) {
	client, project, err := h.program(what)
	if err != nil {
		return nil, err
	}
	launch, err := h.entryLaunch(client.Name)
	if err != nil {
		return nil, err
	}
	var without []string
	if what.RemoveImported {
		if without, err = h.importedFrom(client, project); err != nil {
			return nil, err
		}
	}
	return client.Plan(h.system(), project, launch, without...)
}

// program checks a name and a project.
func (h *Host) program(what Connecting) (clients.Client, string, error) {
	client, ok := clients.ByName(what.Program)
	if !ok {
		return client, "", &coded.Error{Code: "program-unknown", Sentence: "there is no such agent program here",
			Next: "sallyport connect lists those that are known; any other is set up by hand with sallyport clients add"}
	}
	if what.Project == "" {
		return client, "", nil
	}
	project, err := h.projectFolder(what.Project)
	return client, project, err
}

// projectFolder takes a folder below the home folder and nothing else: the API must
// not become a way to write anywhere.
func (h *Host) projectFolder(path string) (string, error) {
	refused := &coded.Error{Code: "project-invalid", Sentence: "the project is no folder below your home folder",
		Next: "name an existing folder of yours, by its whole path"}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(h.home, filepath.FromSlash(rest))
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return "", refused
	}
	home, err := filepath.EvalSymlinks(h.home)
	if err != nil {
		return "", refused
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !strings.HasPrefix(real, home+string(filepath.Separator)) {
		return "", refused
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", refused
	}
	return path, nil
}

// ClientLaunch is the command by which an agent of that name reaches this installation.
func (h *Host) ClientLaunch(client string) (clients.Launch, error) { return h.entryLaunch(client) }

// entryLaunch is the command that a program's entry starts: this program, by its
// whole path, on this installation's folders.
func (h *Host) entryLaunch(client string) (clients.Launch, error) {
	self, err := os.Executable()
	if err != nil {
		return clients.Launch{}, fmt.Errorf("cannot find this program: %w", err)
	}
	if err := mayBeSaved(self); err != nil {
		return clients.Launch{}, err
	}
	launch := clients.Launch{Command: self, Args: []string{"mcp", "--client", client}}
	if h.Places != StandardPlaces() {
		if dir := filepath.Dir(h.Places.Data); h.Places == PlacesIn(dir) {
			launch.Args = append(launch.Args, "--home", dir)
		}
	}
	return launch, nil
}

// mayBeSaved refuses paths of this program that will not be there tomorrow: where
// macOS runs a program from that was not moved out of Downloads (C72), and a file
// that was replaced while it ran.
func mayBeSaved(self string) error {
	if strings.Contains(filepath.ToSlash(self), "/AppTranslocation/") {
		return &coded.Error{Code: "program-translocated", Sentence: "macOS runs this program from a place that changes at every start",
			Next: "move Sallyport to the Applications folder, open it from there, and try again"}
	}
	if _, err := os.Stat(self); err != nil {
		return &coded.Error{Code: "program-moved", Sentence: "this program was moved or replaced while it runs, so its place cannot be saved",
			Next: "start Sallyport again and try again"}
	}
	return nil
}

// Connect writes what was planned, if it still is what would be done. It is on record
// before, and makes the client of that name where there is none.
func (h *Host) Connect(ctx context.Context, what Connecting, by approvals.By) (clients.Record, error) {
	h.connecting.Lock()
	defer h.connecting.Unlock()
	change, err := h.PlanConnect(what)
	if err != nil {
		return clients.Record{}, err
	}
	if change.Plan() != what.Plan {
		return clients.Record{}, otherPlan()
	}
	if _, err := h.Gate.AddClient(ctx, what.Program, approvals.Scope{All: true}, by); err != nil && coded.Of(err) != "client-exists" {
		return clients.Record{}, err
	}
	if change.Nothing() {
		return clients.Record{Client: change.Client, File: change.File}, nil
	}
	old, err := h.connections()
	if err != nil {
		return clients.Record{}, err
	}
	if err := h.recordProgram(ctx, what.Program, "", by); err != nil {
		return clients.Record{}, err
	}
	record, err := change.Apply(h.Places.Backups(), h.now(), func(r clients.Record) error {
		return h.keepConnections(append(withoutFile(old, r), chained(old, r)))
	})
	if err != nil {
		return record, errors.Join(err, h.keepConnections(old))
	}
	h.reportPrograms()
	return record, nil
}

func otherPlan() error {
	return &coded.Error{Code: "changed-meanwhile", Sentence: "what would be written is not what was shown any more", Next: "look at the difference again"}
}

// withoutFile is the records but the one of the same file.
func withoutFile(all []clients.Record, r clients.Record) []clients.Record {
	return slices.DeleteFunc(slices.Clone(all), func(o clients.Record) bool { return o.Path == r.Path })
}

// chained lets the undo of a second edit lead back to what was before the first.
func chained(old []clients.Record, r clients.Record) clients.Record {
	for _, o := range old {
		if o.Path == r.Path {
			return o.Then(r)
		}
	}
	return r
}

// PlanDisconnect works out how a connection is undone.
func (h *Host) PlanDisconnect(what Connecting) (*clients.Undo, error) {
	record, err := h.connection(what)
	if err != nil {
		return nil, err
	}
	return clients.PlanUndo(record, h.Places.Backups())
}

func (h *Host) connection(what Connecting) (clients.Record, error) {
	_, project, err := h.program(what)
	if err != nil {
		return clients.Record{}, err
	}
	records, err := h.connections()
	if err != nil {
		return clients.Record{}, err
	}
	for _, r := range records {
		if r.Client == what.Program && r.Project == project {
			return r, nil
		}
	}
	return clients.Record{}, &coded.Error{Code: "program-not-connected", Sentence: "Sallyport has written nothing into a file of this program",
		Next: "sallyport connect lists what is connected"}
}

// Disconnect undoes a connection. One whose file has gone is only forgotten.
func (h *Host) Disconnect(ctx context.Context, what Connecting, by approvals.By) (clients.Record, error) {
	h.connecting.Lock()
	defer h.connecting.Unlock()
	record, err := h.connection(what)
	if err != nil {
		return record, err
	}
	undo, err := clients.PlanUndo(record, h.Places.Backups())
	gone := coded.Of(err) == "client-file-gone"
	if err != nil && !gone {
		return record, err
	}
	if !gone && undo.Plan() != what.Plan {
		return record, otherPlan()
	}
	if err := h.recordProgram(ctx, what.Program, "undo", by); err != nil {
		return record, err
	}
	if gone {
		// The backup is all that is left of it, and stays.
		record.Backup, record.Later = "", nil
	} else {
		if err := undo.Apply(); err != nil {
			return record, err
		}
	}
	records, err := h.connections()
	if err != nil {
		return record, err
	}
	if err := h.keepConnections(withoutFile(records, record)); err != nil {
		return record, err
	}
	h.Health.Clear(health.ClientEntryChanged, record.File)
	for _, b := range record.Backups() {
		// It may hold credentials, and nobody needs it any more.
		if err := os.Remove(filepath.Join(h.Places.Backups(), b.File)); err != nil {
			h.log.Warn("a backup could not be removed", "error", err)
		}
	}
	return record, nil
}

func (h *Host) recordProgram(ctx context.Context, program, reason string, by approvals.By) error {
	_, err := h.Audit.Append(ctx, audit.Record{Action: audit.Connect, Result: audit.OK, Actor: by.User, Via: by.Via, Client: program, Target: program, Reason: reason})
	return err
}

// connectionsFile is the list of what was written where. It grants nothing, so it is
// not sealed.
type connectionsFile struct {
	Connections []clients.Record `json:"connections"`
}

func (h *Host) connectionsPath() string {
	return filepath.Join(h.Places.Backups(), "connections.json")
}

func (h *Host) connections() ([]clients.Record, error) {
	raw, err := os.ReadFile(h.connectionsPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var kept connectionsFile
	if err == nil {
		err = onejson.Decode(raw, &kept)
	}
	if err != nil {
		return nil, &coded.Error{Code: "connections-unreadable", Sentence: "the list of what was written into other programs' files cannot be read", Err: err,
			Next: "look at connections.json in the folder backups of the data folder; the files' originals lie beside it"}
	}
	return kept.Connections, nil
}

func (h *Host) keepConnections(records []clients.Record) error {
	raw, err := json.MarshalIndent(connectionsFile{records}, "", "  ")
	if err != nil {
		return err
	}
	if err := owneronly.Folder(h.Places.Backups()); err != nil {
		return err
	}
	return atomicfile.Write(h.connectionsPath(), append(raw, '\n'), 0o600)
}

// watchPrograms looks at the entries in other programs' files at the start and each
// hour, apart from everything else: those files may lie on a disk that does not answer.
func (h *Host) watchPrograms() {
	ticker := time.NewTicker(programsEvery)
	defer ticker.Stop()
	for {
		h.reportPrograms()
		select {
		case <-h.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// reportPrograms tells health of entries that are not as they were written.
func (h *Host) reportPrograms() {
	records, err := h.connections()
	if err != nil {
		h.log.Error("connections.json cannot be read", "error", err)
		return
	}
	h.tellPrograms(records)
}

func (h *Host) tellPrograms(records []clients.Record) {
	for _, r := range records {
		switch r.State() {
		case clients.Unchanged, clients.FileEdited:
			h.Health.Clear(health.ClientEntryChanged, r.File)
		default:
			h.Health.Set(health.ClientEntryChanged, r.File, health.Args{"file": r.File, "client": r.Client})
		}
	}
}
