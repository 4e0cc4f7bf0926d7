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
	codeKey     = "key"             // the API key is missing or invalid
	codeField   = "field"           // a field.Error
	codeRunning = "in_progress"     // the first request with the idempotency key is running
	codeUsedKey = "idempotency_key" // the idempotency key is malformed, or another request used it
	retryAfter  = "5"               // seconds
	maxText     = 300               // bytes of an error's text
)

// titles contains the titles of this package's codes, as in openapi.json.
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

// A Kind maps errors to a Problem, whose detail is the error's text without the request's values.
type Kind struct {
	Is          error
	Status      int
	Code, Title string
}

// A Problem is an error that callers see, as RFC 9457 specifies. An error that is not a Problem, contains no
// field.Error and matches no Kind becomes ErrUnavailable.
type Problem struct {
	Status              int
	Code, Title, Detail string // Title may be "" for a code of this package
	Errors              []FieldProblem
	Object              string // path of a related object

	unsure []string // fields whose validity depends on fields in Errors
}

// A FieldProblem is the problem with one field of the body, or with one parameter.
type FieldProblem struct {
	Pointer   string `json:"pointer,omitempty"` // JSON Pointer as a URI fragment, such as #/amount
	Parameter string `json:"parameter,omitempty"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
}

func (p *Problem) Error() string { return cmp.Or(p.Detail, p.Title) }

// Problemf returns a Problem with the formatted detail, which must not contain values from the request.
func Problemf(status int, code, format string, args ...any) error {
	return &Problem{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Problems of every route.
var (
	ErrUnavailable = &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable",
		Detail: "the server is unavailable; try again"}
	ErrNotFound = &Problem{Status: http.StatusNotFound, Code: "not_found",
		Detail: "no such object exists, or the API key cannot see it"}
	ErrMerchant = &Problem{Status: http.StatusForbidden, Code: "merchant",
		Detail: "the API key can only see its own merchant's data"}
	errVersion = &Problem{Status: http.StatusPreconditionFailed, Code: "version",
		Detail: "the object has changed since it was read; read it again"}
	errFailed = &Problem{Status: http.StatusInternalServerError, Code: "internal", Detail: "the server failed"}
)

// ProblemOf returns the Problem for an error, and reports whether the error is known. The text of an unknown
// error is only for the log.
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

// wrongFields returns a Problem that lists the invalid fields in read and others. read is a Problem from Read or
// Values, or nil. Each field gets only one error, and so does a field that contains another.
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

// given maps a field's name in other packages to its name in the request's form, and reports whether the form has the
// field. If the names differ, the form's tag field contains the first.
func (r *Request) given(called string) (name string, ok bool) {
	if r.form == nil {
		return called, false
	}
	return givenIn(reflect.TypeOf(r.form).Elem(), called)
}

// givenIn is given for a struct. The name of a member of an object in it has the object's name and a slash before.
func givenIn(form reflect.Type, called string) (string, bool) {
	for _, f := range reflect.VisibleFields(form) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && called == cmp.Or(f.Tag.Get("field"), name) {
			return name, true
		}
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if name != "" && of.Kind() == reflect.Struct {
			if inner, ok := givenIn(of, called); ok {
				return name + "/" + inner, true
			}
		}
	}
	return called, false
}

// summed sorts the Errors of a Problem, which must not be empty, and sets its detail.
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
	Type      string         `json:"type"` // first, so that readers recognize the line
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail,omitempty"`
	Code      string         `json:"code"`
	RequestID string         `json:"request_id,omitempty"`
	Errors    []FieldProblem `json:"errors,omitempty"`
	Object    string         `json:"object,omitempty"`
}

// form returns the problem as JSON, with the request's ID.
func (p *Problem) form(id string) problemForm {
	return problemForm{"/docs#error-" + p.Code, cmp.Or(p.Title, titles[p.Code], http.StatusText(p.Status)), p.Status,
		p.Detail, p.Code, id, p.Errors, p.Object}
}

// fail sends the error as a Problem, and logs an unknown error.
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
	for _, name := range []string{"ETag", "Location"} { // of an object that the response does not contain
		h.Del(name)
	}
	sendAs(w, problemContent, p.Status, p.form(RequestID(r.Context())))
}

// Failed logs an error whose text the caller must not see.
func (r *Request) Failed(err error) {
	level := slog.LevelError
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) { // the caller has gone
		level = slog.LevelDebug
	}
	r.Server.o.Log.Log(r.Context(), level, "web: a request failed", "route", routeOf(r.Request), "error", Shown(err.Error()))
}

// Send sends the value as JSON.
func Send(w http.ResponseWriter, status int, v any) { sendAs(w, jsonContent, status, v) }

func sendAs(w http.ResponseWriter, content []string, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil { // JSON cannot represent the value, such as a year with five digits
		status, content = errFailed.Status, problemContent
		text, _ = json.Marshal(errFailed.form(w.Header().Get(headerRequest)))
	}
	w.Header()["Content-Type"] = content
	extend(w)
	w.WriteHeader(status)
	_, _ = escaped{w}.Write(append(text, '\n')) // the caller may be gone
}

// escaped writes JSON and escapes control characters that a terminal would obey. Each Write must contain
// whole characters.
type escaped struct{ io.Writer }

func (e escaped) Write(text []byte) (int, error) {
	_, err := io.WriteString(e.Writer, secret.Visible(string(text)))
	return len(text), err
}

// Shown returns untrusted text as one short line, without secrets and card numbers.
func Shown(text string) string {
	text = secret.Line(secret.Clean(text))
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
