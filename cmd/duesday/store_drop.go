package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
)

func (p *program) storeDropCommand() *cobra.Command {
	var confirm string
	c := &cobra.Command{
		Use:   "drop",
		Short: "Delete the tables of a store on DynamoDB, with everything in them",
		Long: `Delete the tables of a dynamodb: store with everything in them, and wait until they are
gone. The prefix of their names has to be typed. A table with deletion protection, or with
other keys or indexes than Duesday's, is refused, and then nothing is dropped. A table under
a name of its own (recurring_table) was made by somebody else and stays.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.dropStore(cmd.Context(), confirm) },
	}
	c.Flags().StringVar(&confirm, "confirm", "", "`PREFIX` of the tables to drop, such as "+schema.DefaultPrefix)
	return c
}

// A droppedView is the JSON of store drop.
type droppedView struct {
	Store   string   `json:"store"`
	Dropped []string `json:"dropped"`
	Kept    []string `json:"kept,omitempty"` // under a name of its own
}

func (p *program) dropStore(ctx context.Context, confirm string) error {
	place, err := storeurl.Parse(p.cfg.Store)
	switch {
	case err != nil:
		return &usageError{err}
	case place.Scheme == "mem":
		return usagef("mem: is gone with the process: there is nothing to drop")
	case !place.Shared():
		return usagef("store drop is for a dynamodb: store; to drop this one delete its folder: %s", place.Folder)
	}
	v := droppedView{Store: p.cfg.Store, Dropped: []string{}}
	all, err := tablesAt(place)
	if err != nil {
		return err
	}
	var tables []store.Table
	for _, t := range all.All() {
		if t.Name == place.RecurringTable {
			v.Kept = append(v.Kept, t.Name)
		} else {
			tables = append(tables, t)
		}
	}
	if prefix := cmp.Or(place.Prefix, schema.DefaultPrefix); confirm != prefix {
		names := make([]string, len(tables))
		for i := range tables {
			names[i] = tables[i].Name
		}
		return usagef("this drops the tables %s, with everything in them: if that is meant, say --confirm %s",
			strings.Join(names, ", "), prefix)
	}
	client, err := dynamostore.Dial(ctx, place.Region, place.Endpoint)
	if err != nil {
		return err
	}
	dropped, err := dynamotable.Drop(ctx, client, tables, p.tell)
	if err != nil {
		return err
	}
	v.Dropped = append(v.Dropped, dropped...)
	if p.cfg.JSON {
		return p.object(v)
	}
	for _, name := range v.Kept {
		p.say("%s: kept: it has a name of its own, and somebody else may have made it; delete it yourself", name)
	}
	p.say("%s dropped", plural(len(dropped), "table"))
	return nil
}
