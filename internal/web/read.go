package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/field"
)

const (
	maxDepth = 8 // of objects and lists within each other
	// MaxForm is the length of a body of JSON, in bytes.
	MaxForm = 256 << 10
)

// keyForm is the form of our fields' names; encoding/json alone would take AMOUNT for amount.
var keyForm = regexp.MustCompile(`^[a-z0-9_]+$`)

// Read reads the body of a request into form, which points to a struct.
func (r *Request) Read(form any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return Problemf(http.StatusUnsupportedMediaType, "content_type", "the Content-Type must be %s", jsonType)
	}
	var body bytes.Buffer
	if err := ReadBody(&body, r.w, r.Request, MaxForm); err != nil {
		return err
	}
	return Decode(body.Bytes(), form)
}

// Decode reads one JSON object with the fields of form, each at most once, and no more.
func Decode(text []byte, form any) error {
	if err := checkShape(text); err != nil {
		return Problemf(http.StatusBadRequest, "json", "the body: %v", err)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	err := in.Decode(form)
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && typed.Field != "" {
		return field.Wrong(typed.Field, "must be "+wanted(typed.Field, typed.Type))
	}
	if err != nil {
		return Problemf(http.StatusBadRequest, "json", "the body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// wanted describes the valid values of a field. It does not repeat the value.
func wanted(name string, t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64:
		if name == "amount" || strings.HasSuffix(name, ".amount") {
			return "a whole number of minor units, such as 500 for 5.00 EUR"
		}
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// checkShape wants one JSON object of valid UTF-8, no name twice, and nothing too deep.
func checkShape(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("it must be valid UTF-8")
	}
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return errors.New("it must be a JSON object")
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if err := checkValue(in, 0); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("it must end after the JSON object")
	}
	return nil
}

var errNoJSON = errors.New("it is not valid JSON")

// checkValue checks the next value. depth counts the values around it.
func checkValue(in *json.Decoder, depth int) error {
	token, err := in.Token()
	if err != nil {
		return errNoJSON
	}
	delim, ok := token.(json.Delim)
	switch {
	case !ok:
		return nil
	case depth == maxDepth:
		return fmt.Errorf("it is nested more than %d levels deep", maxDepth)
	}
	seen := map[string]bool{}
	for in.More() {
		if delim == '{' {
			if token, err = in.Token(); err != nil {
				return errNoJSON
			}
			name, _ := token.(string)
			if !keyForm.MatchString(name) {
				return fmt.Errorf("unknown field %.40q", name)
			}
			if seen[name] {
				return fmt.Errorf("field %.40q appears twice", name)
			}
			seen[name] = true
		}
		if err := checkValue(in, depth+1); err != nil {
			return err
		}
	}
	if _, err = in.Token(); err != nil {
		return errNoJSON
	}
	return nil
}

// Values returns the query parameters of a request, each of the names and there at most once.
func (r *Request) Values(names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, Problemf(http.StatusBadRequest, "query", "the query string is malformed")
	}
	for name, all := range values {
		if !slices.Contains(names, name) {
			return nil, field.Wrong(Shown(name), "is not a parameter; must be one of "+strings.Join(names, ", "))
		}
		if len(all) > 1 {
			return nil, field.Wrong(name, "must appear only once")
		}
	}
	return values, nil
}

// What bodies take in memory: every request its own bytes, and beyond those all requests together.
// The number of connections bounds the first part. Stripe's events are of a few KiB: large bodies of
// strangers do not keep them out.
const (
	ownBody   = 16 << 10
	allBodies = 16 << 20
)

var errCrowded = &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "the server is reading too many large bodies at the moment; try again"}

// A body is that of a request, within the budget of all of them.
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

// ReadBody reads the body of a request, whole or not at all.
func ReadBody(b *bytes.Buffer, w http.ResponseWriter, r *http.Request, most int64) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return Problemf(http.StatusUnsupportedMediaType, "encoding", "the body must not be encoded (got %s)", e)
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

// tooLarge has the connection closed: the rest of the body is not waited for.
func tooLarge(w http.ResponseWriter, most int64) error {
	w.Header().Set("Connection", "close")
	return Problemf(http.StatusRequestEntityTooLarge, "too_large", "the body must have at most %d bytes", most)
}
