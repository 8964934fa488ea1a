package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/internal/jsonedit"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/plugins"
)

// Choices is what the operator changes about a connector's settings (user_config).
type Choices struct {
	Set   map[string][]string // by key
	Unset []string            // keys that go back to their default
	// Secrets are values for the keyring; config.json gets their names.
	Secrets map[string][]byte
}

// Settings returns a connector's settings with their present values. Where a value
// is kept in the keyring it is its reference.
func (h *Host) Settings(ctx context.Context, id plugins.ID) ([]plugins.Setting, error) {
	c, err := h.configured(ctx, id)
	return c.Settings, err
}

func (h *Host) configured(ctx context.Context, id plugins.ID) (plugins.Connector, error) {
	found, err := h.scan(ctx, 0)
	if err != nil {
		return plugins.Connector{}, err
	}
	c, ok := found.Connector(id)
	if !ok {
		return c, &coded.Error{Code: "plugin-unknown", Sentence: "there is no connector of that name",
			Next: "see what there is: sallyport plugins list"}
	}
	return c, nil
}

// Configure changes settings: values in config.json, secrets in the keyring. All of
// it is checked before any of it is done, and is on record first.
func (h *Host) Configure(ctx context.Context, id plugins.ID, change Choices, by approvals.By) error {
	h.configuring.Lock()
	defer h.configuring.Unlock()
	c, err := h.configured(ctx, id)
	if err != nil {
		return err
	}
	if err := change.check(c); err != nil {
		return err
	}
	config, err := h.configFile().read()
	if err != nil {
		return err
	}
	if err := editSettings(config, id, c.Settings, change); err != nil {
		return err
	}
	if err := listSecrets(config, id, change.secretNames(id)); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(change.Secrets)) {
		if err := h.SetSecret(ctx, secretNameOf(id, key), change.Secrets[key], by); err != nil {
			return err
		}
	}
	for _, key := range change.keys() {
		record := audit.Record{Action: audit.Setting, Result: audit.OK, Actor: by.User, Via: by.Via, Plugin: id.Plugin, Binding: id.Server, Target: key}
		if _, err := h.Audit.Append(ctx, record); err != nil {
			return err
		}
	}
	if err := config.write(); err != nil {
		return err
	}
	if err := h.reconfigured(ctx); err != nil {
		return err
	}
	return h.forget(context.WithoutCancel(ctx), id, c.Settings, change, by)
}

// forget deletes the secrets of settings that no longer name them.
func (h *Host) forget(ctx context.Context, id plugins.ID, before []plugins.Setting, change Choices, by approvals.By) error {
	for _, s := range before {
		_, kept := change.Secrets[s.Key]
		own := "secret:" + secretNameOf(id, s.Key)
		if kept || !slices.Contains(change.keys(), s.Key) || !slices.Equal(s.Value, []string{own}) {
			continue
		}
		if slices.Equal(change.Set[s.Key], []string{own}) {
			continue
		}
		if err := h.DeleteSecret(ctx, secretNameOf(id, s.Key), by); err != nil {
			return err
		}
	}
	return nil
}

// secretNames are the secrets that the settings refer to after the change.
func (c Choices) secretNames(id plugins.ID) (names []string) {
	for key := range c.Secrets {
		names = append(names, secretNameOf(id, key))
	}
	for _, values := range c.Set {
		for _, value := range values {
			if name, ok := strings.CutPrefix(value, "secret:"); ok {
				names = append(names, name)
			}
		}
	}
	return names
}

func (c Choices) keys() []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(c.Set)), maps.Keys(c.Secrets))
	keys = append(keys, c.Unset...)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// check refuses, by name, what cannot be a value of the connector's settings.
func (c Choices) check(of plugins.Connector) error {
	keys := c.keys()
	if len(keys) == 0 {
		return &coded.Error{Code: "bad-request", Sentence: "no setting is named"}
	}
	if len(keys) != len(c.Set)+len(c.Unset)+len(c.Secrets) {
		return &coded.Error{Code: "bad-request", Sentence: "a setting is named twice"}
	}
	id := of.ID.String()
	for _, key := range keys {
		at := slices.IndexFunc(of.Settings, func(s plugins.Setting) bool { return s.Key == key })
		if at < 0 {
			return &coded.Error{Code: "setting-unknown", Sentence: fmt.Sprintf("%s has no setting %q", id, approvals.Visible(key)),
				Next: "see what it has: sallyport config " + id}
		}
		s := of.Settings[at]
		if value, secret := c.Secrets[key]; secret && len(value) == 0 {
			return &coded.Error{Code: "setting-invalid", Sentence: fmt.Sprintf("the value of %q is empty", approvals.Visible(key)),
				Next: "to take it away: sallyport config " + id + " --unset " + key}
		}
		values := c.Set[key]
		if sentence := s.Fits(values); sentence != "" {
			return &coded.Error{Code: "setting-invalid", Sentence: sentence, Next: "see what it takes: sallyport config " + id}
		}
		literal := func(value string) bool { return value != "" && !strings.HasPrefix(value, "secret:") }
		if s.Sensitive && slices.ContainsFunc(values, literal) {
			return &coded.Error{Code: "setting-sensitive", Sentence: fmt.Sprintf("the setting %q is sensitive and is kept in the keyring", approvals.Visible(key)),
				Next: "have it asked for: sallyport config " + id + " --secret " + key}
		}
	}
	return nil
}

// secretNameOf is the name under which a setting is kept. Where the three names have
// other signs than a secret's may have, a hash keeps it from being another's.
func secretNameOf(id plugins.ID, key string) string {
	parts := []string{id.Plugin, id.Server, key}
	whole := strings.Join(parts, "\x00")
	same := true
	for i, part := range parts {
		parts[i] = strings.Map(func(r rune) rune {
			if r == '_' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
				return r
			}
			return '-'
		}, part)
		same = same && parts[i] == part
	}
	name := strings.Join(parts, ".")
	const most, ofHash = 128, 12
	if same && len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(whole))
	return name[:min(len(name), most-ofHash-1)] + "." + hex.EncodeToString(sum[:])[:ofHash]
}

// editSettings puts a change into the text of a configuration, and leaves every byte
// that is not a setting's as it is.
func editSettings(config *ownText, id plugins.ID, settings []plugins.Setting, change Choices) error {
	for _, s := range settings {
		path := []string{"connectors", id.String(), "userConfig", s.Key}
		var value any
		switch values, given := change.Set[s.Key]; {
		case change.Secrets[s.Key] != nil:
			value = "secret:" + secretNameOf(id, s.Key)
		case given:
			value = written(s, values)
		case !slices.Contains(change.Unset, s.Key):
			continue
		}
		err := config.edit(func(raw []byte) ([]byte, error) {
			if value != nil {
				return jsonedit.Set(raw, value, path...)
			}
			now, err := jsonedit.Remove(raw, path...)
			if errors.Is(err, jsonedit.ErrAbsent) {
				return raw, nil
			}
			return now, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// written is a setting's values as JSON has them: numbers as numbers, one value
// without a list.
func written(s plugins.Setting, values []string) any {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
		if (s.Type == "number" || s.Type == "boolean") && value != "" && !strings.HasPrefix(value, "secret:") {
			list[i] = json.RawMessage(value)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}
