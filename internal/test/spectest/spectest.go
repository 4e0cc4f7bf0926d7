// Package spectest checks the HTTP API against openapi.json: its responses, the requests that it accepts,
// and its routes.
//
// It does not tolerate what callers must: a response field that openapi.json does not name is an error, and
// so is null.
package spectest

import (
	"fmt"
	"net/http"
	"path"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/duesday/duesday/internal/openapi"
)

// A Spec is the parsed openapi.json.
type Spec struct {
	Doc     *openapi3.T
	mux     *http.ServeMux // finds a request's operation as the server does
	found   map[string]*routers.Route
	options *openapi3filter.Options
}

func init() {
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder) // the receipt's document
}

// New returns the Spec, in which every object with named fields rejects other fields.
func New(t testing.TB) *Spec {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(openapi.Text()))
	if err != nil {
		t.Fatalf("openapi.json: %v", err)
	}
	s := &Spec{Doc: doc, mux: http.NewServeMux(), found: map[string]*routers.Route{}}
	s.options = &openapi3filter.Options{IncludeResponseStatus: true, SkipSettingDefaults: true, MultiError: true,
		RejectWhenRequestBodyNotSpecified: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		SchemaValidationOptions: []openapi3.SchemaValidationOption{formats(), openapi3.DisableSchemaErrorDetails()}}
	err = doc.WalkSchemas(func(_ string, x *openapi3.SchemaRef) error { return closed(x) })
	if err != nil {
		t.Fatalf("openapi.json: %v", err)
	}
	// The schemas only use keywords of OpenAPI 3.0. Parsing them as 3.0 avoids compiling them for each
	// response, which takes 4 ms.
	fast := *doc
	fast.OpenAPI = "3.0.3"
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			pattern := method + " " + path
			s.mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
			s.found[pattern] = &routers.Route{Spec: &fast, Path: path, PathItem: item, Method: method, Operation: op}
		}
	}
	return s
}

// closed makes schemas reject fields that they do not name. It returns an error for a keyword that
// OpenAPI 3.0 lacks.
func closed(x *openapi3.SchemaRef) error {
	v := x.Value
	if len(v.Type.Slice()) > 1 || v.Const != nil || v.If != nil || v.PropertyNames != nil || len(v.PatternProperties)+len(v.PrefixItems) > 0 {
		return fmt.Errorf("the schema %s has a keyword of 3.1", v.Description)
	}
	if len(v.Properties) > 0 && v.AdditionalProperties.Has == nil && v.AdditionalProperties.Schema == nil {
		v.AdditionalProperties.Has = new(false)
	}
	return nil
}

// formats contains the formats of days, times and UUIDs, which are narrower than OpenAPI's.
func formats() openapi3.SchemaValidationOption {
	forms := map[string]openapi3.StringFormatValidator{}
	for name, form := range map[string]string{
		"date":      `^\d{4}-\d\d-\d\d$`,
		"date-time": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`,
		"uuid":      `^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`,
	} {
		forms[name] = openapi3.NewRegexpFormatValidator(form)
	}
	return openapi3.WithStringFormatValidators(forms)
}

// route returns the request's operation and path values, or nil if there is none.
func (s *Spec) route(r *http.Request) (*routers.Route, map[string]string) {
	probe := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host}
	if probe.Method == http.MethodHead {
		probe.Method = http.MethodGet
	}
	_, pattern := s.mux.Handler(probe)
	route := s.found[pattern]
	if route == nil || path.Clean(r.URL.Path) != r.URL.Path { // the mux would redirect it
		return nil, nil
	}
	s.mux.ServeHTTP(nil, probe) // sets the path's values
	values := map[string]string{}
	for _, p := range route.Operation.Parameters {
		if p.Value.In == openapi3.ParameterInPath {
			values[p.Value.Name] = probe.PathValue(p.Value.Name)
		}
	}
	return route, values
}
