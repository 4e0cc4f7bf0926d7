// Package storing contains the commands for the store itself: its tables or folder, backups,
// copies, settings and keys, and the commands that plan its DynamoDB tables, schema and capacity.
//
// It does not charge. Apart from adopt, it does not read a store's customer data.
package storing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/transfer"
	"github.com/duesday/duesday/internal/view"
)

// A program is one invocation. Its methods are the commands of this family.
type program struct{ *session.Program }

// Commands returns this family's commands.
func Commands(of *session.Program) []*cobra.Command {
	p := &program{of}
	return []*cobra.Command{
		session.Group("store", p.storeCreate(), p.storeDescribe(), p.storeDrop(), p.storeAdopt(),
			p.storeCopy(), p.storeBackup(), p.storeRestore(), session.Leaf("check", p.checkStore), p.storeMigrate()),
		session.Group("settings", p.settingsShow(), p.settingsSet()),
		session.Group("key", p.keyCreate(), p.keyList(), p.keyRevoke()),
		session.Group("schema", p.workbenchCommand(), p.cloudformationCommand(), p.iamCommand()), p.capacityCommand(),
	}
}

// sharedFlags are the flags of store create that only apply to DynamoDB. capacityFlags are those
// that only apply to provisioned capacity.
const (
	sharedFlags   = "provisioned deletion-protection point-in-time-recovery " + capacityFlags
	capacityFlags = "read-units write-units"
)

type storeCreation struct {
	shards      int
	provisioned bool
	capacity    dynamotable.Provisioned
	settings    dynamotable.Settings
}

func (p *program) storeCreate() *cobra.Command {
	o := storeCreation{capacity: dynamotable.DefaultProvisioned()}
	var f *pflag.FlagSet
	c := session.Leaf("create", func(ctx context.Context, _ []string) error { return p.createStore(ctx, f, &o) })
	f = c.Flags()
	f.IntVar(&o.shards, "shards", 1, "`NUMBER` of shards per date, 1 to 100")
	f.BoolVar(&o.provisioned, "provisioned", false, "pay for fixed capacity by the hour instead of by the request")
	f.Int64Var(&o.capacity.ReadUnits, "read-units", o.capacity.ReadUnits, "read capacity `UNITS` of each table and index")
	f.Int64Var(&o.capacity.WriteUnits, "write-units", o.capacity.WriteUnits, "write capacity `UNITS` of each table and index")
	f.BoolVar(&o.settings.DeletionProtection, "deletion-protection", false, "let DynamoDB refuse to delete the tables")
	f.BoolVar(&o.settings.PointInTimeRecovery, "point-in-time-recovery", false, "let DynamoDB keep backups, to restore the tables to any second of the last 35 days")
	return c
}

// check rejects flags that conflict with each other or with the place.
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
		return screen.Usagef("a mem: store ends with its process, so there is nothing to create; use pebble:DIR or dynamodb:?region=REGION")
	case !place.Shared() && given(sharedFlags) != "":
		return screen.Usagef("--%s is only for a dynamodb: store", given(sharedFlags))
	case name != "" && !o.provisioned:
		return screen.Usagef("--%s needs --provisioned", name)
	case o.shards < 1 || o.shards > billing.MaxShards:
		return screen.Between("shards", o.shards, 1, billing.MaxShards)
	case c.ReadUnits < 1:
		return screen.Usagef("--read-units must be 1 or more (got %d)", c.ReadUnits)
	case c.WriteUnits < 1:
		return screen.Usagef("--write-units must be 1 or more (got %d)", c.WriteUnits)
	}
	return nil
}

func (p *program) createStore(ctx context.Context, flags *pflag.FlagSet, o *storeCreation) error {
	place, err := p.Place()
	if err != nil {
		return err
	}
	if err := o.check(flags, place); err != nil {
		return err
	}
	made := false // false if the store was already complete
	var tables []view.Object
	n := session.Need{Fill: place.Shared()}
	if flags.Changed("shards") {
		n.Shards = o.shards
	}
	if place.Shared() {
		if made, tables, err = p.createTables(ctx, place, o); err != nil {
			return err
		}
	}
	var meta billing.Meta
	readMeta := func(s *session.Session) (err error) {
		meta, err = s.Engine.Meta(ctx)
		return err
	}
	if err = p.With(ctx, n, readMeta); errors.Is(err, store.ErrMissing) && !place.Shared() {
		n.Create, made = true, true
		err = p.With(ctx, n, readMeta)
	}
	if errors.Is(err, billing.ErrNoStore) && place.Shared() {
		return fmt.Errorf("all tables exist, but they contain no store yet: %w", err)
	}
	if err != nil {
		return err
	}
	if made {
		p.Say("created %s", p.Config.Store)
	} else {
		p.Say("%s already exists", p.Config.Store)
	}
	p.Fields("  installation", meta.Installation, "  created", meta.Created, "  shards per date", screen.Positive(meta.Shards))
	return p.JSON(view.Object{"store", p.Config.Store, "made", made, "tables?", tables, "installation", meta.Installation,
		"shards", meta.Shards, "created_at", meta.Created})
}

// createTables creates DynamoDB's tables step by step. It reports whether it created any, and
// returns their view.
func (p *program) createTables(ctx context.Context, place storeurl.Place, o *storeCreation) (bool, []view.Object, error) {
	tables, err := session.TablesAt(place)
	if err != nil {
		return false, nil, err
	}
	err = p.MayMake(ctx, place, tables, billing.MakeNew)
	if err != nil && !errors.Is(err, store.ErrInvalid) { // a table has other keys, and Create names it
		return false, nil, err
	}
	client, err := dynamostore.Dial(ctx, place.Region, place.Endpoint)
	if err != nil {
		return false, nil, err
	}
	if o.provisioned {
		o.settings.Provisioned = &o.capacity
	}
	steps := map[string][]string{} // completed steps by table
	made, err := dynamotable.Create(ctx, client, tables.All(), o.settings, func(table, step string) {
		steps[table] = append(steps[table], step)
		p.tell(table, step)
	})
	return len(made) > 0, view.List(tables.All(), func(t store.Table) view.Object {
		return view.Object{"table", t.Name, "made", slices.Contains(made, t.Name), "steps", steps[t.Name]}
	}), err
}

func (p *program) tell(table, step string) {
	p.Say("%s: %s", table, step)
	p.Out.Flush() // the writer keeps its error, and the command reports it at its end
}

func (p *program) storeDrop() *cobra.Command {
	var confirm string
	c := session.Leaf("drop", func(ctx context.Context, _ []string) error {
		place, err := p.Place()
		switch {
		case err != nil:
			return err
		case place.Scheme == "mem":
			return screen.Usagef("a mem: store ends with its process, so there is nothing to drop")
		case !place.Shared():
			return screen.Usagef("store drop is only for a dynamodb: store; to drop this one, delete its folder: %s", place.Folder)
		}
		all, err := session.TablesAt(place)
		if err != nil {
			return err
		}
		var tables []store.Table
		var names, kept []string // kept: tables that have their own names
		for _, t := range all.All() {
			if t.Name == place.RecurringTable {
				kept = append(kept, t.Name)
			} else {
				tables, names = append(tables, t), append(names, t.Name)
			}
		}
		if prefix := cmp.Or(place.Prefix, schema.DefaultPrefix); confirm != prefix {
			return screen.Usagef("this drops the tables %s, with everything in them; to confirm, add --confirm %s",
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
		for _, name := range kept {
			p.Say("%s: kept, because it has its own name and another tool may have created it; delete it yourself", name)
		}
		p.Say("%s dropped", screen.Plural(len(dropped), "table"))
		return p.JSON(view.Object{"store", p.Config.Store, "dropped", append([]string{}, dropped...), "kept?", kept})
	})
	c.Flags().StringVar(&confirm, "confirm", "", "`PREFIX` of the tables to drop, such as "+schema.DefaultPrefix)
	return c
}

func (p *program) storeMigrate() *cobra.Command {
	again := false
	c := session.Leaf("migrate", func(ctx context.Context, _ []string) error { return p.migrateStore(ctx, again) })
	c.Flags().BoolVar(&again, "index", false, "also correct lookup rows of items that other tools have changed")
	return c
}

func (p *program) migrateStore(ctx context.Context, again bool) error {
	place, err := p.Place()
	if err != nil {
		return err
	}
	had := billing.FormatVersion
	if place.Shared() {
		c := &transfer.Copy{Now: p.Now, Shared: true, Progress: func(phase transfer.Phase, n int64) {
			p.tell("waiting for runs", screen.Plural(int(n), "lease"))
		}}
		err = p.withSide(ctx, place, false, false, func(side move.Side) (err error) {
			c.From = side
			had, err = c.Migrate(ctx, session.BuildVersion().Text())
			return err
		})
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrMissing) {
		return p.Missing()
	}
	if err != nil {
		return err
	}
	filled := false
	err = p.With(ctx, session.Need{}, func(s *session.Session) error { // opening a pebble: store has upgraded it
		if filled = again || lookup.Ready(ctx, s.Engine.Records) != nil; !filled {
			return nil
		}
		bar := p.Progress("items", 0, nil)
		defer bar.End()
		return lookup.Fill(ctx, s.Engine.Records, true, bar.Done.Store)
	})
	if err != nil {
		return err
	}
	if had == billing.FormatVersion {
		p.Say("%s already has format %d", p.Config.Store, had)
	} else {
		p.Say("%s had format %d and now has format %d; older versions of Duesday refuse it", p.Config.Store, had,
			billing.FormatVersion)
	}
	if filled {
		p.Say("All lookup rows are complete")
	}
	return p.JSON(view.Object{"store", p.Config.Store, "had", had, "format", billing.FormatVersion, "filled", filled})
}

// withSide opens the store at the place without its engine, calls do, and closes the store.
func (p *program) withSide(ctx context.Context, place storeurl.Place, create, alone bool,
	do func(move.Side) error) (err error) {
	var side move.Side
	if side.Tables, err = session.TablesAt(place); err != nil {
		return err
	}
	if side.Store, err = p.OpenStore(ctx, place, side.Tables, session.Need{Create: create, Alone: alone}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, side.Store.Close()) }()
	return do(side)
}
