package stripefake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// faultsForm is Faults in the control API. An absent member stays as it is.
type faultsForm struct {
	Latency *duration `json:"latency"` // as 200ms
	*Faults
	WebhookDelay *duration `json:"webhook_delay"`
}

// A duration is written as Go writes it: 1h2m3s.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d duration) std() time.Duration { return time.Duration(d) }

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration: want hours, minutes and seconds, such as 25h or 1m30s", text)
	}
	*d = duration(v)
	return nil
}

// formOf returns a form over the faults: decoding it changes them.
func formOf(f *Faults) *faultsForm {
	return &faultsForm{(*duration)(&f.Latency), f, (*duration)(&f.WebhookDelay)}
}

// Identity is the root of the control API.
type Identity struct {
	Fake    string    `json:"fake"` // always stripefake
	Version string    `json:"api_version"`
	Account string    `json:"account"` // of the default keys
	Now     time.Time `json:"now"`     // by its clock

	Controls  []string `json:"controls"`  // of the control API: POST /_fake/clock
	Endpoints []string `json:"endpoints"` // of Stripe's API: GET /v1/customers
}

type clockForm struct {
	Now     *time.Time `json:"now,omitempty"`
	Advance *duration  `json:"advance,omitempty"`
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
		return "a text such as 25h or 200ms"
	case reflect.String:
		return "a text"
	}
	return "a number"
}

const jsonType = "application/json"

// readJSON reads the body of a control request. It insists on the content type, because a page in
// a browser cannot send that without asking.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return errors.New("the content type has to be " + jsonType + ": with curl, -H 'Content-Type: " + jsonType + "'")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
	if err != nil {
		return errors.New("the body cannot be read, or is larger than 1 MiB")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return fmt.Errorf("%s is a JSON %s: want %s", wrong.Field, wrong.Value, inJSON(wrong.Type))
		}
		return fmt.Errorf("the body is not what is wanted: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("the body has more than one JSON value")
	}
	return nil
}
