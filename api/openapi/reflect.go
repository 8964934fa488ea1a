package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// schema is a JSON Schema of the 2020-12 dialect.
type schema map[string]any

// reflector turns Go types into schemas, each named struct once.
type reflector struct {
	named map[string]schema
	types map[string]reflect.Type // who has a name
}

func newReflector() *reflector {
	return &reflector{named: map[string]schema{}, types: map[string]reflect.Type{}}
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
	// encoding/json writes bytes as text in base64.
	bytesType = reflect.TypeFor[[]byte]()
)

// of returns the schema of zero's type, as encoding/json writes it.
func (r *reflector) of(zero any) (schema, error) { return r.schema(reflect.TypeOf(zero)) }

func (r *reflector) schema(t reflect.Type) (schema, error) {
	switch t {
	case timeType:
		return schema{"type": "string", "format": "date-time"}, nil
	case rawType:
		return schema{"description": "any JSON"}, nil
	case bytesType:
		return schema{"type": "string", "contentEncoding": "base64"}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return schema{"type": "string"}, nil
	case reflect.Bool:
		return schema{"type": "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return schema{"type": "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schema{"type": "integer", "minimum": 0}, nil
	case reflect.Slice, reflect.Array:
		return r.wrap("items", "array", t.Elem())
	case reflect.Map:
		return r.wrap("additionalProperties", "object", t.Elem())
	case reflect.Pointer:
		return r.schema(t.Elem())
	case reflect.Struct:
		return r.reference(t)
	default:
		return nil, fmt.Errorf("%s has no schema", t)
	}
}

func (r *reflector) wrap(keyword, kind string, element reflect.Type) (schema, error) {
	inner, err := r.schema(element)
	return schema{"type": kind, keyword: inner}, err
}

// reference names a struct among the components, and describes it there once. A
// struct without a name is described where it stands.
func (r *reflector) reference(t reflect.Type) (schema, error) {
	if t.Name() == "" {
		return r.object(t)
	}
	name := nameOf(t)
	reference := schema{"$ref": "#/components/schemas/" + name}
	switch r.types[name] {
	case t:
		return reference, nil
	case nil:
	default:
		return nil, fmt.Errorf("%s and %s have one name", r.types[name], t)
	}
	r.types[name] = t
	described, err := r.object(t)
	r.named[name] = described
	return reference, err
}

// nameOf is the type's own name for the API's own types and, since names of
// other packages may be the same, with the package before it for theirs.
func nameOf(t reflect.Type) string {
	folder, pkg := t.PkgPath(), t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	if strings.HasSuffix(folder, "/api") {
		return t.Name()
	}
	return strings.ToUpper(pkg[:1]) + pkg[1:] + t.Name()
}

func (r *reflector) object(t reflect.Type) (schema, error) {
	if t.Implements(reflect.TypeFor[json.Marshaler]()) {
		return r.written(t)
	}
	properties, required, parts := map[string]any{}, []string{}, []any{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, tagged := nameAndOptions(field)
		switch {
		case field.Anonymous && !tagged:
			part, err := r.schema(field.Type)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
			continue
		case name == "-" || !field.IsExported():
			continue
		}
		property, err := r.schema(field.Type)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		optional := strings.Contains(options, "omitempty")
		if !optional {
			required = append(required, name)
			if field.Type.Kind() == reflect.Pointer {
				property = schema{"anyOf": []any{property, schema{"type": "null"}}}
			}
		}
		properties[name] = property
	}
	object := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		object["required"] = required
	}
	if len(parts) > 0 {
		return schema{"allOf": append(parts, object)}, nil
	}
	return object, nil
}

// written describes a type that encodes itself: the names are those that it
// writes, the types those of the fields they come from.
func (r *reflector) written(t reflect.Type) (schema, error) {
	raw, err := json.Marshal(reflect.New(t).Interface())
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	var names map[string]json.RawMessage
	if err := decoder.Decode(&names); err != nil {
		return nil, fmt.Errorf("%s writes no object: %w", t, err)
	}
	properties, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		for name := range names {
			if !strings.EqualFold(name, t.Field(i).Name) {
				continue
			}
			if properties[name], err = r.schema(t.Field(i).Type); err != nil {
				return nil, err
			}
			required = append(required, name)
		}
	}
	if len(properties) != len(names) {
		return nil, fmt.Errorf("%s writes names that none of its fields has", t)
	}
	return schema{"type": "object", "properties": properties, "required": required}, nil
}

func nameAndOptions(field reflect.StructField) (name, options string, tagged bool) {
	tag, tagged := field.Tag.Lookup("json")
	name, options, _ = strings.Cut(tag, ",")
	if name == "" {
		name = field.Name
	}
	return name, options, tagged
}
