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
	"strings"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

const (
	codeKey     = "key"         // the API key is missing, or another one
	codeField   = "field"       // a field.Error
	codeRunning = "in_progress" // the first request with an idempotency key
	retryAfter  = "5"           // seconds
	maxText     = 300           // bytes of an error's text
)

// A Kind maps errors to an answer with the error's text.
type Kind struct {
	Is          error
	Status      int
	Code, Title string
}

// A Problem is an error in the form in which callers get it. An error that is neither a Problem nor a
// field.Error nor of a Kind is 503, without a detail.
type Problem struct {
	Status              int
	Code, Title, Detail string
	Errors              []FieldProblem
	Object              string // path of an object that the caller may look at
}

// A FieldProblem is the problem of one field.
type FieldProblem struct{ Pointer, Code, Detail string }

func (p *Problem) Error() string { return cmp.Or(p.Detail, p.Title) }

// Problemf returns a Problem with the detail.
func Problemf(status int, code, format string, args ...any) error {
	return &Problem{Status: status, Code: code, Detail: Shown(fmt.Sprintf(format, args...))}
}

// A fault is an error as it is sent: as the whole answer, or as the last line of a list.
type fault struct {
	Text  string `json:"error"` // first: it tells the line from others
	Code  string `json:"code"`
	Field string `json:"field,omitempty"`
}

func (p *Problem) fault() fault {
	f := fault{Text: p.Error(), Code: p.Code}
	if len(p.Errors) > 0 {
		f.Field = p.Errors[0].Pointer
	}
	return f
}

// Problems of every route.
var (
	ErrUnavailable = &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable",
		Detail: "the server cannot answer at the moment; try again"}
	ErrNotFound = &Problem{Status: http.StatusNotFound, Code: "not_found",
		Detail: "no such object exists, or the API key cannot see it"}
	ErrMerchant = &Problem{Status: http.StatusForbidden, Code: "merchant",
		Detail: "this API key belongs to another merchant"}
)

// ProblemOf returns the answer to an error, and whether it is known. The text of an unknown one is for the
// log only.
func (s *Server) ProblemOf(err error) (p *Problem, known bool) {
	if e, ok := errors.AsType[*Problem](err); ok {
		return e, true
	}
	if e, ok := errors.AsType[*field.Error](err); ok {
		return &Problem{Status: http.StatusUnprocessableEntity, Code: codeField, Detail: Shown(e.Error()),
			Errors: []FieldProblem{{Pointer: Shown(e.Field), Code: codeField, Detail: Shown(e.Problem)}}}, true
	}
	for _, k := range s.o.Kinds {
		if errors.Is(err, k.Is) {
			return &Problem{Status: k.Status, Code: k.Code, Title: k.Title, Detail: Shown(err.Error())}, true
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		return ErrNotFound, true
	}
	return ErrUnavailable, false
}

// fail sends the error, and logs an unknown one.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, known := s.ProblemOf(err)
	if !known {
		s.Failed(r, err)
	}
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusConflict && p.Code == codeRunning {
		w.Header().Set("Retry-After", retryAfter)
	}
	Send(w, p.Status, p.fault())
}

// Failed logs an error whose text the caller does not get.
func (s *Server) Failed(r *http.Request, err error) {
	level := slog.LevelError
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) { // the caller has gone
		level = slog.LevelDebug
	}
	s.o.Log.Log(r.Context(), level, "web: a request failed", "route", routeOf(r), "error", Shown(err.Error()))
}

// Send answers with one object in JSON.
func Send(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil { // a value without a JSON form, such as a year of five digits
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be encoded","code":"internal"}`)
	}
	h := w.Header()
	h["Content-Type"] = jsonContent
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
