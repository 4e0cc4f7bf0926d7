package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
)

func (p *program) storeDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe",
		Short: "Show the tables or the folder of the store, and its settings",
		Long: `Show what is there of the store: on DynamoDB its tables with their indexes and settings,
otherwise its folder; and what the store says of itself. Nothing is changed. Exits 1 when
something is missing or is not as Duesday needs it, and names it; what a table has beyond
that is named too, and does no harm.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.describeStore(cmd.Context()) },
	}
}

// A storeView is the JSON of store describe.
type storeView struct {
	Store       string           `json:"store"`
	OK          bool             `json:"ok"` // everything is there, as Duesday needs it
	Tables      []tableView      `json:"tables,omitempty"`
	Folder      *folderView      `json:"folder,omitempty"`
	Differences []differenceView `json:"differences"`
	Meta        *metaView        `json:"meta,omitempty"` // not there: nobody has opened the store yet
}

type tableView struct {
	Table               string      `json:"table"`
	Missing             bool        `json:"missing"`
	Status              string      `json:"status,omitempty"`
	PartitionKey        string      `json:"partition_key,omitempty"`
	SortKey             string      `json:"sort_key,omitempty"`
	Indexes             []indexView `json:"indexes,omitempty"`
	Items               int64       `json:"items"` // as counted some six hours ago at most
	Bytes               int64       `json:"bytes"`
	BillingMode         string      `json:"billing_mode,omitempty"`
	ReadUnits           int64       `json:"read_units,omitempty"`
	WriteUnits          int64       `json:"write_units,omitempty"`
	TTL                 string      `json:"ttl_attribute,omitempty"`
	TTLStatus           string      `json:"ttl_status,omitempty"`
	PointInTimeRecovery string      `json:"point_in_time_recovery,omitempty"` // not there: the endpoint does not tell
	DeletionProtection  bool        `json:"deletion_protection"`
	Created             string      `json:"created_at,omitempty"`
}

type indexView struct {
	Index        string `json:"index"`
	PartitionKey string `json:"partition_key"`
	SortKey      string `json:"sort_key,omitempty"`
	Projection   string `json:"projection"` // besides the keys
	Status       string `json:"status"`
}

type differenceView struct {
	Table string `json:"table"`
	Part  string `json:"part"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Mends bool   `json:"mends"` // store create puts it right

	Harmless bool `json:"harmless"` // more than was declared: nothing has to be done
}

type folderView struct {
	Path  string `json:"path"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

type metaView struct {
	Installation string `json:"installation"`
	Created      string `json:"created_at"`
	Shards       int    `json:"shards"`
	Charging     bool   `json:"charging"`
	Reason       string `json:"reason,omitempty"`
	Moved        string `json:"moved_to,omitempty"`
	Processor    string `json:"processor,omitempty"` // the only one to charge through
	Copying      bool   `json:"copying,omitempty"`   // it is an unfinished copy of another store
}

func (p *program) describeStore(ctx context.Context) error {
	place, err := storeurl.Parse(p.cfg.Store)
	if err != nil {
		return &usageError{err}
	}
	if place.Scheme == "mem" {
		return usagef("mem: is gone with the process: there is no store to describe")
	}
	v := storeView{Store: p.cfg.Store, Differences: []differenceView{}}
	readable := true
	if place.Shared() {
		readable, err = p.describeTables(ctx, place, &v)
	} else {
		v.Folder, err = describeFolder(place.Folder)
	}
	if err == nil && readable {
		v.Meta, err = p.describeMeta(ctx, place)
	}
	if err != nil {
		return err
	}
	harmful := func(d differenceView) bool { return !d.Harmless }
	if v.OK = v.Meta != nil && !slices.ContainsFunc(v.Differences, harmful); !v.OK {
		p.code = exitFailed
	}
	if p.cfg.JSON {
		return p.object(v)
	}
	return p.printStore(&v)
}

// describeTables fills in the tables, and reports whether the store can be read.
func (p *program) describeTables(ctx context.Context, place storeurl.Place, v *storeView) (readable bool, err error) {
	tables, err := tablesAt(place)
	if err != nil {
		return false, err
	}
	client, err := dynamostore.Dial(ctx, place.Region, place.Endpoint)
	if err != nil {
		return false, err
	}
	found, err := dynamotable.Describe(ctx, client, tables.All())
	if err != nil {
		return false, err
	}
	readable = true
	for i := range found {
		d := &found[i]
		v.Tables = append(v.Tables, viewTable(d))
		for _, x := range d.Differences {
			v.Differences = append(v.Differences, differenceView(x))
		}
		if d.Table.Name == tables.RecurringPayments.Name {
			readable = !d.Missing && d.Status != "CREATING" && d.Status != "DELETING" &&
				d.Table.PartitionKey == tables.RecurringPayments.PartitionKey && d.Table.SortKey == tables.RecurringPayments.SortKey
		}
	}
	return readable, nil
}

func viewTable(d *dynamotable.Description) tableView {
	t := &d.Table
	v := tableView{Table: t.Name, Missing: d.Missing, Status: d.Status, PartitionKey: t.PartitionKey, SortKey: t.SortKey,
		Items: d.Items, Bytes: d.Bytes, ReadUnits: d.ReadUnits, WriteUnits: d.WriteUnits, TTL: t.TTL, TTLStatus: d.TTLStatus,
		PointInTimeRecovery: d.PointInTimeRecovery, DeletionProtection: d.DeletionProtection}
	if d.Missing {
		return v
	}
	v.Created = stamp(d.Created)
	v.BillingMode = "provisioned"
	if d.OnDemand {
		v.BillingMode = "on demand"
	}
	for i := range t.Indexes {
		x := &t.Indexes[i]
		v.Indexes = append(v.Indexes, indexView{x.Name, x.PartitionKey, x.SortKey, dynamotable.Projection(t, x),
			d.IndexStatus[x.Name]})
	}
	return v
}

// describeFolder sums up the files of a folder. What vanishes while it is looked at, as an
// engine's files do, does not count.
func describeFolder(path string) (*folderView, error) {
	v := &folderView{Path: path}
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				v.Files++
				v.Bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return v, err
}

// describeMeta returns the settings of the store, or nil if it has none yet. It
// makes nothing, and also reads a moved store.
func (p *program) describeMeta(ctx context.Context, place storeurl.Place) (v *metaView, err error) {
	tables, err := tablesAt(place)
	if err != nil {
		return nil, err
	}
	s, err := place.Open(ctx, storeurl.Options{Tables: tables.All(), Names: schema.Names(), Now: p.now, Holder: p.command})
	if errors.Is(err, store.ErrMissing) {
		return nil, &missingStore{p.cfg.Store}
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	m, err := billing.Side{Store: s, Tables: tables}.MoveState(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &metaView{m.Installation, stamp(m.Created), m.Shards, m.Charging, m.Reason, m.Moved, m.Processor, m.Copying},
		nil
}

func (p *program) printStore(v *storeView) error {
	if len(v.Tables) > 0 {
		if err := p.printTables(v.Tables); err != nil {
			return err
		}
		p.say("")
	}
	if f := v.Folder; f != nil {
		fields(p.stdout, "folder", f.Path, "files", strconv.Itoa(f.Files), "bytes", strconv.FormatInt(f.Bytes, 10))
	}
	if m := v.Meta; m != nil {
		charging := "on"
		if !m.Charging {
			charging = "off"
			if m.Reason != "" {
				charging += ": " + m.Reason
			}
		}
		fields(p.stdout, "installation", m.Installation, "created", m.Created, "shards per date", strconv.Itoa(m.Shards),
			"charging", charging, "processor", m.Processor, "moved to", m.Moved)
		if m.Copying {
			p.say("This is an unfinished copy of another store.")
		}
	} else {
		p.say("The store says nothing of itself yet.")
	}
	if len(v.Differences) > 0 {
		p.say("")
	}
	mends := v.Meta == nil
	for _, d := range v.Differences {
		note := ""
		if d.Harmless {
			note = ", which does no harm"
		}
		p.say("%s%s", dynamotable.Difference(d), note)
		mends = mends || d.Mends
	}
	if mends {
		p.say("Make what is missing: %s", p.hint("store create"))
	}
	return nil
}

func (p *program) printTables(tables []tableView) error {
	t := newTable(p.stdout, "TABLE", "STATUS", "KEYS", "PROJECTS", "ITEMS", "BYTES", "BILLING", "TTL", "RECOVERY",
		"PROTECTED")
	for _, v := range tables {
		if v.Missing {
			t.row(v.Table, "missing", "", "", "", "", "", "", "", "")
			continue
		}
		billed := v.BillingMode
		if v.ReadUnits > 0 {
			billed += " " + strconv.FormatInt(v.ReadUnits, 10) + "/" + strconv.FormatInt(v.WriteUnits, 10)
		}
		protected := "no"
		if v.DeletionProtection {
			protected = "yes"
		}
		t.row(v.Table, v.Status, keyPair(v.PartitionKey, v.SortKey), "", strconv.FormatInt(v.Items, 10),
			strconv.FormatInt(v.Bytes, 10),
			billed, ttlState(&v), strings.ToLower(v.PointInTimeRecovery), protected)
		for _, x := range v.Indexes {
			t.row("  "+x.Index, x.Status, keyPair(x.PartitionKey, x.SortKey), x.Projection, "", "", "", "", "", "")
		}
	}
	return t.flush()
}

// ttlState is the attribute with its status; a table without one says nothing unless its
// TTL is just being switched off.
func ttlState(v *tableView) string {
	if v.TTL == "" && v.TTLStatus != "DISABLING" {
		return ""
	}
	return strings.TrimSpace(v.TTL + " " + strings.ToLower(v.TTLStatus))
}

func keyPair(partition, sort string) string {
	if sort == "" {
		return partition
	}
	return partition + "/" + sort
}
