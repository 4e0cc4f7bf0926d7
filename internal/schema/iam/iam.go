// Package iam generates AWS IAM policies for the declared tables: the published policy of the tracking
// tables' design, and least-privilege policies for Duesday's commands.
//
// It does not call AWS. A policy names no user: an administrator attaches it to a role.
package iam

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/schema"
)

// The policies by name.
const (
	Seed     = "seed"     // the published one, over the tables with -stripe-payments- in their names
	Runtime  = "runtime"  // run, serve, status and the commands about one account: no scan, of a table itself its settings
	Operator = "operator" // runtime, and commands that read a whole table: import, export, verify, adopt, copy
	// store create, describe, drop: of items the store's own one, and whether there are others
	Administration = "administration"
)

// Names returns the names of all policies.
func Names() []string { return []string{Seed, Runtime, Operator, Administration} }

// Options select the tables of a policy.
type Options struct {
	Account        string // the number of the AWS account, twelve digits
	Region         string // such as eu-west-1, or * for all
	Prefix         string // of the tables; "": schema.DefaultPrefix, and any prefix in the published policy
	RecurringTable string // the recurring-payments table, when it has a name of its own
}

// A Policy is a policy document. Its JSON is valid, which the published one's is not.
type Policy struct {
	Version   string
	Statement []Statement
}

// A Statement allows actions on resources.
type Statement struct {
	Sid       string `json:",omitempty"`
	Effect    string
	Action    list
	Resource  list
	Condition map[string]map[string]list `json:",omitempty"`
}

// A list is one text or several, as IAM writes them.
type list []string

// MarshalJSON implements json.Marshaler.
func (l list) MarshalJSON() ([]byte, error) {
	if len(l) == 1 {
		return json.Marshal(l[0])
	}
	return json.Marshal([]string(l))
}

var (
	account = regexp.MustCompile(`^[0-9]{12}$`)                   // an AWS account number
	region  = regexp.MustCompile(`^([a-z]{2}(-[a-z]+)+-\d+|\*)$`) // a region's code, or all of them
)

func (o Options) check() error {
	switch {
	case !account.MatchString(o.Account):
		return fmt.Errorf("account must be the 12 digits of an AWS account, such as 123456789012 (got %q)", o.Account)
	case !region.MatchString(o.Region):
		return fmt.Errorf("region must be a region such as eu-west-1, or * for all (got %q)", o.Region)
	}
	return o.tables().CheckNames()
}

func (o Options) tables() schema.Tables {
	return schema.Named(cmp.Or(o.Prefix, schema.DefaultPrefix), o.RecurringTable)
}

func (o Options) arn(service, resource string) string {
	return "arn:" + o.partition() + ":" + service + ":" + o.Region + ":" + o.Account + ":" + resource
}

// partition returns the AWS partition of the region. A table is in one partition alone.
func (o Options) partition() string {
	switch {
	case strings.HasPrefix(o.Region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(o.Region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

func (o Options) table(name string) string { return o.arn("dynamodb", "table/"+name) }

// New returns the named policy. It refuses invalid options.
func New(name string, o Options) (Policy, error) {
	if err := o.check(); err != nil {
		return Policy{}, err
	}
	p := Policy{Version: "2012-10-17"}
	switch name {
	case Seed:
		p.Statement = o.published()
	case Runtime:
		p.Statement = o.runtime()
	case Operator:
		p.Statement = o.runtime("Scan")
	case Administration:
		p.Statement = o.administration()
	default:
		return Policy{}, fmt.Errorf("unknown policy %q; must be one of %s", name, strings.Join(Names(), ", "))
	}
	return p, nil
}

func allow(sid string, actions []string, resources ...string) Statement {
	s := Statement{Sid: sid, Effect: "Allow", Resource: resources}
	for _, action := range actions {
		s.Action = append(s.Action, "dynamodb:"+action)
	}
	return s
}

// published is the design's own policy, in its own order: every action it names, Scan and
// table administration among them, on every table with such a name.
func (o Options) published() []Statement {
	name := cmp.Or(o.Prefix, "*-") + "stripe-payments-*"
	return []Statement{
		allow("", []string{"ListTables"}, "*"),
		allow("", []string{"BatchGetItem", "BatchWriteItem", "ConditionCheckItem", "PutItem", "DeleteItem", "Scan", "Query",
			"UpdateItem", "DescribeTimeToLive", "CreateTable", "DescribeTable", "GetItem", "UpdateTable", "UpdateTimeToLive"},
			o.table(name+"/index/*"), o.table(name)),
	}
}

// runtime has for each table the calls of Duesday on its items, and queries of its indexes,
// by their names. Events expire by themselves, and money's records are never deleted.
func (o Options) runtime(more ...string) (list []Statement) {
	t := o.tables()
	record := []string{"GetItem", "Query", "PutItem", "UpdateItem", "ConditionCheckItem"}
	for _, x := range []struct {
		sid     string
		actions []string
		table   int // in All
	}{
		{"RecurringPayments", []string{"GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem", "Scan"}, 0}, // scanned for the outlook
		{"Outbox", []string{"GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"}, 1},
		{"Events", []string{"GetItem", "PutItem", "UpdateItem"}, 2},
		{"Purchases", []string{"GetItem", "PutItem", "UpdateItem", "ConditionCheckItem"}, 3},
		{"Subscriptions", record, 4},
		{"Payments", record, 5},
		{"Registry", append(slices.Clone(record), "DeleteItem"), 6},
	} {
		table := t.All()[x.table]
		for _, action := range more {
			if !slices.Contains(x.actions, action) {
				x.actions = append(x.actions, action)
			}
		}
		list = append(list, allow(x.sid, x.actions, o.table(table.Name)))
		var indexes []string
		for _, index := range table.Indexes {
			indexes = append(indexes, o.table(table.Name+"/index/"+index.Name))
		}
		if len(indexes) > 0 {
			list = append(list, allow(x.sid+"Indexes", []string{"Query"}, indexes...))
		}
	}
	return append(list, allow("TableSettings", []string{"DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups"},
		o.tableARNs()...)) // for status
}

func (o Options) tableARNs() (arns []string) {
	for _, table := range o.tables().All() {
		arns = append(arns, o.table(table.Name))
	}
	return arns
}

// administration reads and makes one item, which describes the store: its shards per date are
// fixed when it is made. It must scan the table of a new store to see whether it is empty; a
// condition on keys cannot limit a scan.
func (o Options) administration() []Statement {
	t := o.tables()
	meta := allow("StoreItself", []string{"GetItem", "PutItem"}, o.table(t.RecurringPayments.Name))
	meta.Condition = map[string]map[string]list{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": {"META", "SETTINGS"}}}
	return []Statement{
		allow("Tables", []string{"CreateTable", "DescribeTable", "UpdateTable", "DeleteTable",
			"UpdateTimeToLive", "DescribeTimeToLive", "UpdateContinuousBackups", "DescribeContinuousBackups"}, o.tableARNs()...),
		meta,
		allow("StoreEmpty", []string{"Scan"}, o.table(t.RecurringPayments.Name)),
	}
}
