package tracking

import (
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// stampLayout is the time format in the published tables. Times are in UTC, and sorting the texts
// sorts the times.
const stampLayout = "2006-01-02 15:04:05.000"

// stamp formats the time with stampLayout. It uses RFC 3339, which package time formats in half the
// time of another layout.
func stamp(t time.Time) string {
	t = t.UTC()
	b := t.AppendFormat(make([]byte, 0, len(stampLayout)), time.RFC3339)
	day, ms := len(b)-len("T15:04:05Z"), t.Nanosecond()/int(time.Millisecond)
	b[day] = ' '
	return string(append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10)))
}

// parseStamp parses a stamp. It returns the zero time if the text is not valid.
func parseStamp(text string) time.Time {
	const day, second = len("2006-01-02"), len("2006-01-02 15:04:05")
	if len(text) != len(stampLayout) || text[day] != ' ' || text[second] != '.' {
		return time.Time{}
	}
	t, _ := time.Parse(time.RFC3339, text[:day]+"T"+text[day+1:]+"Z")
	return t
}

// A codec reads or writes an item, using one list of attributes for both directions. It does not
// write zero values.
type codec struct {
	it     store.Item
	reads  bool
	now    time.Time // time of the write
	before int64     // the version that was read; set by a write
}

func text[T ~string](c *codec, name string, v *T) {
	if c.reads {
		*v = T(c.it.Str(name))
	} else if *v != "" {
		c.it.Set(name, store.S(string(*v)))
	}
}

func number[T ~int | ~int64](c *codec, name string, v *T) {
	if c.reads {
		*v = T(c.it.Int(name))
	} else if *v != 0 {
		c.it.Set(name, store.Int(int64(*v)))
	}
}

func (c *codec) time(name string, v *time.Time) {
	if c.reads {
		*v = parseStamp(c.it.Str(name))
	} else if !v.IsZero() {
		c.it.Set(name, store.S(stamp(*v)))
	}
}

func (c *codec) flag(name string, v *bool) {
	if c.reads {
		*v = c.it.Get(name).Bool()
	} else if *v {
		c.it.Set(name, store.Bool(true))
	}
}

func (c *codec) amount(minor *int64, status *string) {
	if c.reads {
		*minor, *status = c.it.Int(schema.TrackedAmount), c.it.Str(schema.TrackedStatus)
		return
	}
	c.it.Set(schema.TrackedAmount, store.Int(*minor))
	c.it.Set(schema.TrackedStatus, store.S(*status))
}

// part reads or writes a map attribute. It does not write an empty map.
func (c *codec) part(name string, fields func(*codec)) {
	of := codec{it: c.it.Get(name).Map(), reads: c.reads}
	if !c.reads {
		of.it = nil
	}
	if fields(&of); !c.reads && len(of.it) > 0 {
		c.it.Set(name, store.M(of.it))
	}
}

// values reads or writes a list attribute. It does not write an empty list.
func values[T any](c *codec, name string, v *[]T, read func(store.Value) T, write func(T) store.Value) {
	if c.reads {
		for _, value := range c.it.Get(name).List() {
			*v = append(*v, read(value))
		}
		return
	}
	all := make([]store.Value, len(*v))
	for i, one := range *v {
		all[i] = write(one)
	}
	if len(all) > 0 {
		c.it.Set(name, store.L(all...))
	}
}

func list[T any](c *codec, name string, v *[]T, fields func(*codec, *T)) {
	values(c, name, v, func(value store.Value) (one T) {
		fields(&codec{it: value.Map(), reads: true}, &one)
		return one
	}, func(one T) store.Value {
		var of codec
		fields(&of, &one)
		return store.M(of.it)
	})
}

// parts reads or writes a map whose keys are IDs and whose values are maps.
func parts[T any](c *codec, name string, v *map[string]T, fields func(c *codec, id string, v *T)) {
	c.part(name, func(all *codec) {
		if c.reads {
			for _, a := range all.it {
				if *v == nil {
					*v = map[string]T{}
				}
				var one T
				fields(&codec{it: a.Value.Map(), reads: true}, a.Name, &one)
				(*v)[a.Name] = one
			}
			return
		}
		for _, id := range slices.Sorted(maps.Keys(*v)) {
			var of codec
			one := (*v)[id]
			fields(&of, id, &one)
			all.it.Set(id, store.M(of.it))
		}
	})
}

// head reads or writes the attributes that purchases, payments and subscriptions share.
func head(c *codec, id, stripeAccount, account *string, created, updated *time.Time, version *int64) {
	text(c, schema.TrackedID, id)
	text(c, schema.TrackedStripeAccount, stripeAccount)
	text(c, schema.TrackedAccount, account)
	c.time(schema.TrackedCreated, created)
	if !c.reads {
		*updated = c.now
	}
	c.time(schema.TrackedUpdated, updated)
	c.version(version)
}

// version reads the row's version, or increments it on a write.
func (c *codec) version(v *int64) {
	if !c.reads {
		c.before = *v
		*v++
	}
	number(c, schema.TrackedVersion, v)
}

// A Change is an entry in the history of a purchase, payment or subscription.
type Change struct {
	At    time.Time `json:"at"` // time of the change here, by our clock
	What  string    `json:"what"`
	Event string    `json:"event,omitempty"` // evt_… that caused the change
}

func (c *codec) history(v *[]Change) {
	list(c, schema.TrackedHistory, v, func(c *codec, h *Change) {
		c.time(schema.EffectAt, &h.At)
		text(c, schema.EffectEvent, &h.Event)
		text(c, schema.EffectWhat, &h.What)
	})
}

// maxHistory is the maximum number of changes stored for one object. Duesday keeps the first
// changes and the latest ones.
const maxHistory = 100

func remember(list []Change, c Change) []Change {
	if len(list) >= maxHistory {
		list = slices.Delete(slices.Clone(list), maxHistory/2, maxHistory/2+1)
	}
	return append(list, c)
}

// put returns a write of the listed fields that fails if the row has changed since it was read.
func put(table string, fields func(*codec), now time.Time) store.Write {
	c := codec{it: make(store.Item, 0, 16), now: now}
	fields(&c)
	condition := store.Absent()
	if c.before != 0 {
		condition = store.AttributeEquals(schema.TrackedVersion, store.Int(c.before))
	}
	return store.Put(table, c.it, condition)
}

func from[T any](it store.Item, fields func(*T, *codec)) *T {
	v := new(T)
	fields(v, &codec{it: it, reads: true})
	return v
}
