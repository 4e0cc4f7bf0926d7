package storing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) storeDescribe() *cobra.Command {
	count := false
	c := session.Leaf("describe", func(ctx context.Context, _ []string) error { return p.describeStore(ctx, count) })
	c.Flags().BoolVar(&count, "count", false, "also read all tables, and count the rows that never expire, by kind")
	return c
}

func (p *program) describeStore(ctx context.Context, count bool) error {
	place, err := p.Place()
	if err != nil {
		return err
	}
	if place.Scheme == "mem" {
		return screen.Usagef("a mem: store ends with its process, so there is nothing to describe")
	}
	var found []dynamotable.Description
	var tables []view.Object
	var differences []dynamotable.Difference
	var folder view.Object
	readable := true
	if place.Shared() {
		found, readable, err = describeTables(ctx, place)
		tables = view.List(found, viewTable)
	} else {
		folder, err = describeFolder(place.Folder)
	}
	if err != nil {
		return err
	}
	for i := range found {
		differences = append(differences, found[i].Differences...)
	}
	var meta *move.State // nil if no process has opened the store yet
	if readable {
		if meta, err = p.describeMeta(ctx, place); err != nil {
			return err
		}
	}
	harmful := func(d dynamotable.Difference) bool { return !d.Harmless }
	ok := meta != nil && !slices.ContainsFunc(differences, harmful) // nothing is missing or harmful
	if !ok {
		p.Code = screen.ExitFailed
	}
	if folder != nil {
		p.Fields("folder", place.Folder, "files", screen.Text(folder, "files"), "bytes", screen.Text(folder, "bytes"))
	} else {
		p.sayTables(found)
	}
	p.sayMeta(meta, differences)
	var kept []view.Object
	if count && meta != nil {
		all, err := p.countKept(ctx, place)
		if err != nil {
			return err
		}
		p.sayKept(all)
		kept = view.List(all, viewKept)
	}
	return p.JSON(view.Object{"store", p.Config.Store, "ok", ok, "tables?", tables, "folder?", folder,
		"differences", view.List(differences, func(d dynamotable.Difference) view.Object {
			return view.Object{"table", d.Table, "part", d.Part, "want", d.Want, "got", d.Got,
				"mends", d.Mends, // store create corrects it
				"harmless", d.Harmless} // more than was declared, so no action is needed
		}), "meta?", viewMeta(meta), "kept_rows?", kept})
}

// describeTables returns the tables' descriptions, and reports whether the store can be read.
func describeTables(ctx context.Context, place storeurl.Place) ([]dynamotable.Description, bool, error) {
	tables, err := session.TablesAt(place)
	if err != nil {
		return nil, false, err
	}
	client, err := dynamostore.Dial(ctx, place.Region, place.Endpoint)
	if err != nil {
		return nil, false, err
	}
	found, err := dynamotable.Describe(ctx, client, tables.All())
	if err != nil {
		return nil, false, err
	}
	want := tables.RecurringPayments
	return found, !slices.ContainsFunc(found, func(d dynamotable.Description) bool {
		return d.Table.Name == want.Name && (d.Missing || d.Status == "CREATING" || d.Status == "DELETING" ||
			d.Table.PartitionKey != want.PartitionKey || d.Table.SortKey != want.SortKey)
	}), nil
}

func viewTable(d dynamotable.Description) view.Object {
	t := &d.Table
	v := view.Object{"table", t.Name, "missing", d.Missing, "status?", d.Status, "partition_key?", t.PartitionKey,
		"sort_key?", t.SortKey}
	if len(t.Indexes) > 0 && !d.Missing {
		v = append(v, "indexes", view.List(t.Indexes, func(x store.Index) view.Object {
			return view.Object{"index", x.Name, "partition_key", x.PartitionKey, "sort_key?", x.SortKey,
				"projection", dynamotable.Projection(t, &x), // in addition to the keys
				"status", d.IndexStatus[x.Name]}
		}))
	}
	return append(v, "items", d.Items, "bytes", d.Bytes, // DynamoDB's counts, up to six hours old
		"billing_mode?", billingMode(d), "read_units?", d.ReadUnits, "write_units?", d.WriteUnits,
		"ttl_attribute?", t.TTL, "ttl_status?", d.TTLStatus,
		"point_in_time_recovery?", d.PointInTimeRecovery, // omitted if not reported
		"deletion_protection", d.DeletionProtection, "created_at?", d.Created)
}

func billingMode(d dynamotable.Description) string {
	switch {
	case d.Missing:
		return ""
	case d.OnDemand:
		return "on demand"
	}
	return "provisioned"
}

func viewMeta(m *move.State) view.Object {
	if m == nil {
		return nil
	}
	return view.Object{"installation", m.Installation, "created_at", m.Created, "shards", m.Shards, "charging", m.Charging,
		"reason?", m.Reason, "moved_to?", m.Moved, "lookups_since?", m.Looked, "processor?", m.Processor, // the only one that may charge
		"copying?", m.Copying} // the store is an unfinished copy of another store
}

// describeFolder summarizes the files of a folder, or of a folder that a link points to. It ignores
// files that disappear meanwhile.
func describeFolder(path string) (view.Object, error) {
	files, bytes := 0, int64(0)
	err := filepath.WalkDir(path+"/", func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				files++
				bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return view.Object{"path", path, "files", files, "bytes", bytes}, err
}

// describeMeta returns the store's state, or nil if the store has none yet. It does not create
// anything.
func (p *program) describeMeta(ctx context.Context, place storeurl.Place) (m *move.State, err error) {
	err = p.withSide(ctx, place, false, false, func(side move.Side) (err error) {
		if m, err = side.State(ctx); errors.Is(err, store.ErrNotFound) {
			m, err = nil, nil
		}
		return err
	})
	if errors.Is(err, store.ErrMissing) {
		err = p.Missing()
	}
	return m, err
}

func (p *program) sayMeta(m *move.State, differences []dynamotable.Difference) {
	if m != nil {
		charging := "on"
		if !m.Charging {
			charging = "off" + screen.Prefixed(": ", m.Reason)
		}
		p.Fields("installation", m.Installation, "created", m.Created, "shards per date", m.Shards, "charging", charging,
			"processor", m.Processor, "moved to", m.Moved)
		if m.Copying {
			p.Say("This is an unfinished copy of another store.")
		}
	} else {
		p.Say("The store contains no information about itself yet.")
	}
	if len(differences) > 0 {
		p.Say("")
	}
	mends := m == nil
	for _, d := range differences {
		note := ""
		if d.Harmless {
			note = ", which does no harm"
		}
		p.Say("%s%s", d, note)
		mends = mends || d.Mends
	}
	if mends {
		p.Say("To create what is missing, run: %s", p.Hint("store create"))
	}
}

func (p *program) sayTables(found []dynamotable.Description) {
	t := p.Table("TABLE", "STATUS", "KEYS", "PROJECTS", "ITEMS", "BYTES", "BILLING", "TTL", "RECOVERY", "PROTECTED")
	for _, d := range found {
		if d.Missing {
			t.Row(d.Table.Name, "missing", "", "", "", "", "", "", "", "")
			continue
		}
		billed := billingMode(d)
		if d.ReadUnits > 0 {
			billed += fmt.Sprintf(" %d/%d", d.ReadUnits, d.WriteUnits)
		}
		t.Row(d.Table.Name, d.Status, keyPair(d.Table.PartitionKey, d.Table.SortKey), "", d.Items, d.Bytes, billed,
			ttlState(&d), strings.ToLower(d.PointInTimeRecovery), d.DeletionProtection)
		for i := range d.Table.Indexes {
			x := &d.Table.Indexes[i]
			t.Row("  "+x.Name, d.IndexStatus[x.Name], keyPair(x.PartitionKey, x.SortKey),
				dynamotable.Projection(&d.Table, x), "", "", "", "", "", "")
		}
	}
	t.Flush()
	p.Say("")
}

// ttlState returns the TTL attribute and its status. Without a TTL attribute it returns "", unless
// TTL is just being turned off.
func ttlState(d *dynamotable.Description) string {
	if d.Table.TTL == "" && d.TTLStatus != "DISABLING" {
		return ""
	}
	return strings.TrimSpace(d.Table.TTL + " " + strings.ToLower(d.TTLStatus))
}

func keyPair(partition, sort string) string { return partition + screen.Prefixed("/", sort) }
