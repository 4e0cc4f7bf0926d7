package spectest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// An Exchange is a request and its response.
type Exchange struct {
	Request *http.Request
	Asked   []byte // part of the request body that the handler has read
	Status  int
	Header  http.Header
	Answer  []byte
}

const (
	problemType = "application/problem+json"
	linesType   = "application/x-ndjson"
)

// Check returns an error if the exchange differs from openapi.json. It ignores paths outside /v1.
func (s *Spec) Check(x *Exchange) error {
	path := x.Request.URL.Path
	if path != "/v1" && !strings.HasPrefix(path, "/v1/") {
		return nil
	}
	errs := []error{s.common(x)}
	route, values := s.route(x.Request)
	switch {
	case x.Request.Method == http.MethodHead: // the answer has no body
	case route == nil:
		errs = append(errs, s.problem(x, nil))
	default:
		errs = append(errs, s.operation(x, route, values))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s %s: %d %s: %w", x.Request.Method, path, x.Status, cut(x.Answer), err)
	}
	return nil
}

func cut(text []byte) string { return strings.TrimSpace(string(text[:min(len(text), 600)])) }

// common checks what applies to every response.
func (s *Spec) common(x *Exchange) error {
	var errs []error
	if x.Header.Get("Request-Id") == "" {
		errs = append(errs, errors.New("the answer has no Request-Id"))
	}
	if x.Header.Get("Cache-Control") != "no-store" {
		errs = append(errs, errors.New("the answer may be cached"))
	}
	if (x.Status == http.StatusTooManyRequests || x.Status == http.StatusServiceUnavailable) && x.Header.Get("Retry-After") == "" {
		errs = append(errs, errors.New("the answer has no Retry-After"))
	}
	return errors.Join(errs...)
}

// operation checks an exchange against the route's operation.
func (s *Spec) operation(x *Exchange, route *routers.Route, values map[string]string) error {
	r := x.Request.Clone(context.Background())
	r.Body = io.NopCloser(bytes.NewReader(x.Asked))
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: values, Route: route, Options: s.options}
	var errs []error
	if x.Status < 300 {
		if err := errors.Join(openapi3filter.ValidateRequest(context.Background(), in), known(r, route.Operation)); err != nil {
			errs = append(errs, fmt.Errorf("the server accepts a request that openapi.json refuses: %w", err))
		}
	}
	if kind, _, _ := mime.ParseMediaType(x.Header.Get("Content-Type")); kind == linesType {
		return errors.Join(append(errs, s.lines(x, route))...)
	}
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{RequestValidationInput: in,
		Status: x.Status, Header: x.Header, Body: io.NopCloser(bytes.NewReader(x.Answer)), Options: s.options})
	errs = append(errs, err, noNull(x.Answer, x.Header))
	if x.Status >= 400 {
		errs = append(errs, s.problem(x, route.Operation))
	}
	return errors.Join(errs...)
}

// known returns an error for a parameter that the operation does not have.
func known(r *http.Request, op *openapi3.Operation) error {
	for name := range r.URL.Query() {
		if op.Parameters.GetByInAndName(openapi3.ParameterInQuery, name) == nil {
			return fmt.Errorf("the parameter %s is unknown", name)
		}
	}
	return nil
}

// problem checks a problem's form, and that the operation has its code. If op is nil, any code is valid.
func (s *Spec) problem(x *Exchange, op *openapi3.Operation) error {
	if x.Status < 400 {
		return errors.New("openapi.json has no such operation")
	}
	if kind := x.Header.Get("Content-Type"); kind != problemType {
		return fmt.Errorf("the answer's type is %q", kind)
	}
	var p map[string]any
	if err := json.Unmarshal(x.Answer, &p); err != nil {
		return err
	}
	schema := s.Doc.Components.Schemas["Problem"].Value
	if err := schema.VisitJSON(p, formats(), openapi3.MultiErrors(), openapi3.DisableSchemaErrorDetails()); err != nil {
		return err
	}
	code, _ := p["code"].(string)
	if p["type"] != "/docs#error-"+code || p["status"] != float64(x.Status) || p["request_id"] != x.Header.Get("Request-Id") {
		return fmt.Errorf("type, status or request_id of the problem %s is wrong", code)
	}
	known, _ := schema.Extensions["x-codes"].(map[string]any)
	entry, _ := known[code].(map[string]any)
	if entry == nil || entry["title"] != p["title"] {
		return fmt.Errorf("the code %s with the title %q is not among the codes, which have %v", code, p["title"], entry["title"])
	}
	if op == nil {
		return nil
	}
	if r := op.Responses.Status(x.Status); r != nil {
		if codes, _ := r.Value.Extensions["x-codes"].([]any); !slices.Contains(codes, any(code)) {
			return fmt.Errorf("the code %s is not among those of %s: %v", code, op.OperationID, codes)
		}
	}
	return nil
}

// lines checks a list in JSON lines: each row, and the end.
func (s *Spec) lines(x *Exchange, route *routers.Route) error {
	answer := route.Operation.Responses.Status(http.StatusOK).Value
	if answer.Extensions["x-lines"] != true {
		return errors.New("openapi.json has no lines for this operation")
	}
	row := answer.Content["application/json"].Schema.Value.Properties["data"].Value.Items.Value
	for line := range bytes.Lines(x.Answer) {
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil {
			return err
		}
		if _, end := v["end"]; end || v["status"] != nil && v["code"] != nil {
			continue
		}
		if err := row.VisitJSON(v, formats(), openapi3.MultiErrors(), openapi3.DisableSchemaErrorDetails()); err != nil {
			return err
		}
	}
	return nil
}

// noNull returns an error if the response contains null.
func noNull(text []byte, h http.Header) error {
	if !strings.Contains(h.Get("Content-Type"), "json") {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(text))
	for {
		switch token, err := in.Token(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case token == nil:
			return errors.New("the answer contains null")
		}
	}
}
