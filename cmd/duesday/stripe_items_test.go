package main

import (
	"encoding/json"
	"iter"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/storeurl"
)

// withStore opens the store beside the commands.
func (c *stripeCLI) withStore(do func(s store.Store, tables []store.Table)) {
	c.t.Helper()
	place, err := storeurl.Parse("pebble:" + c.path("duesday-data"))
	if err != nil {
		c.t.Fatal(err)
	}
	tables, err := session.TablesAt(place)
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := place.Open(c.t.Context(),
		storeurl.Options{Tables: tables.All(), Names: schema.Names(), Now: c.clock.Now, Holder: "test"})
	if err != nil {
		c.t.Fatal(err)
	}
	do(s, tables.All())
	if err := s.Close(); err != nil {
		c.t.Error(err)
	}
}

// items yields every item of every table of the store, all attributes of it as JSON.
func (c *stripeCLI) items() iter.Seq[string] {
	return func(yield func(string) bool) {
		c.t.Helper()
		c.withStore(func(s store.Store, tables []store.Table) {
			for _, table := range tables {
				for it, err := range s.Scan(c.t.Context(), store.Scan{Table: table.Name}) {
					if err != nil {
						c.t.Fatal(err)
					}
					text, err := json.Marshal(asJSON(store.M(it)))
					if err != nil {
						c.t.Fatal(err)
					}
					if !yield(string(text)) {
						return
					}
				}
			}
		})
	}
}

// commit writes into the table of recurring payments past the engine.
func (c *stripeCLI) commit(write func(table string) store.Write) {
	c.t.Helper()
	c.withStore(func(s store.Store, tables []store.Table) {
		if err := s.Commit(c.t.Context(), write(tables[0].Name)); err != nil {
			c.t.Fatal(err)
		}
	})
}

// asJSON is a value as JSON has it.
func asJSON(v store.Value) any {
	switch v.Kind() {
	case store.KindMap:
		o := map[string]any{}
		for _, a := range v.Map() {
			o[a.Name] = asJSON(a.Value)
		}
		return o
	case store.KindList:
		list := []any{}
		for _, e := range v.List() {
			list = append(list, asJSON(e))
		}
		return list
	case store.KindNumber:
		return v.Num()
	case store.KindBool:
		return v.Bool()
	case store.KindBinary:
		return string(v.Bytes())
	}
	return v.Str()
}
