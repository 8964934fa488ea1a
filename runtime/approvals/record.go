package approvals

import (
	"encoding/json"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// record is what is sealed about one connector. It is never changed in place:
// a change is a new record.
type record struct {
	Schema   int            `json:"schema"`
	Plugin   string         `json:"plugin"`
	Server   string         `json:"server"`
	Run      *runApproval   `json:"run,omitempty"`
	Tools    *toolsApproval `json:"tools,omitempty"`
	Before   *before        `json:"before,omitempty"`
	Denied   *denial        `json:"denied,omitempty"`
	Disabled *stamp         `json:"disabled,omitempty"`
	Revoked  *stamp         `json:"revoked,omitempty"`
}

// runApproval says what may run.
type runApproval struct {
	Identity Identity    `json:"identity"`
	Fields   Fields      `json:"fields"`
	Path     string      `json:"path"` // the user's PATH, reused at every start
	Decision string      `json:"decision"`
	Offer    storedOffer `json:"offer"` // what it provided when it was probed
	stamp
}

// toolsApproval says what of it may be used.
type toolsApproval struct {
	Tools        []pinned       `json:"tools"`
	Offered      map[string]Pin `json:"offered"` // all that was on offer then, chosen or not
	Prompts      []pinned       `json:"prompts"`
	Templates    []pinned       `json:"templates"`
	Instructions Pin            `json:"instructions"`
	Decision     string         `json:"decision"`
	stamp
}

// pinned is one definition as its server wrote it.
type pinned struct {
	Name       string            `json:"name"`
	Pin        Pin               `json:"pin"`
	Class      permissions.Class `json:"class,omitempty"`
	Always     bool              `json:"always,omitempty"` // called without asking, while this approval stands
	Definition []byte            `json:"definition"`
}

// before is the last approval that had tools: shown beside the new, never used
// (spec/approval.md 3.2).
type before struct {
	Fields  Fields         `json:"fields"`
	Tools   []pinned       `json:"tools"`
	Offered map[string]Pin `json:"offered"`
	At      time.Time      `json:"at"`
}

type denial struct {
	Identity Identity `json:"identity"`
	stamp
}

type stamp struct {
	At time.Time `json:"at"`
	By By        `json:"by"`
}

// storedOffer is an Offer in bytes: a definition that has no single reading must
// still be shown and kept as it came.
type storedOffer struct {
	ServerInfo      []byte   `json:"serverInfo,omitempty"`
	Instructions    []byte   `json:"instructions,omitempty"`
	ProtocolVersion string   `json:"protocolVersion,omitempty"`
	Capabilities    []byte   `json:"capabilities,omitempty"`
	Tools           [][]byte `json:"tools"`
	Prompts         [][]byte `json:"prompts,omitempty"`
	Templates       [][]byte `json:"templates,omitempty"`
}

func storeOffer(o Offer) storedOffer {
	return storedOffer{
		ServerInfo: o.ServerInfo, Instructions: []byte(o.Instructions), ProtocolVersion: o.ProtocolVersion,
		Capabilities: o.Capabilities, Tools: asBytes(o.Tools), Prompts: asBytes(o.Prompts), Templates: asBytes(o.Templates),
	}
}

func (s storedOffer) offer() Offer {
	return Offer{
		ServerInfo: s.ServerInfo, Instructions: string(s.Instructions), ProtocolVersion: s.ProtocolVersion,
		Capabilities: s.Capabilities, Tools: asRaw(s.Tools), Prompts: asRaw(s.Prompts), Templates: asRaw(s.Templates),
	}
}

func asBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}

func asRaw(list [][]byte) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}

func newRecord(id plugins.ID) *record {
	return &record{Schema: schemaVersion, Plugin: id.Plugin, Server: id.Server}
}

// changed returns a copy for the next version of the record.
func (r *record) changed() *record {
	next := *r
	return &next
}

// remembered returns what to show as the approval before, from r.
func (r *record) remembered() *before {
	if r.Run == nil || r.Tools == nil {
		return r.Before
	}
	return &before{r.Run.Fields, r.Tools.Tools, r.Tools.Offered, r.Tools.At}
}

func (r *runApproval) digest() artifact.Digest {
	if r.Fields.Artifact == NoArtifact {
		return ""
	}
	return artifact.Digest(r.Fields.Artifact)
}

// isLegacy reports whether body is an approval from before digests, pins and
// versions. Absent is not zero (spec/approval.md 3.1).
func isLegacy(body []byte) bool {
	var r struct {
		Schema *int `json:"schema"`
		Run    *struct {
			Identity string `json:"identity"`
			Fields   struct {
				Artifact string `json:"artifact"`
			} `json:"fields"`
		} `json:"run"`
	}
	if json.Unmarshal(body, &r) != nil {
		return false
	}
	return r.Schema == nil || r.Run != nil && (r.Run.Identity == "" || r.Run.Fields.Artifact == "")
}

func decodeRecord(body []byte) (*record, *coded.Error) {
	var r record
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, tampered("the record cannot be read")
	}
	return &r, nil
}
