package httpapi_test

import (
	"reflect"
	"strconv"
	"time"
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
