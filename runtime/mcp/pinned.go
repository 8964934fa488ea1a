package mcp

import "context"

// referent is what a request that is no tool call speaks of: a prompt by its
// name, or a resource by its URI or template.
type referent struct {
	prompt bool
	name   string
}

// pinned refuses a request about a prompt or template that is not live as it was
// pinned (spec/approval.md 2.3, 2.4). Like a call it waits until announced changes
// have been compared.
func (s *Session) pinned(ctx context.Context, method string, params []byte) error {
	about, ok, err := refersTo(method, params)
	if err != nil || !ok {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	return s.pool.guard.mayRefer(s.permit, about)
}

// refersTo reads what is asked for. Two members of a name, or one in another
// dress, are refused: the server might read the other one.
func refersTo(method string, params []byte) (about referent, ok bool, err error) {
	switch method {
	case "prompts/get":
		name, err := textOf(params, "name")
		return referent{prompt: true, name: name}, true, err
	case "completion/complete":
	default:
		return referent{}, false, nil
	}
	from, to, sound := only(params, "ref")
	if !sound {
		return referent{}, false, invalidParams("the parameters of completion/complete are not an object with one ref")
	}
	ref := params[from:to]
	kind, err := textOf(ref, "type")
	if err != nil {
		return referent{}, false, err
	}
	if kind == "ref/prompt" {
		name, err := textOf(ref, "name")
		return referent{prompt: true, name: name}, true, err
	}
	uri, err := textOf(ref, "uri")
	return referent{name: uri}, true, err
}

// only finds the one member of an object that has the key.
func only(object []byte, key string) (from, to int, ok bool) {
	var scan scanner
	scan.reset(object)
	odd := false
	sound := scan.members(func(name []byte, start, end int) bool {
		exact, variant := spelled(name, key)
		odd = odd || variant || exact && to > 0
		if exact {
			from, to = start, end
		}
		return true
	})
	return from, to, sound && scan.end() && !odd && to > 0
}

// textOf is only for a member that is a string, and returns what it stands for.
func textOf(object []byte, key string) (string, error) {
	from, to, ok := only(object, key)
	if !ok || object[from] != '"' {
		return "", invalidParams("the parameters are not an object with one text " + key)
	}
	return unquote(object[from+1 : to-1]), nil
}
