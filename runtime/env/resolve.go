package env

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"sallyport/internal/coded"
)

// Environ resolves every reference now and returns the environment in the form
// that exec takes, sorted by name. Nothing is kept. secrets may be nil: a
// secret: reference is then secret-unavailable.
//
// Errors are *coded.Error and name the variable: env-unset, env-nul,
// secret-unavailable, or the code that secrets gave.
func (p *Plan) Environ(ctx context.Context, secrets Secrets) ([]string, error) {
	environ := make([]string, 0, len(p.Vars))
	for _, v := range p.Vars {
		value, err := p.resolve(ctx, secrets, v.Name, v.value)
		if err != nil {
			return nil, err
		}
		environ = append(environ, v.Name+"="+value)
	}
	return environ, nil
}

// Header resolves the value of one HTTP header now, by the same rules. A value
// with a line break is header-invalid.
func (p *Plan) Header(ctx context.Context, secrets Secrets, d Declared) (string, error) {
	t, err := p.scope.parse(d)
	if err != nil {
		return "", err
	}
	value, err := p.resolve(ctx, secrets, d.Name, t)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(value, "\r\n") {
		return "", coded.New("header-invalid", fmt.Sprintf("the header %q would hold a line break", d.Name))
	}
	return value, nil
}

// CheckHeader says now what Header would refuse later, but for values.
func (p *Plan) CheckHeader(d Declared) error {
	t, err := p.scope.parse(d)
	if err != nil {
		return err
	}
	if t.has(isMany) {
		return several(d.Name, t)
	}
	return p.exempt.Check(literalsOf(InHeader, d, t))
}

// Path returns the child's PATH. It may use variables, never secrets.
func (p *Plan) Path() (string, error) {
	for _, v := range p.Vars {
		if v.Name == "PATH" || p.parent.windows() && strings.EqualFold(v.Name, "PATH") {
			return p.resolve(context.Background(), nil, v.Name, v.value)
		}
	}
	return "", nil
}

func (p *Plan) resolve(ctx context.Context, secrets Secrets, variable string, t template) (string, error) {
	var b strings.Builder
	for _, piece := range t {
		text, err := p.value(ctx, secrets, variable, piece)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	if strings.ContainsRune(b.String(), 0) {
		return "", nulError(variable)
	}
	return b.String(), nil
}

func (p *Plan) value(ctx context.Context, secrets Secrets, variable string, piece piece) (string, error) {
	switch piece.kind {
	case isEnv:
		return p.parent.value(variable, piece)
	case isSecret:
		return secretValue(ctx, secrets, variable, piece.name)
	default:
		return piece.text, nil
	}
}

// value treats an empty variable as the shells do: it is set, but a default
// replaces it.
func (p Parent) value(variable string, piece piece) (string, error) {
	value, ok := p.Lookup(piece.name)
	if piece.fallback && value == "" {
		return piece.text, nil
	}
	if !ok {
		return "", &coded.Error{
			Code:     "env-unset",
			Sentence: fmt.Sprintf("%q refers to the environment variable %q, which is not set", variable, piece.name),
			Next:     "set it where Sallyport is started, or give a default with ${NAME:-default}",
		}
	}
	return value, nil
}

func secretValue(ctx context.Context, secrets Secrets, variable, name string) (string, error) {
	unavailable := &coded.Error{
		Code:     "secret-unavailable",
		Sentence: fmt.Sprintf("%q needs the secret %q, and the keyring does not give it", variable, name),
		Next:     "store the secret, or unlock the keyring, and start again",
	}
	if secrets == nil {
		return "", unavailable
	}
	value, err := secrets.Secret(ctx, name)
	if err == nil {
		return value, nil
	}
	var refusal *coded.Error
	if errors.As(err, &refusal) {
		return "", refusal
	}
	unavailable.Err = err
	return "", unavailable
}

// SecretValues returns what must be masked in anything that the child writes:
// the values of its references and the passwords in inherited proxy addresses.
func (p *Plan) SecretValues(ctx context.Context, secrets Secrets) ([]string, error) {
	var values []string
	for _, v := range p.Vars {
		for _, piece := range v.value {
			if piece.kind != isEnv && piece.kind != isSecret {
				continue
			}
			value, err := p.value(ctx, secrets, v.Name, piece)
			if err != nil {
				return nil, err
			}
			if value != "" && value != piece.text {
				values = append(values, value)
			}
		}
		if v.Source == FromInherited {
			values = append(values, passwordsIn(v.value.literal())...)
		}
	}
	return values, nil
}

func passwordsIn(value string) []string {
	u, err := url.Parse(value)
	if err != nil || u.User == nil {
		return nil
	}
	password, ok := u.User.Password()
	if !ok || password == "" {
		return nil
	}
	if escaped := strings.TrimPrefix(u.User.String(), url.User(u.User.Username()).String()+":"); escaped != password {
		return []string{password, escaped}
	}
	return []string{password}
}

// Shown is a variable as it may be shown to anybody.
type Shown struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	// Value is the harmless fixed value, the name of the reference, or Hidden.
	Value string `json:"value"`
}

// Hidden stands where a value is not shown.
const Hidden = "(hidden)"

// Masked lists the plan with no value in it but fixed ones that are the same
// for everybody, and references by name.
func (p *Plan) Masked() []Shown {
	shown := make([]Shown, 0, len(p.Vars))
	for _, v := range p.Vars {
		shown = append(shown, Shown{Name: v.Name, Source: v.Source, Value: p.shownValue(v)})
	}
	return shown
}

func (p *Plan) shownValue(v Var) string {
	if v.Source == FromReference {
		return v.Reference
	}
	if v.Source == FromSallyport {
		for _, pair := range pythonValues("windows") {
			if pair[0] == v.Name {
				return pair[1]
			}
		}
	}
	return Hidden
}
