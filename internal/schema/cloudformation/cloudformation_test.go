package cloudformation_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/schema/cloudformation"
	"github.com/duesday/duesday/internal/store/dynamotable"
)

var update = flag.Bool("update", false, "write the golden files anew")

func write(t *testing.T, prefix string, s cloudformation.Settings) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := cloudformation.Write(&b, prefix, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	for name, s := range map[string]cloudformation.Settings{
		"template.json":    {},
		"provisioned.json": {Provisioned: true, DeletionProtection: true, PointInTimeRecovery: true},
	} {
		path := filepath.Join("testdata", name)
		got := write(t, schema.DefaultPrefix, s)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s has changed (go test -update writes it anew):\n%s", path, got)
		}
		if len(got) > 51200 {
			t.Errorf("%s has %d bytes; a template in a request has at most 51,200", name, len(got))
		}
	}
}

type template struct {
	Parameters map[string]struct{ Default string }
	Resources  map[string]struct {
		Type, DependsOn, DeletionPolicy, UpdateReplacePolicy string
		Properties                                           map[string]any
	}
}

func parse(t *testing.T, b []byte) template {
	t.Helper()
	var got template
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// resolve puts values in the place of a template's references: ${Prefix} is the parameter's
// default, and a table is known by its name.
func (tp *template) resolve(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if text, ok := v["Fn::Sub"].(string); ok {
			return regexp.MustCompile(`\$\{\w+\}`).ReplaceAllStringFunc(text, func(ref string) string {
				return tp.refer(strings.Trim(ref, "${}"))
			})
		}
		if name, ok := v["Ref"].(string); ok {
			return name
		}
		resolved := map[string]any{}
		for name, inner := range v {
			resolved[name] = tp.resolve(inner)
		}
		return resolved
	case []any:
		resolved := make([]any, len(v))
		for i := range v {
			resolved[i] = tp.resolve(v[i])
		}
		return resolved
	}
	return v
}

func (tp *template) refer(name string) string {
	if p, ok := tp.Parameters[name]; ok {
		return p.Default
	}
	return fmt.Sprint(tp.resolve(tp.Resources[name].Properties["TableName"]))
}

// created is what of a table's properties CreateTable takes, under the same names.
func created(t *testing.T, properties any) *dynamodb.CreateTableInput {
	t.Helper()
	b, err := json.Marshal(properties)
	if err != nil {
		t.Fatal(err)
	}
	var in dynamodb.CreateTableInput
	if err := json.Unmarshal(b, &in); err != nil {
		t.Fatal(err)
	}
	return &in
}

// TestTemplateIsWhatStoreCreateMakes turns the tables of the template into CreateTable
// requests and holds them to those that store create sends, and the settings that are made
// by other requests to the declaration.
func TestTemplateIsWhatStoreCreateMakes(t *testing.T) {
	for _, prefix := range []string{"", "live-"} {
		for n := range 8 {
			s := cloudformation.Settings{Provisioned: n&1 != 0, DeletionProtection: n&2 != 0, PointInTimeRecovery: n&4 != 0}
			want := dynamotable.Settings{DeletionProtection: s.DeletionProtection, PointInTimeRecovery: s.PointInTimeRecovery}
			if s.Provisioned {
				p := dynamotable.DefaultProvisioned()
				want.Provisioned = &p
			}
			tp := parse(t, write(t, prefix, s))
			tables := 0
			for _, r := range tp.Resources {
				if r.Type == "AWS::DynamoDB::Table" {
					tables++
				}
			}
			all := schema.New(prefix).All()
			if tables != len(all) {
				t.Errorf("%d tables, want %d", tables, len(all))
			}
			for _, table := range all {
				properties := tp.table(t, table.Name)
				got := created(t, properties)
				if g, w := request(t, got), request(t, dynamotable.Input(table, want)); g != w {
					t.Errorf("%s %+v:\n%s\nwant\n%s", table.Name, s, g, w)
				}
				ttl, _ := properties["TimeToLiveSpecification"].(map[string]any)
				if (ttl == nil) != (table.TTL == "") || (ttl != nil &&
					(ttl["AttributeName"] != table.TTL || ttl["Enabled"] != true)) {
					t.Errorf("%s: TTL %v, want %q", table.Name, ttl, table.TTL)
				}
				recovery, _ := properties["PointInTimeRecoverySpecification"].(map[string]any)
				if recovery["PointInTimeRecoveryEnabled"] != s.PointInTimeRecovery {
					t.Errorf("%s: %v, want %v", table.Name, recovery, s.PointInTimeRecovery)
				}
			}
		}
	}
}

func (tp *template) table(t *testing.T, name string) map[string]any {
	t.Helper()
	for _, r := range tp.Resources {
		if r.Type != "AWS::DynamoDB::Table" {
			continue
		}
		if p := tp.resolve(r.Properties).(map[string]any); p["TableName"] == name {
			return p
		}
	}
	t.Fatalf("no table %s", name)
	return nil
}

func request(t *testing.T, in *dynamodb.CreateTableInput) string {
	t.Helper()
	slices.SortFunc(in.AttributeDefinitions, func(a, b types.AttributeDefinition) int {
		return strings.Compare(*a.AttributeName, *b.AttributeName)
	})
	if in.DeletionProtectionEnabled == nil {
		in.DeletionProtectionEnabled = aws.Bool(false)
	}
	b, err := json.MarshalIndent(in, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// required are the properties that CloudFormation requires, or that DynamoDB does of a table
// like ours, and which others may stand beside them: the resource reference, by hand.
var required = map[string][]string{
	"AWS::DynamoDB::Table": {"KeySchema", "AttributeDefinitions", "TableName", "BillingMode"},
	"AWS::ApplicationAutoScaling::ScalableTarget": {"MaxCapacity", "MinCapacity", "ResourceId",
		"ScalableDimension", "ServiceNamespace"},
	"AWS::ApplicationAutoScaling::ScalingPolicy": {"PolicyName", "PolicyType", "ScalingTargetId",
		"TargetTrackingScalingPolicyConfiguration"},
}

var optional = map[string][]string{"AWS::DynamoDB::Table": {"GlobalSecondaryIndexes", "ProvisionedThroughput",
	"TimeToLiveSpecification",
	"PointInTimeRecoverySpecification", "DeletionProtectionEnabled"}}

func TestProperties(t *testing.T) {
	tp := parse(t, write(t, schema.DefaultPrefix, cloudformation.Settings{Provisioned: true}))
	for id, r := range tp.Resources {
		if !regexp.MustCompile(`^[A-Za-z0-9]{1,255}$`).MatchString(id) {
			t.Errorf("logical id %q", id)
		}
		must, known := required[r.Type]
		if !known {
			t.Errorf("%s: type %s", id, r.Type)
		}
		for _, name := range must {
			if r.Properties[name] == nil {
				t.Errorf("%s has no %s", id, name)
			}
		}
		for name := range r.Properties {
			if !slices.Contains(must, name) && !slices.Contains(optional[r.Type], name) {
				t.Errorf("%s: %s is no property that we know of", id, name)
			}
		}
		if isTable := r.Type == "AWS::DynamoDB::Table"; isTable != (r.DeletionPolicy == "Retain") ||
			isTable != (r.UpdateReplacePolicy == "Retain") {
			t.Errorf("%s: deletion %q, replacement %q", id, r.DeletionPolicy, r.UpdateReplacePolicy)
		}
	}
}

// TestTablesWithIndexesComeOneByOne follows DependsOn from the last to the first.
func TestTablesWithIndexesComeOneByOne(t *testing.T) {
	tp := parse(t, write(t, schema.DefaultPrefix, cloudformation.Settings{}))
	waitsFor, indexed, first := map[string]bool{}, 0, 0
	for id, r := range tp.Resources {
		if r.Properties["GlobalSecondaryIndexes"] == nil {
			continue
		}
		indexed++
		switch {
		case r.DependsOn == "":
			first++
		case waitsFor[r.DependsOn] || tp.Resources[r.DependsOn].Properties["GlobalSecondaryIndexes"] == nil:
			t.Errorf("%s waits for %s, as another does, or which has no index", id, r.DependsOn)
		}
		waitsFor[r.DependsOn] = true
	}
	if indexed != 5 || first != 1 {
		t.Errorf("%d tables with indexes, %d of them wait for none", indexed, first)
	}
}

// TestScalingIsForEveryTableAndIndex: the published model's bounds, on both dimensions, and a
// policy for each target.
func TestScalingIsForEveryTableAndIndex(t *testing.T) {
	tp := parse(t, write(t, "live-", cloudformation.Settings{Provisioned: true}))
	var got, want []string
	policies, targets := map[string]int{}, 0
	for id, r := range tp.Resources {
		p, _ := tp.resolve(r.Properties).(map[string]any)
		switch r.Type {
		case "AWS::ApplicationAutoScaling::ScalableTarget":
			got = append(got, fmt.Sprint(p["ResourceId"], " ", p["ScalableDimension"], " ", p["MinCapacity"], "..",
				p["MaxCapacity"]))
			targets++
		case "AWS::ApplicationAutoScaling::ScalingPolicy":
			policies[fmt.Sprint(p["ScalingTargetId"])]++
			c := p["TargetTrackingScalingPolicyConfiguration"].(map[string]any)
			metric := c["PredefinedMetricSpecification"].(map[string]any)["PredefinedMetricType"]
			reads := strings.Contains(fmt.Sprint(p["ScalingTargetId"]), "Read")
			if c["TargetValue"] != 70.0 || metric != map[bool]string{true: "DynamoDBReadCapacityUtilization",
				false: "DynamoDBWriteCapacityUtilization"}[reads] {
				t.Errorf("%s: %v", id, c)
			}
			if tp.Resources[fmt.Sprint(p["ScalingTargetId"])].Type != "AWS::ApplicationAutoScaling::ScalableTarget" {
				t.Errorf("%s scales nothing", id)
			}
		}
	}
	for _, table := range schema.New("live-").All() {
		for _, of := range []string{"Read", "Write"} {
			want = append(want, fmt.Sprintf("table/%s dynamodb:table:%sCapacityUnits 1..10", table.Name, of))
			for _, x := range table.Indexes {
				want = append(want, fmt.Sprintf("table/%s/index/%s dynamodb:index:%sCapacityUnits 1..10", table.Name, x.Name, of))
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("targets\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(policies) != targets {
		t.Errorf("policies for %d of %d targets", len(policies), targets)
	}
}
