package stripefake

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

const linesType = "application/x-ndjson"

// controls are the endpoints of the control API. It asks for no key.
func (f *Fake) controls() *http.ServeMux {
	mux := http.NewServeMux()
	known := []string{"GET /_fake/ledger"}
	handle := func(pattern string, do controlFunc) {
		known = append(known, pattern)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := do(w, r)
			writeControl(w, v, err)
		})
	}
	handle("GET /_fake/clock", func(http.ResponseWriter, *http.Request) (any, error) {
		return f.Clock(), nil
	})
	handle("POST /_fake/clock", posted(f.controlClock))
	handle("GET /_fake/faults", func(http.ResponseWriter, *http.Request) (any, error) {
		return formOf(new(f.Faults())), nil
	})
	handle("POST /_fake/faults", f.controlFaults)
	handle("POST /_fake/fail", posted(func(_ *http.Request, in failForm) (any, error) {
		return in, f.FailNext(in.Endpoint, in.Status, in.Code, in.Times)
	}))
	handle("GET /_fake/requests", func(http.ResponseWriter, *http.Request) (any, error) { return f.Requests(), nil })
	handle("GET /_fake/counts", func(http.ResponseWriter, *http.Request) (any, error) { return f.Counts(), nil })
	handle("POST /_fake/intents/{id}/authenticate", answered(f.Authenticate))
	handle("POST /_fake/intents/{id}/finish", answered(f.Finish))
	handle("POST /_fake/refunds/{id}/finish", answered(f.FinishRefund))
	handle("POST /_fake/disputes", posted(func(_ *http.Request, in disputeForm) (any, error) {
		id, err := f.Dispute(in.Intent, in.Reason)
		return map[string]string{"id": id}, err
	}))
	handle("POST /_fake/disputes/{id}", posted(func(r *http.Request, in disputeForm) (any, error) {
		return in, f.CloseDispute(r.PathValue("id"), in.Status)
	}))
	handle("POST /_fake/disputes/{id}/appeal", posted(func(r *http.Request, in struct{}) (any, error) {
		return in, f.AppealDispute(r.PathValue("id"))
	}))
	handle("POST /_fake/payouts", posted(func(_ *http.Request, in Payout) (any, error) {
		return map[string][]string{"ids": append([]string{}, f.PayOut(in)...)}, nil
	}))
	handle("POST /_fake/payouts/{id}/fail", posted(func(r *http.Request, in struct{}) (any, error) {
		return in, f.FailPayout(r.PathValue("id"))
	}))
	handle("POST /_fake/accounts", posted(func(_ *http.Request, in accountForm) (any, error) {
		return in, f.Connect(in.ID, in.Platform)
	}))
	handle("POST /_fake/accounts/{id}", posted(func(r *http.Request, in accountForm) (any, error) {
		return in, f.SetVersion(r.PathValue("id"), in.Version)
	}))
	handle("POST /_fake/accounts/{id}/disconnect", posted(func(r *http.Request, in struct{}) (any, error) {
		return in, f.Disconnect(r.PathValue("id"))
	}))
	for name, do := range map[string]func(key string) error{"revoke": f.Revoke, "restore": f.Restore} {
		handle("POST /_fake/keys/"+name, posted(func(_ *http.Request, in keyForm) (any, error) {
			return struct{}{}, do(in.Key)
		}))
	}
	f.eventControls(handle)
	mux.HandleFunc("GET /_fake/ledger", f.controlLedger)
	slices.SortFunc(known, api.ByPath)
	mux.HandleFunc("GET /_fake/{$}", func(w http.ResponseWriter, _ *http.Request) {
		writeControl(w, Identity{"stripefake", NewestVersion, DefaultAccount, f.Now(), known, f.api.Endpoints()}, nil)
	})
	mux.HandleFunc("/_fake/", func(w http.ResponseWriter, r *http.Request) {
		writeControl(w, nil, &shape.Error{Status: http.StatusNotFound, Message: "no such control endpoint: " + r.Method + " " +
			shape.Shown(r.URL.Path) + "; GET /_fake/ lists them"})
	})
	return mux
}

// A controlFunc answers a control request.
type controlFunc = func(http.ResponseWriter, *http.Request) (any, error)

// eventControls are those of events and webhooks.
func (f *Fake) eventControls(handle func(pattern string, do controlFunc)) {
	handle("POST /_fake/webhook_endpoints/{id}/roll", posted(func(r *http.Request, _ struct{}) (any, error) {
		secret, err := f.Roll(r.PathValue("id"))
		return map[string]string{"secret": secret}, err
	}))
	handle("GET /_fake/events", func(http.ResponseWriter, *http.Request) (any, error) {
		return eventsForm{EventForm(f.api.EventForm())}, nil
	})
	handle("POST /_fake/events", posted(func(_ *http.Request, in eventsForm) (any, error) {
		return in, f.SetEvents(in.Form)
	}))
	handle("POST /_fake/events/thin", posted(func(_ *http.Request, in thinForm) (any, error) {
		id, err := f.EmitThin(cmp.Or(in.Account, DefaultAccount), in.Live, in.Type, in.About)
		return map[string]string{"id": id}, err
	}))
	handle("POST /_fake/events/{id}/resend", posted(func(r *http.Request, _ struct{}) (any, error) {
		sent, err := f.Resend(r.PathValue("id"))
		return map[string]int{"sent": sent}, err
	}))
	handle("POST /_fake/webhooks/flush", posted(func(r *http.Request, _ struct{}) (any, error) {
		left, err := f.Flush(r.Context())
		return map[string]int{"waiting": left}, err
	}))
}

// posted decodes the posted T for the handler.
func posted[T any](do func(*http.Request, T) (any, error)) controlFunc {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		var in T
		if err := readJSON(w, r, &in); err != nil {
			return nil, err
		}
		return do(r, in)
	}
}

// answered decodes {"ok":…} for the object in the path.
func answered(do func(id string, ok bool) error) controlFunc {
	return posted(func(r *http.Request, in okForm) (any, error) {
		if in.OK == nil {
			return nil, errors.New(`the body must be {"ok":true} or {"ok":false}`)
		}
		return in, do(r.PathValue("id"), *in.OK)
	})
}

func (f *Fake) serveControl(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_fake" {
		r.URL.Path = "/_fake/"
	}
	f.control.ServeHTTP(w, r)
}

func writeControl(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		if e, ok := errors.AsType[*shape.Error](err); ok {
			status = e.Status
		}
		v = errorForm{err.Error()}
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(shape.Encode(v)) // the caller may be gone
}

func (f *Fake) controlClock(_ *http.Request, in clockForm) (any, error) {
	if in.Now != nil && in.Advance != nil || in == (clockForm{}) {
		return nil, errors.New(`must be {"now":"2026-01-31T12:00:00Z"}, {"advance":"25h"} or {"speed":3600}`)
	}
	if in.Speed != nil {
		if err := f.SetSpeed(*in.Speed); err != nil {
			return nil, err
		}
	}
	if in.Now != nil {
		f.SetNow(*in.Now)
	}
	if in.Advance != nil {
		f.Advance(time.Duration(*in.Advance))
	}
	return f.Clock(), nil
}

func (f *Fake) controlFaults(w http.ResponseWriter, r *http.Request) (any, error) {
	faults := f.Faults()
	if err := readJSON(w, r, formOf(&faults)); err != nil {
		return nil, err
	}
	return formOf(&faults), f.SetFaults(faults)
}

// controlLedger writes a line of JSON for every entry. The chunks of HTTP show a broken connection.
func (f *Fake) controlLedger(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", linesType)
	lines := json.NewEncoder(w)
	for e := range f.Ledger() {
		if lines.Encode(e) != nil {
			return
		}
	}
}

// faultsForm is Faults in the control API. An absent member stays as it is.
type faultsForm struct {
	Latency *duration `json:"latency"` // as 200ms
	*Faults
	WebhookDelay *duration `json:"webhook_delay"`
}

// A duration is written as Go writes it: 1h2m3s.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("must be a duration in hours, minutes and seconds, such as 25h or 1m30s (got %q)", text)
	}
	*d = duration(v)
	return nil
}

// formOf returns a form over the faults: decoding it changes them.
func formOf(f *Faults) *faultsForm {
	return &faultsForm{(*duration)(&f.Latency), f, (*duration)(&f.WebhookDelay)}
}

// An Identity describes a fake. GET /_fake/ returns it.
type Identity struct {
	Fake    string    `json:"fake"` // always stripefake
	Version string    `json:"api_version"`
	Account string    `json:"account"` // always DefaultAccount
	Now     time.Time `json:"now"`     // the time of the fake's clock

	Controls  []string `json:"controls"`  // endpoints of the control API: POST /_fake/clock
	Endpoints []string `json:"endpoints"` // endpoints of Stripe's API: GET /v1/customers
}

type clockForm struct {
	Now     *time.Time `json:"now,omitempty"`
	Advance *duration  `json:"advance,omitempty"`
	Speed   *int       `json:"speed,omitempty"` // seconds per second
}

type failForm struct {
	Endpoint string `json:"endpoint"`
	Status   int    `json:"status"`
	Code     string `json:"code"`
	Times    int    `json:"times"`
}

type okForm struct {
	OK *bool `json:"ok"`
}

type disputeForm struct {
	Intent string `json:"payment_intent,omitempty"`
	Reason string `json:"reason,omitempty"`
	Status string `json:"status,omitempty"`
}

type accountForm struct {
	ID       string `json:"id,omitempty"`
	Platform string `json:"platform,omitempty"`
	Version  string `json:"api_version,omitempty"`
}

type eventsForm struct {
	Form EventForm `json:"form"`
}

type thinForm struct {
	Account string  `json:"account"`
	Live    bool    `json:"livemode"`
	Type    string  `json:"type"`
	About   Related `json:"related_object"`
}

type keyForm struct {
	Key string `json:"key"`
}

// errorForm is the error of a control request.
type errorForm struct {
	Error string `json:"error"`
}

// inJSON names the JSON form of a type.
func inJSON(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int64: // duration
		return "a string such as 25h or 200ms"
	case reflect.String:
		return "a string"
	}
	return "a number"
}

const jsonType = "application/json"

// readJSON reads the body of a control request, of a content type that no page in a browser can send.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return errors.New("the content type must be " + jsonType + "; with curl, add -H 'Content-Type: " + jsonType + "'")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
	if err != nil {
		return errors.New("the body could not be read, or is larger than 1 MiB")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return fmt.Errorf("%s must be %s (got a JSON %s)", wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:], inJSON(wrong.Type),
				wrong.Value)
		}
		return fmt.Errorf("the body must be the JSON object of this endpoint: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("the body must be a single JSON value")
	}
	return nil
}
