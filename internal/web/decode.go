package web

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxDepth = 8 // of objects and lists within each other

// Decode reads one JSON object into form, which points to a struct. It returns a Problem that names every
// wrong field, but no value and no unknown name.
func Decode(text []byte, form any) error {
	if err := checkShape(text); err != nil {
		return Problemf(http.StatusBadRequest, "json", "the body: %v", err)
	}
	var d decoder
	d.value(text, reflect.ValueOf(form).Elem(), "#")
	if len(d.wrong) == 0 {
		return nil
	}
	p := &Problem{Status: http.StatusUnprocessableEntity, Code: codeField, Errors: d.wrong, unsure: d.unsure}
	return p.summed()
}

// A decoder collects the problems of a body's fields. unsure are the fields that a wrong one decides about, by its
// tag: whether they are right is not known.
type decoder struct {
	wrong  []FieldProblem
	unsure []string
}

func (d *decoder) add(at, code, detail string) {
	d.wrong = append(d.wrong, FieldProblem{Pointer: at, Code: code, Detail: detail})
}

// value reads a valid JSON value into v. at is its pointer.
func (d *decoder) value(text json.RawMessage, v reflect.Value, at string) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(text, v.Elem(), at)
		return
	}
	p := v.Addr().Interface()
	_, own := p.(json.Unmarshaler)
	if _, isText := p.(encoding.TextUnmarshaler); isText {
		own = true
	}
	kind := bytes.TrimLeft(text, " \t\r\n")[0]
	switch {
	case kind == 'n': // null
	case !own && v.Kind() == reflect.Struct && kind == '{':
		d.object(text, v, at)
		return
	case !own && v.Kind() == reflect.Slice && kind == '[':
		var all []json.RawMessage
		_ = json.Unmarshal(text, &all) // the text is valid
		v.Set(reflect.MakeSlice(v.Type(), len(all), len(all)))
		for i, one := range all {
			d.value(one, v.Index(i), at+"/"+strconv.Itoa(i))
		}
		return
	case json.Unmarshal(text, p) == nil:
		return
	}
	d.add(at, "type", "must be "+wanted(at, v.Type(), own))
}

// object reads an object into the fields of a struct, by their exact names.
func (d *decoder) object(text json.RawMessage, v reflect.Value, at string) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(text, &members) // the text is valid, and no name is twice
	var known []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		known = append(known, name)
		if member, ok := members[name]; ok {
			delete(members, name)
			before := len(d.wrong)
			if f.Tag.Get("empty") == "no" && string(bytes.TrimSpace(member)) == `""` { // perhaps of an unset variable
				d.add(at+"/"+name, "invalid", "must not be empty; leave the field out instead")
			} else if f.Tag.Get("empty") == "no" && reflect.Zero(f.Type).CanInt() && strings.Trim(string(member), "-0 \t\r\n") == "" {
				d.add(at+"/"+name, "invalid", "must not be 0; leave the field out instead")
			}
			if d.value(member, v.FieldByIndex(f.Index), at+"/"+name); len(d.wrong) > before {
				d.unsure = append(d.unsure, strings.Fields(f.Tag.Get("decides"))...)
			}
		}
	}
	if len(members) > 0 {
		d.add(at, "unknown", allowed("fields", known))
	}
}

// wanted describes the valid values of a field; own: its type reads its JSON itself.
func wanted(at string, t reflect.Type, own bool) string {
	switch {
	case own && t.Kind() == reflect.Struct && t.PkgPath() == "time":
		return "a time such as 2026-03-15T10:30:00Z"
	case own:
		return "in the documented form"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64:
		if strings.HasSuffix(at, "/amount") {
			return "a whole number of minor units, such as 500 for 5.00 EUR"
		}
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		return "an object with strings"
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
			if seen[name] {
				return errors.New("a field appears twice")
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
