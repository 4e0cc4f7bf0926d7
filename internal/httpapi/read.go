package httpapi

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
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

const (
	maxDepth = 8 // of objects and lists within each other
	maxID    = 255
)

// idForm is the common form of Stripe's ids and ours.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)

// keyForm is the form of our fields' names. Any other name is none of them, though
// encoding/json would take AMOUNT for amount.
var keyForm = regexp.MustCompile(`^[a-z0-9_]+$`)

// readForm reads the body of a request into form, which points to a struct.
func readForm(w http.ResponseWriter, r *http.Request, form any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return refusef(http.StatusUnsupportedMediaType, "content_type", "want Content-Type: %s", jsonType)
	}
	var body bytes.Buffer
	if err := readInto(&body, w, r, maxForm); err != nil {
		return err
	}
	return decodeStrict(body.Bytes(), form)
}

// decodeStrict reads one JSON object with the fields of form, each at most once, and nothing
// beside it.
func decodeStrict(text []byte, form any) error {
	if err := checkShape(text); err != nil {
		return refusef(http.StatusBadRequest, "json", "the body: %v", err)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	err := in.Decode(form)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return &tracking.FieldError{Field: wrong.Field, Problem: "want " + wanted(wrong.Field, wrong.Type)}
	}
	if err != nil {
		return refusef(http.StatusBadRequest, "json", "the body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// wanted describes the valid values of a field. It does not repeat the value.
func wanted(name string, t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Int, reflect.Int64:
		if name == "amount" || strings.HasSuffix(name, ".amount") {
			return "a whole number of minor units, as Stripe has them: 500 is 5.00 EUR"
		}
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// checkShape wants a single JSON object of valid UTF-8, no name in it twice, and nothing too
// deep.
func checkShape(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("it is not valid UTF-8")
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	first, err := in.Token()
	if err != nil || first != json.Delim('{') {
		return errors.New("want a JSON object")
	}
	if err := checkObject(in, 1); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after the JSON object")
	}
	return nil
}

// checkObject reads the rest of an object whose first brace was read.
func checkObject(in *json.Decoder, depth int) error {
	seen := map[string]bool{}
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return brokenJSON(err)
		}
		name, _ := token.(string)
		if !keyForm.MatchString(name) {
			return fmt.Errorf("unknown field %.40q", name)
		}
		if seen[name] {
			return fmt.Errorf("the field %.40q is there twice", name)
		}
		seen[name] = true
		if err := checkValue(in, depth); err != nil {
			return err
		}
	}
	_, err := in.Token()
	return brokenJSON(err)
}

func checkValue(in *json.Decoder, depth int) error {
	token, err := in.Token()
	if err != nil {
		return brokenJSON(err)
	}
	delim, ok := token.(json.Delim)
	switch {
	case !ok:
		return nil
	case depth == maxDepth:
		return fmt.Errorf("more than %d levels", maxDepth)
	case delim == '{':
		return checkObject(in, depth+1)
	}
	for in.More() {
		if err := checkValue(in, depth+1); err != nil {
			return err
		}
	}
	_, err = in.Token()
	return brokenJSON(err)
}

func brokenJSON(err error) error {
	if err == nil {
		return nil
	}
	return errors.New("it is no valid JSON")
}

// params returns the parameters of a request, each of which has to be one of the names, and
// at most once there.
func params(r *http.Request, names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refusef(http.StatusBadRequest, "query", "the query cannot be read")
	}
	for name, all := range values {
		if !slices.Contains(names, name) {
			return nil, &tracking.FieldError{Field: shown(name), Problem: "there is no such parameter, want " +
				strings.Join(names, ", ")}
		}
		if len(all) > 1 {
			return nil, &tracking.FieldError{Field: name, Problem: "it is there twice"}
		}
	}
	return values, nil
}

// count reads a number from 1 to most; absent is usual.
func count(values url.Values, name string, usual, most int) (int, error) {
	text := values.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, &tracking.FieldError{Field: name, Problem: fmt.Sprintf("want 1 to %d", most)}
	}
	return n, nil
}

// instant reads a time; absent is zero.
func instant(values url.Values, name string) (time.Time, error) {
	text := values.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, &tracking.FieldError{Field: name, Problem: "want a time such as 2026-11-21T20:31:15Z"}
	}
	return t.UTC(), nil
}

// ident reads an id; absent is "".
func ident(values url.Values, name string) (string, error) {
	text := values.Get(name)
	if text != "" && !idForm.MatchString(text) {
		return "", &tracking.FieldError{Field: name, Problem: "this is no id: want letters, digits, _ and -"}
	}
	return text, nil
}

// named returns an id of the path. An invalid one is not found.
func named(r *http.Request, name string) (string, error) {
	id := r.PathValue(name)
	if !idForm.MatchString(id) {
		return "", fmt.Errorf("%w: this is no id", store.ErrNotFound)
	}
	return id, nil
}
