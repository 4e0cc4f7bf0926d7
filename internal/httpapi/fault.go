package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/listen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// kinds maps errors to HTTP; the first match counts. Any other error is 503 without a detail.
var kinds = [...]struct {
	is     error
	status int
	code   string // by which a Client knows it
}{
	{tracking.ErrBody, http.StatusBadRequest, "body"},
	{tracking.ErrEndpoint, http.StatusBadRequest, "endpoint"},
	{store.ErrNotFound, http.StatusNotFound, "not_found"},
	{tracking.ErrDisconnected, http.StatusConflict, "disconnected"},
	{tracking.ErrUnregistered, http.StatusUnprocessableEntity, "unregistered"},
	{tracking.ErrOther, http.StatusUnprocessableEntity, "other"},
	{tracking.ErrTooLate, http.StatusUnprocessableEntity, "too_late"},
	{tracking.ErrOrder, http.StatusUnprocessableEntity, "order"},
}

const (
	codeSignature = "signature" // of an event or a mark is wrong
	codeKey       = "key"       // the API key is missing, or another one
	codeField     = "field"     // a tracking.FieldError
	codeUnknown   = "unknown"   // of an order: it may or may not have been carried out
	retryAfter    = "5"         // seconds
	maxText       = 300         // bytes of an error's text
)

// A refusal is an error of HTTP itself.
type refusal struct {
	status     int
	code, text string
}

func (e *refusal) Error() string { return e.text }

// A fault is an error as it is sent: as the whole answer, or as the last line of a list.
type fault struct {
	Text  string `json:"error"` // first: it tells the line from others
	Code  string `json:"code"`
	Field string `json:"field,omitempty"`
}

var (
	errUnavailable = &refusal{http.StatusServiceUnavailable, "unavailable", "the server cannot answer at the moment; try again"}
	errUnknown     = &refusal{http.StatusServiceUnavailable, codeUnknown,
		"the outcome of the order is unknown; repeat it with the same key"}
	errStripeKey = &refusal{http.StatusBadGateway, "stripe_key",
		"Stripe refuses this server's key, so nothing was charged; the operator must replace the key"}
)

// faultOf returns the answer to an error, and whether it is known. Others are for the log alone.
func faultOf(err error) (status int, f fault, known bool) {
	if e, ok := errors.AsType[*refusal](err); ok {
		return e.status, fault{Text: e.text, Code: e.code}, true
	}
	if e, ok := errors.AsType[*field.Error](err); ok {
		return http.StatusUnprocessableEntity, fault{Text: shown(e.Error()), Code: codeField, Field: shown(e.Field)}, true
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			return k.status, fault{Text: shown(err.Error()), Code: k.code}, true
		}
	}
	return errUnavailable.status, fault{Text: errUnavailable.text, Code: errUnavailable.code}, false
}

// fail sends the error, and logs an unknown one.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, f, known := faultOf(err)
	if !known {
		s.logFailure(r, err)
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	send(w, status, f)
}

func (s *server) logFailure(r *http.Request, err error) {
	level := slog.LevelError
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) { // the caller has gone
		level = slog.LevelDebug
	}
	s.o.Log.Log(r.Context(), level, "httpapi: a request failed", "route", routeOf(r), "error", shown(err.Error()))
}

// send writes an answer of one object.
func send(w http.ResponseWriter, status int, v any) {
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

// shown is a text from elsewhere as one short line, without secrets and cards.
func shown(text string) string {
	text = secret.Line(secret.Clean(text))
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

func refusef(status int, code, format string, args ...any) error {
	return &refusal{status, code, shown(fmt.Sprintf(format, args...))}
}

const (
	toldRefusals  = 5 // of a kind in a minute, each with its line in the log
	refusalMinute = time.Minute
)

// refusals count the requests that were refused within a minute, by kind.
type refusals struct {
	mu   sync.Mutex
	seen map[string]int
}

// warn logs a refused request. Of one kind in a minute it logs the first few, and at its end how many
// more there were: strangers do not fill the disk.
func (s *server) warn(r *http.Request, kind, text string, args ...any) {
	f := &s.refused
	f.mu.Lock()
	f.seen[kind]++
	n := f.seen[kind]
	f.mu.Unlock()
	if n == 1 {
		time.AfterFunc(refusalMinute, func() {
			f.mu.Lock()
			more := f.seen[kind] - toldRefusals
			delete(f.seen, kind)
			f.mu.Unlock()
			if more > 0 {
				s.o.Log.LogAttrs(context.Background(), slog.LevelWarn, text, slog.String("kind", kind), slog.Int("and_more", more),
					slog.Duration("within", refusalMinute))
			}
		})
	}
	if n <= toldRefusals {
		s.o.Log.WarnContext(r.Context(), text, append([]any{"remote", listen.Caller(r, s.o.Proxies)}, args...)...)
	}
}
