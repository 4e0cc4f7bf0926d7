package httpapi_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/secret"
)

// fill gives every exported field that JSON carries a value of its own, so that one which is
// lost on the way is seen. It skips the fields that are named.
func fill(v any, skip ...string) {
	n := 0
	filled(reflect.ValueOf(v).Elem(), &n, skip)
}

func filled(v reflect.Value, n *int, skip []string) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 21, 12, 0, 0, *n*1e6, time.UTC)))
		return
	case v.Type() == reflect.TypeFor[[]byte]():
		v.SetBytes([]byte("\xff\x00" + strconv.Itoa(*n))) // no text
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("s<" + strconv.Itoa(*n) + ">")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n) + 1<<53) // more than a JSON number of others can hold
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), n, skip)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		filled(v.Index(0), n, skip)
		filled(v.Index(1), n, skip)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		of := reflect.New(v.Type().Elem()).Elem()
		filled(of, n, skip)
		v.SetMapIndex(reflect.ValueOf("key"), of)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := v.Type().Name() + "." + f.Name
			skipped := false
			for _, s := range skip {
				skipped = skipped || s == name
			}
			if f.IsExported() && !skipped {
				filled(v.Field(i), n, skip)
			}
		}
	}
}

// shownValue returns the exported fields of a value by their Go names, with those of all nouns in
// it, and tells nil from empty.
func shownValue(v any) string {
	var b strings.Builder
	shownIn(&b, reflect.ValueOf(v))
	return b.String()
}

func shownIn(b *strings.Builder, v reflect.Value) {
	switch {
	case !v.IsValid():
		b.WriteString("none")
		return
	case v.CanInterface():
		switch x := v.Interface().(type) {
		case time.Time, secret.Text, []byte:
			fmt.Fprintf(b, "%q", fmt.Sprint(x))
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		shownIn(b, v.Elem())
	case reflect.Struct:
		b.WriteString("{")
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				b.WriteString(f.Name + ":")
				shownIn(b, v.Field(i))
				b.WriteString(" ")
			}
		}
		b.WriteString("}")
	case reflect.Slice:
		fmt.Fprintf(b, "%d[", v.Len())
		if v.IsNil() {
			b.WriteString("nil")
		}
		for i := range v.Len() {
			shownIn(b, v.Index(i))
			b.WriteString(" ")
		}
		b.WriteString("]")
	case reflect.Map:
		fmt.Fprintf(b, "%d(nil:%t", v.Len(), v.IsNil())
		for _, key := range v.MapKeys() { // fill sets one
			fmt.Fprintf(b, " %v:", key)
			shownIn(b, v.MapIndex(key))
		}
		b.WriteString(")")
	default:
		fmt.Fprintf(b, "%#v", v)
	}
}
