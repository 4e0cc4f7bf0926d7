package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
)

// The flags of store create for DynamoDB alone, and those among them for provisioned capacity
// alone.
const (
	sharedFlags   = "provisioned deletion-protection point-in-time-recovery " + capacityFlags
	capacityFlags = "read-units write-units"
)

// storeCreation has the flags of store create.
type storeCreation struct {
	shards      int
	provisioned bool
	capacity    dynamotable.Provisioned
	settings    dynamotable.Settings
}

func (p *program) storeCreateCommand() *cobra.Command {
	o := storeCreation{capacity: dynamotable.DefaultProvisioned()}
	c := &cobra.Command{
		Use:   "create",
		Short: "Make the store: DynamoDB's tables, or a folder",
		Long: `Make the store in --store. On DynamoDB it makes the missing tables, waits until they are
active, and switches TTL on. Capacity is on demand, or with --provisioned the published
model's, fixed; schema cloudformation --provisioned has its autoscaling too.

A table with other keys, or without an index or a part of one, is refused, and nothing is
made. More indexes, and indexes with more attributes, are fine. The same command completes
an interrupted one. Settings are switched on for existing tables too, and never off.

--shards is the number of partitions of an index for each date, and is set once: one is
right up to about 1,000 writes a second.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.createStore(cmd.Context(), cmd.Flags(), &o) },
	}
	f := c.Flags()
	f.IntVar(&o.shards, "shards", 1, "`NUMBER` of shards per date, 1 to 100")
	f.BoolVar(&o.provisioned, "provisioned", false, "pay for fixed capacity by the hour instead of by the request")
	f.Int64Var(&o.capacity.ReadUnits, "read-units", o.capacity.ReadUnits,
		"`UNITS` of read capacity of each table and index")
	f.Int64Var(&o.capacity.WriteUnits, "write-units", o.capacity.WriteUnits,
		"`UNITS` of write capacity of each table and index")
	f.BoolVar(&o.settings.DeletionProtection, "deletion-protection", false, "let DynamoDB refuse to delete the tables")
	f.BoolVar(&o.settings.PointInTimeRecovery, "point-in-time-recovery", false,
		"let DynamoDB keep the tables restorable to any second of the last 35 days")
	return c
}

// check refuses flags that do not fit each other or the place.
func (o *storeCreation) check(flags *pflag.FlagSet, place storeurl.Place) error {
	given := func(names string) (found string) {
		for name := range strings.FieldsSeq(names) {
			if flags.Changed(name) {
				return name
			}
		}
		return ""
	}
	c := &o.capacity
	switch name := given(capacityFlags); {
	case place.Scheme == "mem":
		return usagef("mem: is gone with the process: there is no store to make; want pebble:DIR or dynamodb:?region=REGION")
	case !place.Shared() && given(sharedFlags) != "":
		return usagef("--%s is for a dynamodb: store", given(sharedFlags))
	case name != "" && !o.provisioned:
		return usagef("--%s wants --provisioned beside it", name)
	case o.shards < 1 || o.shards > billing.MaxShards:
		return usagef("--shards %d: want 1 to %d", o.shards, billing.MaxShards)
	case c.ReadUnits < 1:
		return usagef("--read-units %d: want 1 or more", c.ReadUnits)
	case c.WriteUnits < 1:
		return usagef("--write-units %d: want 1 or more", c.WriteUnits)
	}
	return nil
}

// A createdView is the JSON of store create.
type createdView struct {
	Store        string             `json:"store"`
	Made         bool               `json:"made"` // false: it was there, whole
	Tables       []createdTableView `json:"tables,omitempty"`
	Installation string             `json:"installation"`
	Shards       int                `json:"shards"`
	Created      string             `json:"created_at"`
}

type createdTableView struct {
	Table string   `json:"table"`
	Made  bool     `json:"made"`
	Steps []string `json:"steps"` // taken and waited for
}

func (p *program) createStore(ctx context.Context, flags *pflag.FlagSet, o *storeCreation) error {
	place, err := storeurl.Parse(p.cfg.Store)
	if err != nil {
		return &usageError{err}
	}
	if err := o.check(flags, place); err != nil {
		return err
	}
	v := createdView{Store: p.cfg.Store}
	n := need{fill: place.Shared()}
	if flags.Changed("shards") {
		n.shards = o.shards
	}
	if place.Shared() {
		if err := p.createTables(ctx, place, o, &v); err != nil {
			return err
		}
	}
	noted := func(s *session) error {
		meta, err := s.engine.Meta(ctx)
		v.Installation, v.Shards, v.Created = meta.Installation, meta.Shards, stamp(meta.Created)
		return err
	}
	if err = p.with(ctx, n, noted); errors.Is(err, store.ErrMissing) && !place.Shared() {
		n.create, v.Made = true, true
		err = p.with(ctx, n, noted)
	}
	if errors.Is(err, billing.ErrNoStore) && place.Shared() {
		return fmt.Errorf("all tables are there, and there is no store yet: %w", err)
	}
	if err != nil {
		return err
	}
	if p.cfg.JSON {
		return p.object(v)
	}
	if v.Made {
		p.say("made %s", p.cfg.Store)
	} else {
		p.say("%s was there already", p.cfg.Store)
	}
	fields(p.stdout, "  installation", v.Installation, "  created", v.Created, "  shards per date", positive(v.Shards))
	return nil
}

// createTables makes DynamoDB's tables, and tells step by step how far it is.
func (p *program) createTables(ctx context.Context, place storeurl.Place, o *storeCreation, v *createdView) error {
	declared, err := tablesAt(place)
	if err != nil {
		return err
	}
	client, err := dynamostore.Dial(ctx, place.Region, place.Endpoint)
	if err != nil {
		return err
	}
	if o.provisioned {
		o.settings.Provisioned = &o.capacity
	}
	tables := declared.All()
	steps := map[string][]string{}
	made, err := dynamotable.Create(ctx, client, tables, o.settings, func(table, step string) {
		steps[table] = append(steps[table], step)
		p.tell(table, step)
	})
	v.Made = len(made) > 0
	for i := range tables {
		name := tables[i].Name
		v.Tables = append(v.Tables, createdTableView{name, slices.Contains(made, name), steps[name]})
	}
	return err
}

// tell prints one step of a long task at once.
func (p *program) tell(table, step string) {
	p.say("%s: %s", table, step)
	p.stdout.Flush() // its error is reported at the end: the writer keeps it
}
