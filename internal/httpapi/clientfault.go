package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/duesday/duesday/internal/tracking"
)

// A StatusError is an answer with an error status. errors.Is matches the errors of packages
// tracking and store behind it.
type StatusError struct {
	Status int    // of HTTP; 0 of one in the middle of a list
	Code   string // of this API; "" where the answer was not this API's
	Text   string // for people, one short line
	kind   error
}

// Error implements error.
func (e *StatusError) Error() string {
	switch {
	case e.Text == "":
		return fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	case e.kind != nil || e.Status == 0:
		return e.Text
	}
	return fmt.Sprintf("the server answered %d: %s", e.Status, e.Text)
}

// Unwrap returns the error of package tracking or store, if it is one.
func (e *StatusError) Unwrap() error { return e.kind }

const maxFault = 64 << 10 // bytes of an answer with an error

// readFault reads an answer with an error.
func readFault(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxFault)) // an incomplete one is known by its status
	var f fault
	if json.Unmarshal(text, &f) != nil {
		f = fault{}
	}
	return f.err(response.StatusCode)
}

func faultOfLine(text []byte) error {
	var f fault
	if json.Unmarshal(text, &f) != nil || f.Text == "" {
		f.Text = "the list ended with an error"
	}
	return f.err(0)
}

// err is the other direction of faultOf.
func (f fault) err(status int) error {
	if f.Code == codeField {
		return &tracking.FieldError{Field: f.Field, Problem: strings.TrimPrefix(shown(f.Text), f.Field+": ")}
	}
	e := &StatusError{Status: status, Code: shown(f.Code), Text: shown(f.Text)}
	for _, k := range kinds {
		if k.code == f.Code {
			e.kind = k.is
		}
	}
	return e
}
