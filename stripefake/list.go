package stripefake

import (
	"net/http"
	"slices"
	"strconv"
)

const (
	pageDefault = 10
	pageMax     = 100
)

// listParams are the parameters that every list knows.
const listParams = " limit starting_after ending_before expand "

// list answers with a page of the objects of the kind that keep lets through (nil: all),
// newest first: limit, starting_after, ending_before and created are obeyed. Deleted
// objects are not listed.
func (c *call) list(kindName string, keep func(object) bool) (object, error) {
	return c.page(c.space.all(kindName), keep)
}

// page is list over the objects, oldest first.
func (c *call) page(all []object, keep func(object) bool) (object, error) {
	limit, err := c.num("limit")
	switch {
	case err != nil:
		return nil, err
	case !c.form.has("limit"):
		limit = pageDefault
	case limit < 1 || limit > pageMax:
		return nil, invalid("parameter_invalid_integer", "limit", "Invalid limit: it has to be from 1 to "+strconv.Itoa(pageMax)+".")
	}
	inTime, err := c.created()
	if err != nil {
		return nil, err
	}
	after, before := c.form.str("starting_after"), c.form.str("ending_before")
	if after != "" && before != "" {
		return nil, invalid("", "starting_after", "You may only specify one of these parameters: starting_after, ending_before.")
	}
	from, to := 0, len(all) // of what may be on the page
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
		if o.yes("deleted") || !inTime(madeAt(o)) || keep != nil && !keep(o) {
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
	i := slices.IndexFunc(all, func(o object) bool { return o.id() == id })
	if i < 0 {
		return 0, &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", code: "resource_missing", param: param,
			message: "No such object: '" + shown(id) + "'"}
	}
	return i, nil
}

// created returns whether the Unix second is one that the parameter created asks for.
func (c *call) created() (func(int64) bool, error) {
	var tests []func(int64) bool
	for _, name := range []string{"created", "created[gt]", "created[gte]", "created[lt]", "created[lte]"} {
		if v, ok := c.form.at(name); !ok || name == "created" && isForm(v) {
			continue
		}
		limit, err := c.num(name)
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
	for name := range c.form.sub("created") {
		if !slices.Contains([]string{"gt", "gte", "lt", "lte"}, name) {
			return nil, unknownParam("created[" + name + "]")
		}
	}
	return func(at int64) bool {
		return !slices.ContainsFunc(tests, func(ok func(int64) bool) bool { return !ok(at) })
	}, nil
}

func isForm(v any) bool { _, ok := v.(form); return ok }
