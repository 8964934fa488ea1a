package clients

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseYAML reads one YAML document into a tree. Aliases and merges are kept as what
// they are: an entry that uses them is told so and not guessed at.
func parseYAML(text string) (*node, error) {
	if len(text) > maxYAML {
		return nil, &syntaxError{Place{1, 1}, "it is larger than 256 KiB, which is more YAML than is read"}
	}
	if at := yamlDepth(text); at >= 0 {
		return nil, &syntaxError{placeOf(text, at), "it is nested too deeply"}
	}
	// The reader counts a carriage return among what a line holds. Places are lines and
	// columns here, and those stay.
	file, err := parser.ParseBytes([]byte(strings.ReplaceAll(text, "\r\n", "\n")), 0)
	if err != nil {
		return nil, &syntaxError{yamlPlace(err), "it is not valid YAML with unique names"}
	}
	var found *node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if found != nil {
			return nil, &syntaxError{yamlAt(doc.Body), "it holds more than one YAML document"}
		}
		found = yamlNode(doc.Body)
	}
	if found == nil {
		return &node{kind: isObject, at: Place{1, 1}, to: len(text)}, nil
	}
	return found, nil
}

// yamlDepth bounds brackets and indentation, both of which nest.
func yamlDepth(text string) int {
	open, offset := 0, 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		if indent := len(line) - len(strings.TrimLeft(line, " -?:")); indent > 2*maxDepth {
			return offset
		}
		for i := range len(line) {
			switch line[i] {
			case '[', '{':
				if open++; open > 64 {
					return offset + i
				}
			case ']', '}':
				open = max(open-1, 0)
			}
		}
		offset += len(line)
	}
	return -1
}

func yamlPlace(err error) Place {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		return tokenPlace(syntax.Token)
	}
	var typed interface{ GetToken() *token.Token }
	if errors.As(err, &typed) && typed.GetToken() != nil {
		return tokenPlace(typed.GetToken())
	}
	return Place{1, 1}
}

func tokenPlace(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{1, 1}
	}
	return Place{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

func yamlAt(n ast.Node) Place { return tokenPlace(n.GetToken()) }

func yamlNode(n ast.Node) *node {
	if n == nil {
		return &node{kind: isNull}
	}
	out := &node{at: yamlAt(n), kind: isOther}
	switch n := n.(type) {
	case *ast.MappingNode:
		out.kind, out.flow = isObject, n.IsFlowStyle
		for _, pair := range n.Values {
			out.members = append(out.members, yamlMember(pair))
		}
		if len(out.members) > 0 {
			out.at = out.members[0].at
		}
	case *ast.MappingValueNode:
		m := yamlMember(n)
		out.kind, out.members, out.at = isObject, []member{m}, m.at
	case *ast.SequenceNode:
		out.kind, out.flow = isList, n.IsFlowStyle
		for _, item := range n.Values {
			out.items = append(out.items, yamlNode(item))
		}
	case *ast.StringNode:
		out.kind, out.text = isText, n.Value
	case *ast.LiteralNode:
		out.kind, out.text = isText, n.Value.Value
	case *ast.BoolNode:
		out.kind, out.text = isBool, "false"
		if n.Value {
			out.text = "true"
		}
	case *ast.IntegerNode:
		out.kind, out.text = isNumber, n.Token.Value
	case *ast.FloatNode:
		out.kind, out.text = isNumber, n.Token.Value
	case *ast.NullNode:
		out.kind = isNull
	}
	return out
}

// yamlMember keeps a name that is no text, or a merge, as a name that nothing is
// looked up by.
func yamlMember(pair *ast.MappingValueNode) member {
	m := member{at: yamlAt(pair.Key), value: yamlNode(pair.Value)}
	switch key := pair.Key.(type) {
	case *ast.StringNode:
		m.name = key.Value
	case *ast.MergeKeyNode:
		m.name = "<<"
	default:
		m.name = pair.Key.GetToken().Value
	}
	return m
}
