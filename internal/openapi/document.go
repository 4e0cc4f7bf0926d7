package openapi

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"
)

// A document is the part of openapi.json that the page shows.
type document struct {
	Info struct{ Title, Version, Summary, Description string }
	Tags []struct{ Name, Description string }

	Paths      ordered[ordered[operation]]
	Components struct {
		Parameters map[string]parameter
		Responses  map[string]response
		Schemas    ordered[schema]
	}
}

type operation struct {
	ID          string `json:"operationId"`
	Tags        []string
	Summary     string
	Description string
	Security    []map[string][]string
	Merchants   bool `json:"x-merchant-keys"`
	Parameters  []parameter
	Body        *body `json:"requestBody"`
	Responses   ordered[response]

	Method, Path string // set by operations
}

// Scope returns the operation's scope.
func (o operation) Scope() string { return strings.Join(o.Security[0]["apiKey"], ", ") }

type body struct {
	Required bool
	Content  ordered[media]
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      schema
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     ordered[media]
	Codes       []string `json:"x-codes"`
}

type media struct {
	Schema   schema
	Examples ordered[example]
}

type example struct{ Value json.RawMessage }

// Text returns the example as indented JSON.
func (e example) Text() (string, error) {
	var b bytes.Buffer
	err := json.Indent(&b, e.Value, "", "  ")
	return b.String(), err
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        string
	Format      string
	Description string
	Enum        []string
	Required    []string
	Properties  ordered[schema]
	Items       *schema
	Values      json.RawMessage `json:"additionalProperties"`
	Codes       ordered[code]   `json:"x-codes"`
}

// Name returns the name of the referenced schema.
func (s schema) Name() string { return path.Base(s.Ref) }

// A code is a problem's code.
type code struct{ Title, Description string }

// ordered is a JSON object whose members keep their order.
type ordered[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

func (o *ordered[T]) UnmarshalJSON(text []byte) error {
	in := json.NewDecoder(bytes.NewReader(text))
	_, err := in.Token()
	for err == nil && in.More() {
		var m member[T]
		var name json.Token
		if name, err = in.Token(); err != nil {
			break
		}
		m.Name, _ = name.(string)
		if err = in.Decode(&m.Value); err == nil {
			*o = append(*o, m)
		}
	}
	return err
}

// operations returns the operations of a tag, with references to parameters and responses resolved.
func (d *document) operations(tag string) (all []operation) {
	for _, p := range d.Paths {
		for _, m := range p.Value {
			o := m.Value
			if o.Tags[0] != tag {
				continue
			}
			o.Method, o.Path = strings.ToUpper(m.Name), p.Name
			for i, x := range o.Parameters {
				if x.Ref != "" {
					o.Parameters[i] = d.Components.Parameters[path.Base(x.Ref)]
				}
			}
			for i, x := range o.Responses {
				if x.Value.Ref != "" {
					o.Responses[i].Value = d.Components.Responses[path.Base(x.Value.Ref)]
				}
			}
			all = append(all, o)
		}
	}
	return all
}

// codes returns all problem codes.
func (d *document) codes() ordered[code] {
	for _, s := range d.Components.Schemas {
		if s.Name == "Problem" {
			return s.Value.Codes
		}
	}
	return nil
}
