package host

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/internal/jsonedit"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// Moved is a literal that is kept in the keyring now and referred to from where it
// stood.
type Moved struct {
	Name   string // of the variable or header
	Secret string // its name in the keyring
	File   string // that refers to it
	// LeftIn says that the package's own files, which nobody changes, still hold it.
	LeftIn bool
}

// move is one literal on its way to the keyring.
type move struct {
	env.Literal
	value  string
	secret string
	file   *ownText
	path   []string
	leftIn bool
	kept   bool // the keyring has it already
}

// MoveLiterals keeps what the connector has written out in the keyring and refers to
// it from there: all that look like credentials, or those that are named. The value is
// read back before anything is edited (spec/child-environment.md 5.1). as is another
// name for the one secret; "" takes a fitting one.
func (h *Host) MoveLiterals(ctx context.Context, id plugins.ID, names []string, as string, by approvals.By) ([]Moved, error) {
	h.configuring.Lock()
	defer h.configuring.Unlock()
	h.writingHand.Lock()
	defer h.writingHand.Unlock()
	moves, texts, err := h.planMoves(id, names, as)
	if err != nil {
		return nil, err
	}
	for i := range moves {
		if err := h.checkKept(ctx, id, &moves[i]); err != nil {
			return nil, err
		}
	}
	for _, m := range moves {
		if m.kept {
			continue
		}
		if err := h.SetSecret(ctx, m.secret, []byte(m.credential()), by); err != nil {
			return nil, err
		}
	}
	var moved []Moved
	for _, m := range moves {
		if err := h.recordSetting(ctx, id, m.file.name+" "+m.Name+" "+m.reference(), by); err != nil {
			return nil, err
		}
		moved = append(moved, Moved{m.Name, m.secret, m.file.name, m.leftIn})
	}
	for _, text := range texts {
		if err := text.write(); err != nil {
			return nil, err
		}
	}
	return moved, h.reconfigured(ctx)
}

// planMoves finds what to move and makes the edits without writing them.
func (h *Host) planMoves(id plugins.ID, names []string, as string) ([]move, []*ownText, error) {
	c, err := h.configured(h.ctx, id)
	if err != nil {
		return nil, nil, err
	}
	found, err := h.movable(c, names)
	switch {
	case err != nil:
		return nil, nil, err
	case as != "" && len(found) != 1:
		return nil, nil, &coded.Error{Code: "literal-ambiguous", Sentence: fmt.Sprintf("there are %d to move, and one name for the secret", len(found)),
			Next: "name the variable or header to move"}
	}
	config, err := h.configFile().read()
	if err != nil {
		return nil, nil, err
	}
	byHand, err := h.connectorsFile().read()
	if err != nil {
		return nil, nil, err
	}
	var moves []move
	var secrets []string
	for _, l := range found {
		m := move{Literal: l, secret: l.Secret}
		if as != "" {
			m.secret = as
		}
		if err := checkSecretName(m.secret); err != nil {
			return nil, nil, err
		}
		if err := m.locate(c, config, byHand); err != nil {
			return nil, nil, err
		}
		if err := m.file.edit(func(raw []byte) ([]byte, error) { return jsonedit.Set(raw, m.reference(), m.path...) }); err != nil {
			return nil, nil, err
		}
		moves, secrets = append(moves, m), append(secrets, m.secret)
	}
	return moves, []*ownText{config, byHand}, listSecrets(config, id, secrets)
}

// listSecrets adds the new references to permissions.secrets where the operator's
// configuration has that list: it would take them away again.
func listSecrets(config *ownText, id plugins.ID, names []string) error {
	own, err := overlayIn(config, id)
	if err != nil || own.Permissions == nil || own.Permissions.Secrets == nil {
		return err
	}
	list := append(slices.Clone(own.Permissions.Secrets), names...)
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) == len(own.Permissions.Secrets) {
		return nil
	}
	return config.edit(func(raw []byte) ([]byte, error) {
		return jsonedit.Set(raw, list, "connectors", id.String(), "permissions", "secrets")
	})
}

// movable lists what is to be moved: everything that looks like a credential and can
// be referred to, or what is named.
func (h *Host) movable(c plugins.Connector, names []string) ([]env.Literal, error) {
	settings := openSettings(c)
	found, err := h.Gate.Literals(c.ID)
	if err != nil && len(settings) == 0 {
		return nil, err // settings that are written out keep the rest from being read
	}
	found = append(found, settings...)
	if len(names) > 0 {
		return namedLiterals(c, found, names)
	}
	exempt := env.Exempt{NotSecret: c.Options.NotSecret}
	var fixed, placeholder *env.Literal
	movable := slices.DeleteFunc(slices.Clone(found), func(l env.Literal) bool {
		switch {
		case exempt.Covers(l):
			return true
		case l.Placeholder:
			placeholder = &l
		case !canRefer(l):
			fixed = &l
		default:
			return false
		}
		return true
	})
	switch {
	case len(movable) > 0:
		return movable, nil
	case fixed != nil:
		return nil, notMovable(c.ID, *fixed)
	case placeholder != nil:
		return nil, placeholder.Refusal(c.ID.String())
	}
	return nil, &coded.Error{Code: "literal-none", Sentence: fmt.Sprintf("nothing in %s looks like a credential that is written out", c.ID),
		Next: "name the variable or header if it is one all the same"}
}

func canRefer(l env.Literal) bool { return l.Where == env.InEnv || l.Where == env.InHeader }

func notMovable(id plugins.ID, l env.Literal) error {
	refusal, _ := l.Refusal(id.String()).(*coded.Error)
	return &coded.Error{Code: "literal-fixed", Sentence: fmt.Sprintf("%s stands where nothing can refer to the keyring, so it cannot be moved", l.Name),
		Next: refusal.Next}
}

// namedLiterals are those of the names, also where nothing else told them.
func namedLiterals(c plugins.Connector, found []env.Literal, names []string) ([]env.Literal, error) {
	var list []env.Literal
	for _, name := range names {
		at := slices.IndexFunc(found, func(l env.Literal) bool { return env.Exempt{NotSecret: []string{name}}.Covers(l) })
		if at >= 0 && !canRefer(found[at]) {
			return nil, notMovable(c.ID, found[at])
		}
		if at >= 0 {
			list = append(list, found[at])
			continue
		}
		where, values := env.InEnv, c.Launch.Env
		if c.Transport != plugins.Stdio {
			where, values = env.InHeader, c.Launch.Headers
		}
		if !slices.ContainsFunc(values, func(v plugins.Value) bool { return v.Name == name }) {
			return nil, &coded.Error{Code: "literal-unknown", Sentence: fmt.Sprintf("%s has no variable or header of that name", c.ID),
				Next: "see what it has: sallyport plugins show " + env.Quote(c.ID.String())}
		}
		list = append(list, env.Literal{Name: name, Where: where, Secret: env.SecretName(name)})
	}
	return list, nil
}

// openSettings are the operator's values of settings that the plugin calls sensitive,
// written out.
func openSettings(c plugins.Connector) (list []env.Literal) {
	for _, s := range c.Settings {
		if s.Sensitive && len(s.Value) == 1 && s.Value[0] != "" && !strings.HasPrefix(s.Value[0], "secret:") {
			list = append(list, env.Literal{Name: env.SettingName(s.Key), Where: env.InEnv, Secret: secretNameOf(c.ID, s.Key)})
		}
	}
	return list
}

// ofSetting is a value that is one setting of the plugin's and nothing else.
var ofSetting = regexp.MustCompile(`^\$\{user_config\.([^{}]+)\}$`)

// locate finds the value and where it is referred to from now on.
func (m *move) locate(c plugins.Connector, config, byHand *ownText) error {
	if key, ok := env.SettingKey(m.Name); ok {
		return m.locateSetting(c, config, key)
	}
	field, values := "env", c.Launch.Env
	if m.Where == env.InHeader {
		field, values = "headers", c.Launch.Headers
	}
	at := slices.IndexFunc(values, func(v plugins.Value) bool { return v.Name == m.Name })
	if at < 0 {
		return &coded.Error{Code: "literal-unknown", Sentence: fmt.Sprintf("%s has no variable or header of that name", c.ID), Next: "try again"}
	}
	m.value = values[at].Value
	if found := ofSetting.FindStringSubmatch(m.value); found != nil {
		return m.locateSetting(c, config, found[1])
	}
	own := []string{"connectors", c.ID.String(), field, m.Name}
	switch _, overlaid := jsonedit.Text(config.now, own...); {
	case overlaid:
		m.file, m.path = config, own
	case c.Format == plugins.ByHand:
		m.file, m.path = byHand, []string{"connectors", c.ID.Server, field, m.Name}
		if _, there := jsonedit.Text(byHand.now, m.path...); !there {
			return &coded.Error{Code: "config-unusable", Sentence: "connectors.json is not changed: the value is not where it was expected", Next: "edit connectors.json by hand"}
		}
	default:
		m.file, m.path, m.leftIn = config, own, true
	}
	return m.whole(values[at].FromOperator)
}

func (m *move) locateSetting(c plugins.Connector, config *ownText, key string) error {
	at := slices.IndexFunc(c.Settings, func(s plugins.Setting) bool { return s.Key == key })
	if at < 0 || len(c.Settings[at].Value) != 1 {
		return &coded.Error{Code: "literal-unknown", Sentence: "the setting has no single value of yours", Next: "edit config.json by hand"}
	}
	m.value = c.Settings[at].Value[0]
	m.file, m.path = config, []string{"connectors", c.ID.String(), "userConfig", key}
	return m.whole(true)
}

// whole refuses a value that is a credential in part only: what refers to something
// else would not, once it lies in the keyring.
func (m *move) whole(operator bool) error {
	refers := strings.HasPrefix(m.value, "secret:") || operator && strings.HasPrefix(m.value, "env:")
	if m.Placeholder && !operator || !refers && !strings.Contains(m.value, "${") {
		return nil
	}
	return &coded.Error{Code: "literal-mixed", Sentence: fmt.Sprintf("the value of %q refers to something already, so it cannot be moved whole", m.Name),
		Next: "write it in " + m.file.name + " with ${secret:NAME} in place of the credential"}
}

// scheme is "Bearer " and the like, which stays outside of the keyring.
func (m move) scheme() string {
	if _, ok := env.SettingKey(m.Name); ok {
		return ""
	}
	scheme, _ := env.SplitScheme(m.value)
	return scheme
}

func (m move) credential() string { return m.value[len(m.scheme()):] }

// reference is what stands in the value's place.
func (m move) reference() string {
	if scheme := m.scheme(); scheme != "" {
		return scheme + "${secret:" + m.secret + "}"
	}
	return "secret:" + m.secret
}

// checkKept looks whether the name is free or holds this very value. For a placeholder
// there is nothing to keep: the real one has to be there.
func (h *Host) checkKept(ctx context.Context, id plugins.ID, m *move) error {
	known, same, err := h.Secrets.Holds(ctx, m.secret, []byte(m.credential()))
	switch {
	case err != nil:
		return err
	case m.Placeholder && !known:
		return &coded.Error{Code: "secret-unknown", Sentence: fmt.Sprintf("%q holds a placeholder, and no secret %q is kept yet", m.Name, m.secret),
			Next: fmt.Sprintf("keep it first: sallyport secrets set %s; or name another: sallyport secrets move %s %s --as NAME", m.secret, env.Quote(id.String()), env.Quote(m.Name))}
	case known && !same && !m.Placeholder:
		return &coded.Error{Code: "secret-name-taken", Sentence: fmt.Sprintf("another value is kept as %q already, so nothing was moved", m.secret),
			Next: fmt.Sprintf("keep this one under another name: sallyport secrets move %s %s --as NAME", env.Quote(id.String()), env.Quote(m.Name))}
	}
	m.kept = known
	return nil
}

// NotSecret says that what looks like a credential in a connector is none, or takes
// that back. It is part of what is approved: the approval ends.
func (h *Host) NotSecret(ctx context.Context, id plugins.ID, name string, undo bool, by approvals.By) error {
	h.configuring.Lock()
	defer h.configuring.Unlock()
	config, err := h.configFile().read()
	if err != nil {
		return err
	}
	own, err := overlayIn(config, id)
	if err != nil {
		return &coded.Error{Code: "config-unusable", Err: err, Sentence: "config.json is not changed: the entry for " + id.String() + " is not valid",
			Next: "correct the entry in config.json"}
	}
	list, err := h.notSecretList(id, own.NotSecret, name, undo)
	if err != nil {
		return err
	}
	path := []string{"connectors", id.String(), "notSecret"}
	err = config.edit(func(raw []byte) ([]byte, error) {
		if len(list) == 0 {
			return jsonedit.Remove(raw, path...)
		}
		return jsonedit.Set(raw, list, path...)
	})
	if err != nil {
		return err
	}
	what := "not secret: " + name
	if undo {
		what = "secret after all: " + name
	}
	if err := h.recordSetting(ctx, id, what, by); err != nil {
		return err
	}
	if err := config.write(); err != nil {
		return err
	}
	return h.reconfigured(ctx)
}

func (h *Host) notSecretList(id plugins.ID, have []string, name string, undo bool) ([]string, error) {
	at := slices.Index(have, name)
	if undo {
		if at < 0 {
			return nil, &coded.Error{Code: "literal-unknown", Sentence: "you did not say that of this name", Next: "see what you said: sallyport approve " + env.Quote(id.String())}
		}
		return slices.Delete(slices.Clone(have), at, at+1), nil
	}
	found, err := h.Gate.Literals(id)
	if err != nil {
		return nil, err
	}
	match := slices.IndexFunc(found, func(l env.Literal) bool { return env.Exempt{NotSecret: []string{name}}.Covers(l) })
	if match < 0 {
		return nil, &coded.Error{Code: "literal-unknown", Sentence: fmt.Sprintf("nothing of that name in %s looks like a credential", id),
			Next: "the refusal names it: sallyport plugins show " + env.Quote(id.String())}
	}
	if at >= 0 {
		return have, nil
	}
	return append(slices.Clone(have), found[match].Name), nil
}

// recordSetting puts a change of the operator's files on record, before it is made.
func (h *Host) recordSetting(ctx context.Context, id plugins.ID, what string, by approvals.By) error {
	_, err := h.Audit.Append(ctx, audit.Record{Action: audit.Setting, Result: audit.OK, Actor: by.User, Via: by.Via,
		Plugin: id.Plugin, Binding: id.Server, Target: what})
	return err
}

// reconfigured takes over what was edited at once.
func (h *Host) reconfigured(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	h.catalog.Store(h.newCatalog())
	if err := h.Rescan(ctx); err != nil {
		return err
	}
	h.RecheckAll(ctx)
	h.Events.add("plugins", "", "")
	return nil
}
