package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/adrg/xdg"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/health"
	"sallyport/runtime/store"
)

// Diagnostics is what a person hands to somebody who helps. It is made of a closed list of
// fields: versions, codes, states, counts, the names of connectors, digests, and lines of
// the log without their paths. No secret, no path of the user's, no argument and no answer
// of a tool is among them.
type Diagnostics struct {
	Schema  int       `json:"schema"` // of this document
	Made    time.Time `json:"made"`
	Program struct {
		Version string `json:"version"`
		Commit  string `json:"commit"`
		Date    string `json:"date"`
		Go      string `json:"go"`
		System  string `json:"system"`
		Schema  int    `json:"schema"` // of the database
	} `json:"program"`
	Started time.Time          `json:"started"`
	Fault   string             `json:"fault,omitempty"` // the code, where the store cannot be used
	Health  []DiagnosedProblem `json:"health"`
	Setup   DiagnosedSetup     `json:"setup"`
	Plugins []DiagnosedPlugin  `json:"connectors"`
	Unread  []string           `json:"unusable"` // codes of what lies in the plugin folders and cannot be used
	Audit   DiagnosedAudit     `json:"audit"`
	Log     []string           `json:"log"`
	Dropped int                `json:"logLinesLeftOut"`
}

// DiagnosedProblem is a health item, without its words.
type DiagnosedProblem struct {
	Code     health.Code     `json:"code"`
	Severity health.Severity `json:"severity"`
	Since    time.Time       `json:"since"`
}

// DiagnosedSetup is how the installation is set up.
type DiagnosedSetup struct {
	OnlyWindowAnswers bool   `json:"onlyWindowAnswers"`
	SealKeyIn         string `json:"sealKeyIn"`
	SealKeyWaits      string `json:"sealKeyWaits,omitempty"` // the code
	Autostart         string `json:"autostart"`              // the state, or the code of why it is not known
	UpdatesFrom       bool   `json:"updatesConfigured"`
	RetentionDays     int    `json:"retentionDays"`
	RetentionRecords  int    `json:"retentionRecords"`
	Folders           int    `json:"pluginFolders"`
	OwnFolders        int    `json:"pluginFoldersAdded"`
	Clients           int    `json:"clients"`
	OpenDecisions     int    `json:"openDecisions"`
	OwnHome           bool   `json:"ownHome"` // everything is below a folder of its own (--home)
}

// DiagnosedPlugin is one connector.
type DiagnosedPlugin struct {
	ID      string `json:"id"`
	Version string `json:"version,omitempty"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Digest  string `json:"digest,omitempty"`
	Running bool   `json:"running"`
}

// DiagnosedAudit is whether the audit verifies.
type DiagnosedAudit struct {
	Checked  bool   `json:"checked"`
	Verified bool   `json:"verified"`
	Records  uint64 `json:"records"`
	Code     string `json:"code,omitempty"`
	Seq      uint64 `json:"seq,omitempty"` // of the first break
}

const (
	auditCheckTime = 20 * time.Second
	mostLogLines   = 300
	mostLogBytes   = 128 << 10
)

// Diagnose gathers what there is. It waits for no keyring and asks nobody; what cannot be
// told is left empty.
func (h *Host) Diagnose(ctx context.Context) Diagnostics {
	d := Diagnostics{Schema: 1, Made: h.now().UTC(), Started: h.StartedAt, Health: []DiagnosedProblem{}, Plugins: []DiagnosedPlugin{}, Unread: []string{}, Log: []string{}}
	d.Program.Version, d.Program.Commit, d.Program.Date = h.Version, h.Commit, h.Date
	d.Program.Go, d.Program.System, d.Program.Schema = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH, store.Version()
	for _, p := range h.Health.Problems() {
		d.Health = append(d.Health, DiagnosedProblem{p.Code, p.Severity, p.Since})
	}
	d.Log, d.Dropped = h.logForStrangers()
	d.Setup = h.diagnoseSetup(ctx)
	if h.fault != nil {
		d.Fault = coded.Of(h.fault)
		return d
	}
	running := h.RunningIDs()
	for _, s := range h.Gate.Statuses(ctx) {
		d.Plugins = append(d.Plugins, DiagnosedPlugin{ID: approvals.Visible(s.ID.String()), Version: approvals.Visible(s.Version), State: string(s.State),
			Reason: s.Reason, Digest: string(s.Digest), Running: running[s.ID]})
	}
	if found, err := h.Listing(ctx); err == nil {
		for _, p := range found.Problems {
			d.Unread = append(d.Unread, p.Code)
		}
	}
	d.Audit = h.diagnoseAudit(ctx)
	return d
}

func (h *Host) diagnoseSetup(ctx context.Context) DiagnosedSetup {
	_, own := h.Places.root()
	s := DiagnosedSetup{UpdatesFrom: h.UpdatesFrom() != "", OwnHome: own}
	if status, err := h.Autostart(); err != nil {
		s.Autostart = coded.Of(err)
	} else {
		s.Autostart = string(status.State)
	}
	for _, source := range h.Sources() {
		s.Folders++
		if source.Folder != "" {
			s.OwnFolders++
		}
	}
	if h.fault != nil {
		return s
	}
	s.OnlyWindowAnswers, s.SealKeyIn = h.Gate.AnswerOnlyInGUI(), string(h.Gate.KeyPlace())
	if why := h.Gate.Waiting(); why != nil {
		s.SealKeyWaits = why.Code
	}
	if k, err := h.Gate.AuditKeeping(); err == nil {
		s.RetentionDays, s.RetentionRecords = k.Days, k.Records
	}
	s.Clients = len(h.Gate.Clients())
	if open, err := h.Gate.Decisions(ctx, true); err == nil {
		s.OpenDecisions = len(open)
	}
	return s
}

func (h *Host) diagnoseAudit(ctx context.Context) DiagnosedAudit {
	ctx, cancel := context.WithTimeout(ctx, auditCheckTime)
	defer cancel()
	report, err := h.Audit.Verify(ctx)
	a := DiagnosedAudit{Checked: err == nil || report.Break != nil, Verified: err == nil, Records: report.Records, Code: coded.Of(err)}
	if report.Break != nil {
		a.Code, a.Seq = report.Break.Code, report.Break.Seq
	}
	return a
}

// LogFile is the log of a sidecar.
func (p Places) LogFile() string { return filepath.Join(p.State, "sallyport.log") }

// logForStrangers is the end of the log, scrubbed, and how many lines of it were left out.
func (h *Host) logForStrangers() (lines []string, dropped int) {
	lines = []string{}
	file, err := os.Open(h.Places.LogFile())
	if err != nil {
		return lines, 0
	}
	defer file.Close()
	begins := true
	if info, err := file.Stat(); err == nil && info.Size() > mostLogBytes {
		_, err = file.Seek(-mostLogBytes, io.SeekEnd)
		begins = err != nil
	}
	raw, _ := io.ReadAll(io.LimitReader(file, mostLogBytes))
	all := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	if !begins && len(all) > 0 {
		all = all[1:] // half a line
	}
	if len(all) > mostLogLines {
		all = all[len(all)-mostLogLines:]
	}
	for _, one := range all {
		if line, ok := scrubLine(string(one)); ok {
			lines = append(lines, line)
		} else if len(one) > 0 {
			dropped++
		}
	}
	return lines, dropped
}

// RecordDiagnostics puts on record that they were handed out, before they are.
func (h *Host) RecordDiagnostics(ctx context.Context, by approvals.By) error {
	if h.fault != nil {
		return nil // there is no record, and they say so
	}
	_, err := h.Audit.Append(ctx, audit.Record{Action: audit.Export, Result: audit.OK, Actor: by.User, Via: by.Via, Target: "diagnostics"})
	return err
}

// SaveDiagnostics writes them into a new file in the folder for downloads, or in the state
// folder where there is none, and says where as people write it.
func (h *Host) SaveDiagnostics(ctx context.Context, by approvals.By) (where string, err error) {
	if err := h.RecordDiagnostics(ctx, by); err != nil {
		return "", err
	}
	d := h.Diagnose(ctx)
	raw, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return "", fmt.Errorf("cannot write the diagnostics: %w", err)
	}
	name := "sallyport-diagnostics-" + d.Made.Format("20060102-150405")
	for _, folder := range []string{h.downloads(), h.Places.State} {
		for n := range 100 {
			path := filepath.Join(folder, name+".json")
			if n > 0 {
				path = filepath.Join(folder, fmt.Sprintf("%s-%d.json", name, n+1))
			}
			if folder == "" {
				break
			}
			if err = atomicfile.WriteNew(path, append(raw, '\n'), 0o600); err == nil {
				return label(path, h.home), nil
			}
			if !errors.Is(err, fs.ErrExist) {
				break
			}
		}
	}
	return "", &coded.Error{Code: "diagnostics-unwritable", Sentence: "the file cannot be written, neither among the downloads nor in the state folder",
		Next: "check the disk, or print it: sallyport diagnostics", Err: err}
}

// downloads is the folder for them, if it is there and in the home folder.
func (h *Host) downloads() string {
	if h.home == "" {
		return ""
	}
	for _, path := range []string{xdg.UserDirs.Download, filepath.Join(h.home, "Downloads")} {
		if info, err := os.Stat(path); err == nil && info.IsDir() && path != h.home && inside(path, h.home) {
			return path
		}
	}
	return ""
}
