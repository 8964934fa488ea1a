package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/onejson"
	"sallyport/runtime/approvals"
)

// recordVersion changes when an older Sallyport would misread the file.
const recordVersion = 1

// document is children.json.
type document struct {
	Version  int     `json:"version"`
	Children []entry `json:"children"`
}

// entry is a child that is about to be started (PID 0) or was.
type entry struct {
	Connector  string `json:"connector"`
	PID        int    `json:"pid,omitempty"`
	Start      uint64 `json:"start,omitempty"` // as proc.start
	Boot       string `json:"boot,omitempty"`  // bootID when it was started
	Executable string `json:"executable,omitempty"`
	Data       string `json:"data,omitempty"` // PLUGIN_DATA
}

// record keeps what the next Sallyport needs to find what this one left behind,
// should it be killed. It is replaced whole before and after every start.
type record struct {
	path   string
	log    *slog.Logger
	mu     sync.Mutex
	live   map[*entry]bool
	left   []entry // of the host before, until Sweep
	aside  string  // where an unreadable record was put, relative to the folder
	broken error
}

// openRecord reads what the host before left. A record that cannot be read is
// kept aside and never guessed from.
func openRecord(folder string, now time.Time, log *slog.Logger) *record {
	r := &record{path: filepath.Join(folder, "children.json"), log: log, live: map[*entry]bool{}}
	text, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return r
	}
	if err == nil {
		r.left, err = parseRecord(text)
	}
	if err != nil {
		r.broken = err
		r.aside = fmt.Sprintf("children.json.unreadable-%d", now.UnixNano())
		if err := os.Rename(r.path, filepath.Join(folder, r.aside)); err != nil {
			r.aside = ""
		}
	}
	return r
}

func parseRecord(text []byte) ([]entry, error) {
	var d document
	switch err := onejson.Decode(text, &d); {
	case errors.Is(err, onejson.ErrBehind):
		return nil, errors.New("the record of children has something behind its end")
	case err != nil:
		return nil, errors.New("the record of children is not readable")
	}
	if d.Version != recordVersion {
		return nil, fmt.Errorf("the record of children has version %d, which this Sallyport does not know", d.Version)
	}
	return d.Children, nil
}

// intend notes a start that is about to happen.
func (r *record) intend(l approvals.Launch) *entry {
	e := &entry{Connector: l.ID.String(), Executable: l.Path, Data: l.Data, Boot: bootID()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[e] = true
	r.note()
	return e
}

// born adds who it became.
func (r *record) born(e *entry, b born) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.PID, e.Executable = b.pid, b.image
	if p, ok := look(b.pid); ok {
		e.Start = p.start
	}
	r.note()
}

func (r *record) forget(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, e)
	r.note()
}

// swept hands over what the host before left, once.
func (r *record) swept() (left []entry, aside string, broken error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left, r.aside, r.broken
}

func (r *record) clearLeft() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.aside, r.broken = nil, "", nil
	return r.write()
}

// note writes as well as it can. A full disk must keep nobody from ending a
// child; it keeps nobody from starting one either, because Linux and Windows end
// the children of a dead host without the record.
func (r *record) note() {
	if err := r.write(); err != nil {
		r.log.Warn("cannot write the record of children", "error", err)
	}
}

func (r *record) write() error {
	if r.broken != nil && r.aside == "" {
		return r.broken // it is still there: never overwritten
	}
	d := document{Version: recordVersion, Children: append([]entry{}, r.left...)}
	for e := range r.live {
		d.Children = append(d.Children, *e)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return atomicfile.Write(r.path, text, 0o600)
}
