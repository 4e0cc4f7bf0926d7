package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

const (
	codeKey     = "key"             // the API key is missing, or another one
	codeField   = "field"           // a field.Error
	codeRunning = "in_progress"     // the first request with an idempotency key
	codeUsedKey = "idempotency_key" // an idempotency key is malformed, or that of another request
	retryAfter  = "5"               // seconds
	maxText     = 300               // bytes of an error's text
)

// titles are the titles of this package's codes. They are the same as in openapi.json.
var titles = map[string]string{
	codeKey:        "The API key is missing or invalid",
	"scope":        "The API key's scope does not allow this request",
	"merchant":     "The API key belongs to a merchant",
	"cross_origin": "A page from another origin called the API",
	"no_route":     "There is no such path",
	"not_found":    "There is no such object",
	"method":       "The path does not support this method",
	"query":        "The query string is malformed",
	codeField:      "A field or parameter is invalid",
	"json":         "The body is not a valid JSON object",
	"broken":       "The connection closed before the end of the body",
	"content_type": "The body is not application/json",
	"encoding":     "The body is compressed",
	"too_large":    "The body is too large",
	"unavailable":  "The server is unavailable",
	"unready":      "The server is not ready",
	"internal":     "The server failed",
	codeUsedKey:    "The Idempotency-Key is malformed or already used",
	"version":      "The object has changed",
	codeRunning:    "A request with this Idempotency-Key is still running",
}

// A Kind maps errors to an answer. Its detail is the error's text without values of the request.
type Kind struct {
	Is          error
	Status      int
	Code, Title string
}

// A Problem is an error in the form in which callers get it (RFC 9457). An error that is neither a Problem
// nor has a field.Error nor is of a Kind is 503, without a detail.
type Problem struct {
	Status              int
	Code, Title, Detail string // Title may be "" for a code of this package
	Errors              []FieldProblem
	Object              string // path of an object that the caller may look at

	unsure []string // fields of which others decide that are in Errors
}

// A FieldProblem is the problem of one field of the body, or of one parameter.
type FieldProblem struct {
	Pointer   string `json:"pointer,omitempty"` // JSON pointer as a URI fragment, such as #/amount
	Parameter string `json:"parameter,omitempty"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
}

func (p *Problem) Error() string { return cmp.Or(p.Detail, p.Title) }

// Problemf returns a Problem with the detail, which must not have values of the request.
func Problemf(status int, code, format string, args ...any) error {
	return &Problem{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Problems of every route.
var (
	ErrUnavailable = &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable",
		Detail: "the server cannot answer at the moment; try again"}
	ErrNotFound = &Problem{Status: http.StatusNotFound, Code: "not_found",
		Detail: "no such object exists, or the API key cannot see it"}
	ErrMerchant = &Problem{Status: http.StatusForbidden, Code: "merchant",
		Detail: "this API key belongs to another merchant"}
	errVersion = &Problem{Status: http.StatusPreconditionFailed, Code: "version",
		Detail: "the object has changed since it was read; read it again"}
	errFailed = &Problem{Status: http.StatusInternalServerError, Code: "internal", Detail: "the server failed"}
)

// ProblemOf returns the answer to an error, and whether it is known. The text of an unknown one is for the
// log only.
func (r *Request) ProblemOf(err error) (p *Problem, known bool) {
	p, ok := errors.AsType[*Problem](err)
	if ok && p.Code != codeField {
		return p, true
	}
	if fields := fieldErrors(err, nil); ok || len(fields) > 0 {
		return r.wrongFields(p, fields), true
	}
	for _, k := range r.Server.o.Kinds {
		if errors.Is(err, k.Is) {
			return &Problem{Status: k.Status, Code: k.Code, Title: k.Title, Detail: r.WithoutValues(err.Error())}, true
		}
	}
	switch {
	case errors.Is(err, call.ErrVersion):
		return errVersion, true
	case errors.Is(err, store.ErrNotFound):
		return ErrNotFound, true
	}
	return ErrUnavailable, false
}

// fieldErrors appends each field.Error in the tree of err.
func fieldErrors(err error, all []*field.Error) []*field.Error {
	if e, ok := err.(*field.Error); ok {
		return append(all, e)
	}
	switch x := err.(type) {
	case interface{ Unwrap() []error }:
		for _, e := range x.Unwrap() {
			all = fieldErrors(e, all)
		}
	case interface{ Unwrap() error }:
		all = fieldErrors(x.Unwrap(), all)
	}
	return all
}

// wrongFields returns the problem of all wrong fields: those of read, which is nil or from Read or Values, and others.
// A field that is wrong already, or of which a part is, has no second problem.
func (r *Request) wrongFields(read *Problem, others []*field.Error) *Problem {
	p := &Problem{Status: http.StatusUnprocessableEntity, Code: codeField}
	if read != nil {
		p.Errors, p.unsure = slices.Clone(read.Errors), read.unsure
	}
	for _, e := range others {
		f := FieldProblem{Code: "invalid", Pointer: "#", Detail: r.WithoutValues(e.Problem)}
		name, given := r.given(e.Field)
		switch {
		case e.Field == "":
		case given:
			f.Pointer += "/" + name
		case r.Method != http.MethodPost && r.Method != http.MethodPatch && r.Method != http.MethodPut || r.PathValue(e.Field) != "":
			f.Pointer, f.Parameter = "", e.Field
		default:
			f.Pointer += "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(e.Field)
		}
		if !slices.Contains(p.unsure, name) && !slices.ContainsFunc(p.Errors, func(was FieldProblem) bool {
			return was.Parameter == f.Parameter && strings.HasPrefix(was.Pointer+"/", f.Pointer+"/")
		}) {
			p.Errors = append(p.Errors, f)
		}
	}
	return p.summed()
}

// given returns the name in the request's form of the field that the product's other parts call so, which the tag
// field has if the names differ, and whether the form has the field.
func (r *Request) given(called string) (name string, ok bool) {
	if r.form == nil {
		return called, false
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(r.form).Elem()) {
		if name, _, _ = strings.Cut(f.Tag.Get("json"), ","); name != "" && called == cmp.Or(f.Tag.Get("field"), name) {
			return name, true
		}
	}
	return called, false
}

// summed sorts the Errors of a problem, of which it has one at least, and sets the detail.
func (p *Problem) summed() *Problem {
	slices.SortFunc(p.Errors, func(a, b FieldProblem) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Parameter, b.Parameter))
	})
	p.Errors = slices.Compact(p.Errors)
	first := p.Errors[0]
	of := cmp.Or(first.Parameter, strings.TrimPrefix(first.Pointer, "#/"), "the query")
	if of == "#" {
		of = "the body"
	}
	p.Detail = of + ": " + first.Detail
	if more := len(p.Errors) - 1; more > 0 {
		p.Detail += fmt.Sprintf(" (and %d more in errors)", more)
	}
	return p
}

// A problemForm is a Problem in JSON.
type problemForm struct {
	Type      string         `json:"type"` // first: it tells the line from others
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail,omitempty"`
	Code      string         `json:"code"`
	RequestID string         `json:"request_id,omitempty"`
	Errors    []FieldProblem `json:"errors,omitempty"`
	Object    string         `json:"object,omitempty"`
}

// form returns the problem as the answer to the request with the id.
func (p *Problem) form(id string) problemForm {
	return problemForm{"/docs#error-" + p.Code, cmp.Or(p.Title, titles[p.Code], http.StatusText(p.Status)), p.Status,
		p.Detail, p.Code, id, p.Errors, p.Object}
}

// fail sends the error, and logs an unknown one.
func (r *Request) fail(w http.ResponseWriter, err error) {
	p, known := r.ProblemOf(err)
	if !known {
		r.Failed(err)
	}
	r.send(w, p)
}

func (r *Request) send(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests || p.Code == codeRunning || p.Code == "run_in_progress" {
		h.Set("Retry-After", retryAfter)
	}
	for _, name := range []string{"ETag", "Location"} { // of an object that is not sent
		h.Del(name)
	}
	sendAs(w, problemContent, p.Status, p.form(RequestID(r.Context())))
}

// Failed logs an error whose text the caller does not get.
func (r *Request) Failed(err error) {
	level := slog.LevelError
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) { // the caller has gone
		level = slog.LevelDebug
	}
	r.Server.o.Log.Log(r.Context(), level, "web: a request failed", "route", routeOf(r.Request), "error", Shown(err.Error()))
}

// Send answers with one object in JSON.
func Send(w http.ResponseWriter, status int, v any) { sendAs(w, jsonContent, status, v) }

func sendAs(w http.ResponseWriter, content []string, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil { // a value without a JSON form, such as a year of five digits
		status, content = errFailed.Status, problemContent
		text, _ = json.Marshal(errFailed.form(w.Header().Get(headerRequest)))
	}
	w.Header()["Content-Type"] = content
	extend(w)
	w.WriteHeader(status)
	_, _ = escaped{w}.Write(append(text, '\n')) // a caller that is gone needs no answer
}

// escaped writes JSON with an escape for each character that a terminal obeys. A Write has whole ones.
type escaped struct{ io.Writer }

func (e escaped) Write(text []byte) (int, error) {
	_, err := io.WriteString(e.Writer, secret.Visible(string(text)))
	return len(text), err
}

// Shown returns a text from elsewhere as one short line, without secrets and cards.
func Shown(text string) string {
	text = secret.Line(secret.Clean(text))
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
