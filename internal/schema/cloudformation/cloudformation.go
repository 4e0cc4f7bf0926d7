// Package cloudformation generates an AWS CloudFormation template for the declared tables. The tables have
// the same settings as those that `duesday store create` creates.
//
// It does not call AWS. If a stack has created the tables, `duesday store create` uses them.
package cloudformation

import (
	"encoding/json"
	"io"
	"maps"
	"strings"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Settings of tables beside their keys and indexes. The zero value is on demand and unprotected.
type Settings struct {
	Provisioned         bool // the published model's units, with autoscaling for each table and index
	DeletionProtection  bool
	PointInTimeRecovery bool
}

// Write writes the template. The prefix of the tables' names is a parameter of the stack, and
// prefix its default. A table stays when the stack is deleted or would replace it. Tables with
// indexes are made one after the other, as DynamoDB wants it. The same input gives the same bytes.
func Write(w io.Writer, prefix string, s Settings) error {
	t := template{Version: "2010-09-09", Description: "The DynamoDB tables of Duesday",
		Parameters: map[string]parameter{prefixParameter: {Type: "String", Default: prefix,
			AllowedPattern: "^[a-zA-Z0-9_.-]*$", MaxLength: 200,
			Description: "Begins the name of every table"}},
		Resources: map[string]resource{}}
	indexed := ""
	for _, table := range schema.New("").All() {
		id := logicalID(table.Name)
		r := resource{Type: "AWS::DynamoDB::Table", DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain",
			Properties: tableProperties(&table, s)}
		if len(table.Indexes) > 0 {
			r.DependsOn, indexed = indexed, id
		}
		t.Resources[id] = r
		if s.Provisioned {
			maps.Copy(t.Resources, scaling(id, &table))
		}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ") // a template in a request has at most 51,200 bytes
	return enc.Encode(t)
}

const prefixParameter = "Prefix"

type template struct {
	Version     string `json:"AWSTemplateFormatVersion"`
	Description string
	Parameters  map[string]parameter
	Resources   map[string]resource
}

type parameter struct {
	Type, Default, AllowedPattern string
	MaxLength                     int
	Description                   string
}

type resource struct {
	Type                string
	DependsOn           string `json:",omitempty"`
	DeletionPolicy      string `json:",omitempty"`
	UpdateReplacePolicy string `json:",omitempty"`
	Properties          any
}

type properties struct {
	TableName                        substitution
	AttributeDefinitions             []definition
	KeySchema                        []key
	GlobalSecondaryIndexes           []index `json:",omitempty"`
	BillingMode                      string
	ProvisionedThroughput            *throughput `json:",omitempty"`
	TimeToLiveSpecification          *timeToLive `json:",omitempty"`
	PointInTimeRecoverySpecification struct{ PointInTimeRecoveryEnabled bool }
	DeletionProtectionEnabled        bool
}

// A substitution is a text with ${...} in it.
type substitution struct {
	Text string `json:"Fn::Sub"`
}

type reference struct{ Ref string }

type definition struct{ AttributeName, AttributeType string }

type key struct{ AttributeName, KeyType string }

type index struct {
	IndexName             string
	KeySchema             []key
	Projection            schema.Projection
	ProvisionedThroughput *throughput `json:",omitempty"`
}

type throughput struct{ ReadCapacityUnits, WriteCapacityUnits int }

type timeToLive struct {
	AttributeName string
	Enabled       bool
}

func tableProperties(t *store.Table, s Settings) properties {
	p := properties{TableName: substitution{"${" + prefixParameter + "}" + t.Name},
		KeySchema:   keys(t.PartitionKey, t.SortKey),
		BillingMode: "PAY_PER_REQUEST", DeletionProtectionEnabled: s.DeletionProtection}
	p.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled = s.PointInTimeRecovery
	if s.Provisioned {
		p.BillingMode, p.ProvisionedThroughput = "PROVISIONED", &throughput{schema.ReadUnits, schema.WriteUnits}
	}
	if t.TTL != "" {
		p.TimeToLiveSpecification = &timeToLive{t.TTL, true}
	}
	for _, x := range t.Indexes {
		p.GlobalSecondaryIndexes = append(p.GlobalSecondaryIndexes,
			index{x.Name, keys(x.PartitionKey, x.SortKey), schema.ProjectionOf(&x), p.ProvisionedThroughput})
	}
	for _, name := range t.KeyNames() {
		p.AttributeDefinitions = append(p.AttributeDefinitions, definition{name, "S"})
	}
	return p
}

func keys(partition, sort string) []key {
	list := []key{{partition, "HASH"}}
	if sort != "" {
		list = append(list, key{sort, "RANGE"})
	}
	return list
}

// logicalID returns "RecurringPayments" for "recurring-payments": letters and digits alone.
func logicalID(name string) string {
	var id strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		id.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return id.String()
}

type scalableTarget struct {
	ServiceNamespace         string
	ResourceId               substitution
	ScalableDimension        string
	MinCapacity, MaxCapacity int
}

type scalingPolicy struct {
	PolicyName, PolicyType                   string
	ScalingTargetId                          reference
	TargetTrackingScalingPolicyConfiguration tracking
}

type tracking struct {
	TargetValue                   int
	PredefinedMetricSpecification struct{ PredefinedMetricType string }
}

// scaling returns a target and a policy for the reads and for the writes of the table and of
// each of its indexes. No role is named: Application Auto Scaling has its own, linked to the
// service. A target waits for the table, because it refers to it.
func scaling(id string, t *store.Table) map[string]resource {
	list := map[string]resource{}
	add := func(id, resourceID, kind string) {
		for _, of := range []string{"Read", "Write"} {
			target := id + of + "Target"
			list[target] = resource{Type: "AWS::ApplicationAutoScaling::ScalableTarget", Properties: scalableTarget{
				ServiceNamespace: "dynamodb", ResourceId: substitution{resourceID},
				ScalableDimension: "dynamodb:" + kind + ":" + of + "CapacityUnits",
				MinCapacity:       schema.LeastUnits, MaxCapacity: schema.MostUnits}}
			metric := "DynamoDB" + of + "CapacityUtilization"
			policy := scalingPolicy{PolicyName: metric, PolicyType: "TargetTrackingScaling", ScalingTargetId: reference{target}}
			policy.TargetTrackingScalingPolicyConfiguration.TargetValue = schema.TargetUse
			policy.TargetTrackingScalingPolicyConfiguration.PredefinedMetricSpecification.PredefinedMetricType = metric
			list[id+of+"Policy"] = resource{Type: "AWS::ApplicationAutoScaling::ScalingPolicy", Properties: policy}
		}
	}
	add(id, "table/${"+id+"}", "table")
	for _, x := range t.Indexes {
		add(id+"Index"+logicalID(x.Name), "table/${"+id+"}/index/"+x.Name, "index")
	}
	return list
}
