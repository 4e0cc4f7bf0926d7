package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

const (
	pageDefault = 10
	pageMax     = 100
)

// ListParams are the parameters of every list.
const ListParams = " limit:int starting_after ending_before expand "

// Lists is the route of a list of the kind. A parameter of these keeps the objects whose member
// of that name has its value; created keeps a time, and more does the rest, if it is not nil.
func Lists(path, kindName, params string, more func(*Call, object) bool) Route {
	return on(http.MethodGet, path, ListParams+params, func(c *Call) (object, error) {
		return c.List(kindName, func(o object) bool { return c.Keeps(o, params) && (more == nil || more(c, o)) })
	})
}

// Keeps reports whether the object's members have the values of the parameters, as far as these
// are given. The object need not have a member of the name.
func (c *Call) Keeps(o object, params string) bool {
	for name := range strings.FieldsSeq(params) {
		name, _, _ = strings.Cut(name, ":")
		if is, there := o[name]; there && c.Form.Str(name) != "" && c.Form.Str(name) != fmt.Sprint(is) {
			return false
		}
	}
	return true
}

// List answers with a page of the objects of the kind, newest first; keep chooses among them, nil:
// all. It obeys limit, starting_after, ending_before and created, and leaves deleted objects out.
func (c *Call) List(kindName string, keep func(object) bool) (object, error) {
	return c.Page(c.Space.All(kindName), keep)
}

// Page is List over the objects, which come oldest first.
func (c *Call) Page(all []object, keep func(object) bool) (object, error) {
	limit := c.Num("limit")
	switch {
	case !c.Form.Has("limit"):
		limit = pageDefault
	case limit < 1 || limit > pageMax:
		return nil, shape.Invalid("parameter_invalid_integer", "limit",
			"Invalid limit: it has to be from 1 to "+strconv.Itoa(pageMax)+".")
	}
	inTime, err := c.created()
	if err != nil {
		return nil, err
	}
	after, before := c.Form.Str("starting_after"), c.Form.Str("ending_before")
	if after != "" && before != "" {
		return nil, shape.Invalid("", "starting_after", "You may only specify one of these parameters: starting_after, "+
			"ending_before.")
	}
	from, to := 0, len(all) // the objects between the cursors
	if after != "" {
		if to, err = cursor(all, after, "starting_after"); err != nil {
			return nil, err
		}
	}
	if before != "" {
		if from, err = cursor(all, before, "ending_before"); err != nil {
			return nil, err
		}
		from++
	}
	data, more := []any{}, false
	for i := range all[from:to] {
		o := all[to-1-i]
		if before != "" {
			o = all[from+i]
		}
		if o.Yes("deleted") || !inTime(shape.MadeAt(o)) || keep != nil && !keep(o) {
			continue
		}
		if int64(len(data)) == limit {
			more = true
			break
		}
		data = append(data, o)
	}
	if before != "" {
		slices.Reverse(data)
	}
	return object{"object": "list", "data": data, "has_more": more, "url": c.url}, nil
}

// cursor returns the position of the object with the id.
func cursor(all []object, id, param string) (int, error) {
	i := slices.IndexFunc(all, func(o object) bool { return o.ID() == id })
	if i < 0 {
		return 0, &shape.Error{Status: http.StatusBadRequest, Kind: "invalid_request_error", Code: "resource_missing",
			Param:   param,
			Message: "No such object: '" + shape.Shown(id) + "'"}
	}
	return i, nil
}

// created returns a test of a Unix second by the parameter created.
func (c *Call) created() (func(int64) bool, error) {
	var tests []func(int64) bool
	for _, name := range []string{"created", "created[gt]", "created[gte]", "created[lt]", "created[lte]"} {
		if v, ok := c.Form.At(name); !ok || name == "created" && isForm(v) {
			continue
		}
		limit, err := c.number(name)
		if err != nil {
			return nil, err
		}
		tests = append(tests, func(at int64) bool {
			switch name {
			case "created[gt]":
				return at > limit
			case "created[gte]":
				return at >= limit
			case "created[lt]":
				return at < limit
			case "created[lte]":
				return at <= limit
			}
			return at == limit
		})
	}
	for name := range c.Form.Sub("created") {
		if !slices.Contains([]string{"gt", "gte", "lt", "lte"}, name) {
			return nil, shape.UnknownParam("created[" + name + "]")
		}
	}
	return func(at int64) bool {
		return !slices.ContainsFunc(tests, func(ok func(int64) bool) bool { return !ok(at) })
	}, nil
}

func isForm(v any) bool { _, ok := v.(form); return ok }
