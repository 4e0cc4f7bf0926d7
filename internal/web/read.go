package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
)

// MaxForm is the maximum size of a JSON body in bytes.
const MaxForm = 256 << 10

// Read decodes the request's JSON body into form, which points to a struct. The caller can join the field.Errors of
// other fields to Read's error, so that one Problem lists all invalid fields.
// The form's fields have tags:
//
//	json:"id" field:"account"       // field.Errors call the field account
//	json:"email" decides:"customer" // a wrong email leaves open whether customer is right, so nothing is said of that
//	json:"until" empty:"no"         // refuses "", perhaps of an unset variable, which would mean that the field is absent
func (r *Request) Read(form any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return Problemf(http.StatusUnsupportedMediaType, "content_type", "the Content-Type must be %s", jsonType)
	}
	var body bytes.Buffer
	if err := ReadBody(&body, r.w, r.Request, MaxForm); err != nil {
		return err
	}
	r.body, r.form = body.Bytes(), form
	return Decode(r.body, form)
}

// Values returns the request's query parameters. It returns a Problem for a parameter that is not in names, or that is
// repeated. The caller can join the errors of other parameters to it.
func (r *Request) Values(names ...string) (url.Values, error) {
	r.asked = true
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, Problemf(http.StatusBadRequest, "query", "the query string is malformed")
	}
	p := &Problem{Status: http.StatusUnprocessableEntity, Code: codeField}
	for name, all := range values {
		if !slices.Contains(names, name) {
			p.Errors = append(p.Errors, FieldProblem{Code: "unknown", Detail: allowed("parameters", names)})
		} else if len(all) > 1 {
			p.Errors = append(p.Errors, FieldProblem{Code: "repeated", Parameter: name, Detail: "must appear only once"})
		} else if name != "cursor" && !isValue(all[0]) || all[0] == "" { // which the store could not look up
			p.Errors = append(p.Errors, FieldProblem{Code: "invalid", Parameter: name, Detail: fmt.Sprintf("must be 1 to %d bytes of UTF-8", maxValue)})
		}
	}
	if len(p.Errors) > 0 {
		return values, p.summed()
	}
	return values, nil
}

// unasked rejects the parameters of a GET whose handler responds without calling Values.
type unasked struct {
	http.ResponseWriter
	r       *Request
	begun   bool
	refused bool
}

func (u *unasked) WriteHeader(status int) {
	u.begun = true
	if status < http.StatusMultipleChoices && !u.r.asked {
		if _, err := u.r.Values(); err != nil {
			u.refused = true
			u.r.fail(u.ResponseWriter, err)
			return
		}
	}
	u.ResponseWriter.WriteHeader(status)
}

func (u *unasked) Write(text []byte) (int, error) {
	if !u.begun {
		u.WriteHeader(http.StatusOK)
	}
	if u.refused {
		return len(text), nil
	}
	return u.ResponseWriter.Write(text)
}

// Unwrap returns the writer for http.ResponseController.
func (u *unasked) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// allowed returns an error text with the only names that a request can use. things are fields or parameters.
func allowed(things string, names []string) string {
	if len(names) == 0 {
		return "must have no " + things
	}
	return "must have no " + things + " other than " + strings.Join(names, ", ")
}

// Limits of the memory for bodies. Each request has its own bytes, which the number of connections bounds,
// and all requests share the rest. Stripe's events fit into the first part, so large bodies from strangers
// cannot block them.
const (
	ownBody   = 16 << 10
	allBodies = 16 << 20
)

var errCrowded = &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "the server is reading too many large bodies; try again"}

// A body reads a request's body within the shared budget.
type body struct {
	io.ReadCloser
	left        *atomic.Int64 // bytes of the budget
	read, taken int64
}

// Read returns errCrowded once the budget is used up.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if more := b.read - ownBody - b.taken; more > 0 {
		b.taken += more
		if b.left.Add(-more) < 0 {
			return 0, errCrowded
		}
	}
	return n, err
}

func (b *body) release() { b.left.Add(b.taken) }

// ReadBody reads the request's whole body into b. It returns a Problem if the body is compressed, incomplete
// or longer than most.
func ReadBody(b *bytes.Buffer, w http.ResponseWriter, r *http.Request, most int64) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return Problemf(http.StatusUnsupportedMediaType, "encoding", "the body must not have a Content-Encoding")
	}
	if r.ContentLength > most {
		return tooLarge(w, most)
	}
	if _, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, most)); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return tooLarge(w, most)
		}
		if errors.Is(err, errCrowded) {
			w.Header().Set("Connection", "close")
			return errCrowded
		}
		return Problemf(http.StatusBadRequest, "broken", "the connection closed before the end of the body")
	}
	return nil
}

// tooLarge closes the connection after the response, so the server does not read the rest of the body.
func tooLarge(w http.ResponseWriter, most int64) error {
	w.Header().Set("Connection", "close")
	return Problemf(http.StatusRequestEntityTooLarge, "too_large", "the body must have at most %d bytes", most)
}
