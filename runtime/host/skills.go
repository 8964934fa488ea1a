package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/singleflight"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/artifact"
	"sallyport/runtime/mcp"
	"sallyport/runtime/mcp/gateway"
	"sallyport/runtime/plugins"
)

const (
	skillScheme = "skill"
	// maxSkillFile is the largest file of a skill that is handed to an agent, in bytes.
	maxSkillFile = 4 << 20
	// maxSkillFiles is how many files of a plugin's skills are listed.
	maxSkillFiles = 1000
)

// skillBook keeps the skills of approved trees. A tree has one digest, so what was
// read of it once holds. A tree that cannot be verified is not looked at again for a
// while: agents list often, and each look digests all of it.
type skillBook struct {
	reading singleflight.Group

	mu   sync.Mutex
	kept map[artifact.Digest]skillPage
}

type skillPage struct {
	skills []plugins.Skill
	until  time.Time // zero: for good
}

const (
	// damagedFor is how long a tree that cannot be verified has no skills.
	damagedFor = 10 * time.Second
	// keptTrees is how many trees are remembered; more are forgotten at once.
	keptTrees = 256
)

func (b *skillBook) find(digest artifact.Digest) ([]plugins.Skill, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	page, known := b.kept[digest]
	if !known || !page.until.IsZero() && time.Now().After(page.until) {
		return nil, false
	}
	return page.skills, true
}

func (b *skillBook) keep(digest artifact.Digest, page skillPage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil || len(b.kept) >= keptTrees {
		b.kept = map[artifact.Digest]skillPage{}
	}
	b.kept[digest] = page
}

// skillsOf returns the skills of an approved tree, from the verified snapshot. One
// reading serves all who ask meanwhile.
func (h *Host) skillsOf(digest artifact.Digest) []plugins.Skill {
	if skills, known := h.skills.find(digest); known {
		return skills
	}
	skills, _, _ := h.skills.reading.Do(string(digest), func() (any, error) {
		page := skillPage{until: time.Now().Add(damagedFor)}
		if snapshot, err := h.Snapshots.Verify(h.ctx, digest); err == nil {
			if plugin, err := plugins.Load(h.ctx, snapshot.Dir); err == nil && plugin.Invalid == nil {
				page = skillPage{skills: plugin.Skills}
			}
		}
		h.skills.keep(digest, page)
		return page.skills, nil
	})
	return skills.([]plugins.Skill)
}

// skillsAt returns the skills of a tree that a grant has just verified, whatever was
// found there before.
func (h *Host) skillsAt(ctx context.Context, launch approvals.Launch) []plugins.Skill {
	if skills, known := h.skills.find(launch.Digest); known && len(skills) > 0 {
		return skills
	}
	plugin, err := plugins.Load(ctx, launch.Root)
	if err != nil || plugin.Invalid != nil {
		return nil
	}
	h.skills.keep(launch.Digest, skillPage{skills: plugin.Skills})
	return plugin.Skills
}

// skillsID is the name under which a plugin's skills are offered beside its servers.
func (h *Host) skillsID(plugin string) plugins.ID {
	id := plugins.ID{Plugin: plugin, Server: plugins.SkillsServer}
	if c, ok := h.connector(id); ok && c.Transport != plugins.Skills {
		id.Server = "plugin-" + plugins.SkillsServer
	}
	return id
}

// exposedSkills are the skills of the plugins whose servers this client may use as
// a whole: whoever approved the tree approved its skills with it. approved are those
// connectors.
func (h *Host) exposedSkills(approved []approvals.Approved) (all []gateway.Exposed) {
	seen := map[string]bool{}
	for _, a := range approved {
		if seen[a.ID.Plugin] || a.Digest == "" || a.Transport == string(plugins.Skills) {
			continue
		}
		if skills := h.skillsOf(a.Digest); len(skills) > 0 {
			seen[a.ID.Plugin] = true
			all = append(all, gateway.Exposed{
				ID: h.skillsID(a.ID.Plugin), Prompts: skillPrompts(skills), Resources: true, Capabilities: skillCapabilities(),
			})
		}
	}
	return all
}

func skillCapabilities() json.RawMessage { return json.RawMessage(`{"prompts":{},"resources":{}}`) }

// skillPrompts are the skills as MCP prompts without arguments.
func skillPrompts(skills []plugins.Skill) []json.RawMessage {
	prompts := make([]json.RawMessage, len(skills))
	for i, skill := range skills {
		prompts[i] = marshal(map[string]any{"name": skill.Name, "description": skill.Description})
	}
	return prompts
}

// skillOffer is what a plugin that has skills alone provides: nothing runs to tell.
func (h *Host) skillOffer(ctx context.Context, launch approvals.Launch) approvals.Offer {
	return approvals.Offer{Prompts: skillPrompts(h.skillsAt(ctx, launch)), Capabilities: skillCapabilities()}
}

// isSkills reports whether a name stands for a plugin's skills and for no server.
func (h *Host) isSkills(id plugins.ID) bool {
	c, there := h.connector(id)
	return there && c.Transport == plugins.Skills || !there && id == h.skillsID(id.Plugin)
}

// skillGrant is the proof that a client may read a plugin's skills now: the grant of
// the skills' own connector, or of a server of the same plugin, that the client may
// use as a whole.
func (h *Host) skillGrant(ctx context.Context, client string, id plugins.ID) (grant approvals.Grant, err error) {
	err = coded.New("permission-denied", "the client has no such connector")
	for _, server := range h.Gate.ApprovedIDs() {
		if server.Plugin != id.Plugin || !h.Gate.Whole(client, server) {
			continue
		}
		if grant, err = h.Gate.Grant(ctx, server); err == nil {
			return grant, nil
		}
	}
	return grant, err
}

// skillRequest serves prompts and files of skills from the snapshot that the grant
// has just verified.
func (h *Host) skillRequest(ctx context.Context, grant approvals.Grant, method string, params json.RawMessage) (json.RawMessage, error) {
	launch, err := grant.Launch()
	if err != nil {
		return nil, err
	}
	s := skillShelf{plugin: launch.ID.Plugin, root: launch.Root, skills: h.skillsAt(ctx, launch)}
	if s.leaves, err = h.Snapshots.Leaves(launch.Digest); err != nil {
		return nil, err
	}
	var asked struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	if len(params) > 0 && json.Unmarshal(params, &asked) != nil {
		return nil, &mcp.RPCError{Code: -32602, Message: "the parameters cannot be read"}
	}
	switch method {
	case "prompts/get":
		return s.prompt(asked.Name)
	case "resources/list":
		return s.list(), nil
	case "resources/read":
		return s.resource(asked.URI)
	case "completion/complete":
		return json.RawMessage(`{"completion":{"values":[]}}`), nil
	}
	return nil, &mcp.RPCError{Code: -32601, Message: "skills do not have this method"}
}

// skillShelf is the skills of one verified snapshot.
type skillShelf struct {
	plugin, root string
	skills       []plugins.Skill
	leaves       []artifact.Leaf
}

func (s skillShelf) prompt(name string) (json.RawMessage, error) {
	for _, skill := range s.skills {
		if skill.Name != name {
			continue
		}
		raw, err := s.read(skill.Path)
		if err != nil {
			return nil, err
		}
		text := strings.ToValidUTF8(string(raw), "\uFFFD")
		note := fmt.Sprintf("The skill %s of the plugin %s. Its files are the resources below %s.\n\n", skill.Name, s.plugin, s.uri(path.Dir(skill.Path))+"/")
		return marshal(map[string]any{"description": skill.Description, "messages": []any{
			map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": note + text}},
		}}), nil
	}
	return nil, &mcp.RPCError{Code: -32602, Message: "there is no such skill"}
}

// files are the regular files of the skills.
func (s skillShelf) files() (files []artifact.Leaf) {
	for _, leaf := range s.leaves {
		if leaf.Kind == artifact.KindFile && s.isOfSkill(leaf.Path) && len(files) < maxSkillFiles {
			files = append(files, leaf)
		}
	}
	return files
}

func (s skillShelf) isOfSkill(file string) bool {
	for _, skill := range s.skills {
		if strings.HasPrefix(file, path.Dir(skill.Path)+"/") {
			return true
		}
	}
	return false
}

func (s skillShelf) uri(file string) string {
	return (&url.URL{Scheme: skillScheme, Host: s.plugin, Path: "/" + file}).String()
}

func (s skillShelf) list() json.RawMessage {
	resources := []any{}
	for _, leaf := range s.files() {
		resources = append(resources, map[string]any{"uri": s.uri(leaf.Path), "name": leaf.Path, "mimeType": mimeOf(leaf.Path), "size": leaf.Size})
	}
	return marshal(map[string]any{"resources": resources})
}

func (s skillShelf) resource(uri string) (json.RawMessage, error) {
	for _, leaf := range s.files() {
		if s.uri(leaf.Path) != uri {
			continue
		}
		raw, err := s.read(leaf.Path)
		if err != nil {
			return nil, err
		}
		content := map[string]any{"uri": uri, "mimeType": mimeOf(leaf.Path)}
		if utf8.Valid(raw) {
			content["text"] = string(raw)
		} else {
			content["blob"] = base64.StdEncoding.EncodeToString(raw)
		}
		return marshal(map[string]any{"contents": []any{content}}), nil
	}
	return nil, &mcp.RPCError{Code: -32002, Message: "there is no such file in the plugin's skills"}
}

// read reads a file of the snapshot, and nothing that a link leads out to.
func (s skillShelf) read(file string) ([]byte, error) {
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return nil, unreadableSkill(err)
	}
	defer root.Close()
	f, err := root.Open(filepath.FromSlash(file))
	if err != nil {
		return nil, unreadableSkill(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSkillFile+1))
	if err != nil {
		return nil, unreadableSkill(err)
	}
	if len(raw) > maxSkillFile {
		return nil, coded.New("skill-too-large", fmt.Sprintf("the file is larger than %d MiB", maxSkillFile>>20))
	}
	return raw, nil
}

func unreadableSkill(err error) error {
	return &coded.Error{Code: "skill-unreadable", Sentence: "the skill's file cannot be read", Next: "try again, and see sallyport doctor", Err: err}
}

func mimeOf(file string) string {
	switch path.Ext(file) {
	case ".md":
		return "text/markdown"
	case ".py", ".sh", ".js", ".ts", ".txt", ".toml", ".yaml", ".yml":
		return "text/plain"
	}
	if kind := mime.TypeByExtension(path.Ext(file)); kind != "" {
		return kind
	}
	return "application/octet-stream"
}

func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers alone
	}
	return raw
}
