package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

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

// Keeps reports whether the members that the object has suit the parameters that are given.
func (c *Call) Keeps(o object, params string) bool {
	return !slices.ContainsFunc(parseParams(params), func(p param) bool {
		is, there := o[p.name]
		wanted := c.Form.Str(p.name)
		return there && wanted != "" && wanted != fmt.Sprint(is)
	})
}

// List answers with a page of the objects of the kind, newest first; keep chooses among them, nil:
// all. It obeys limit, starting_after, ending_before and created, and leaves deleted objects out.
func (c *Call) List(kindName string, keep func(object) bool) (object, error) {
	return c.Page(c.Space.All(kindName), keep)
}

// Page is List over the given objects, which must be sorted, oldest first. It may reverse them.
func (c *Call) Page(all []object, keep func(object) bool) (object, error) {
	limit := int64(pageDefault)
	if c.Form.Has("limit") {
		limit = c.Num("limit")
	}
	if limit < 1 || limit > pageMax {
		return nil, shape.Invalid("parameter_invalid_integer", "limit",
			"Invalid limit: it must be from 1 to "+strconv.Itoa(pageMax)+".")
	}
	inTime, err := c.span("created", shape.WholeOf)
	if err != nil {
		return nil, err
	}
	param, id, before := "starting_after", c.Form.Str("starting_after"), c.Form.Str("ending_before")
	switch {
	case id != "" && before != "":
		return nil, shape.OnlyOne("starting_after", "starting_after, ending_before")
	case before != "":
		param, id = "ending_before", before
	}
	if before == "" {
		slices.Reverse(all)
	}
	if id != "" { // the page begins at the cursor
		i := slices.IndexFunc(all, func(o object) bool { return o.ID() == id })
		if i < 0 {
			return nil, shape.Absent("object", id, param)
		}
		all = all[i+1:]
	}
	data, more := []any{}, false
	for _, o := range all {
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

// Span returns a test of a Unix second by the parameter of the name, which is a second or has limits.
func (c *Call) Span(name string) (func(int64) bool, error) { return c.span(name, shape.WholeOf) }

func (c *Call) span(of string, read func(v any, param string) (int64, error)) (func(int64) bool, error) {
	limits, hash := c.params[of].(shape.Form)
	if v, given := c.params[of]; given && !hash {
		second, err := read(v, of)
		return func(at int64) bool { return at == second }, err
	}
	passes := map[string]func(int64, int64) bool{
		"gt": func(at, limit int64) bool { return at > limit }, "gte": func(at, limit int64) bool { return at >= limit },
		"lt": func(at, limit int64) bool { return at < limit }, "lte": func(at, limit int64) bool { return at <= limit },
	}
	seconds := map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		param, err := of+"["+name+"]", error(nil)
		if passes[name] == nil {
			return nil, shape.UnknownParam(param)
		}
		if seconds[name], err = read(limits[name], param); err != nil {
			return nil, err
		}
	}
	return func(at int64) bool {
		for name, second := range seconds {
			if !passes[name](at, second) {
				return false
			}
		}
		return true
	}, nil
}
