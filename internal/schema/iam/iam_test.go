package iam_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/schema/iam"
)

var update = flag.Bool("update", false, "write the golden files anew")

var usual = iam.Options{Account: "123456789012", Region: "*"}

// document returns the named policy as what its JSON holds.
func document(t *testing.T, name string, o iam.Options) (policy map[string]any, text []byte) {
	t.Helper()
	p, err := iam.New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = json.MarshalIndent(p, "", "  "); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &policy); err != nil {
		t.Fatal(err)
	}
	return policy, text
}

func TestGolden(t *testing.T) {
	for _, name := range iam.Names() {
		_, got := document(t, name, usual)
		path := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, bytes.TrimSpace(want)) {
			t.Errorf("%s has changed (go test -update writes it anew):\n%s", path, got)
		}
	}
}

// TestSeedIsThePublishedPolicy: but for the comma that made it no JSON.
func TestSeedIsThePublishedPolicy(t *testing.T) {
	b, err := os.ReadFile("testdata/published.txt")
	if err != nil {
		t.Fatal(err)
	}
	if json.Valid(b) {
		t.Error("the published text is valid: this test shows nothing")
	}
	valid := regexp.MustCompile(`,(\s*\])`).ReplaceAll(b, []byte("$1"))
	var want map[string]any
	if err := json.Unmarshal(valid, &want); err != nil {
		t.Fatal(err)
	}
	if got, text := document(t, iam.Seed, usual); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", text, valid)
	}
	_, text := document(t, iam.Seed, iam.Options{Account: "000000000001", Region: "eu-west-1", Prefix: "live-"})
	for _, part := range []string{`"arn:aws:dynamodb:eu-west-1:000000000001:table/live-stripe-payments-*"`,
		`"arn:aws:dynamodb:eu-west-1:000000000001:table/live-stripe-payments-*/index/*"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not in\n%s", part, text)
		}
	}
}

// grant is one action on one resource.
type grant struct{ action, resource string }

func grants(t *testing.T, name string, o iam.Options) (list []grant) {
	t.Helper()
	p, err := iam.New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Statement {
		if s.Effect != "Allow" || !regexp.MustCompile(`^[A-Za-z0-9]*$`).MatchString(s.Sid) {
			t.Errorf("%s: statement %+v", name, s)
		}
		for _, a := range s.Action {
			for _, r := range s.Resource {
				list = append(list, grant{a, r})
			}
		}
	}
	return list
}

// TestRuntimeIsLeastPrivilege: six actions on items of Duesday's own tables, three looks at each
// table, and nothing else; on an index, queries alone; no index and no table is forgotten.
func TestRuntimeIsLeastPrivilege(t *testing.T) {
	o := iam.Options{Account: "123456789012", Region: "eu-west-1", Prefix: "live-", RecurringTable: "OldPayments"}
	runtime := grants(t, iam.Runtime, o)
	want := map[string]bool{}
	for _, table := range schema.Named("live-", "OldPayments").All() {
		arn := "arn:aws:dynamodb:eu-west-1:123456789012:table/" + table.Name
		want[arn] = false
		for _, x := range table.Indexes {
			want[arn+"/index/"+x.Name] = false
		}
	}
	items := []string{"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem",
		"dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"}
	looks := []string{"dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:DescribeContinuousBackups"}
	for _, g := range runtime {
		if g.action == "dynamodb:Scan" && strings.HasSuffix(g.resource, "/OldPayments") { // once a day, for the outlook
			continue
		}
		if _, ours := want[g.resource]; !ours || !slices.Contains(items, g.action) && !slices.Contains(looks, g.action) {
			t.Errorf("%v", g)
		}
		if strings.Contains(g.resource, "/index/") && g.action != "dynamodb:Query" {
			t.Errorf("%v", g)
		}
		if g.action == "dynamodb:DeleteItem" && strings.Contains(g.resource, "-stripe-payments-") &&
			!strings.HasSuffix(g.resource, "-registry") {
			t.Errorf("%v: what was tracked is not deleted", g)
		}
		want[g.resource] = true
	}
	for resource, met := range want {
		if !met {
			t.Errorf("nothing is allowed on %s", resource)
		}
	}
	for _, action := range append(items, looks...) {
		if g := (grant{action, "arn:aws:dynamodb:eu-west-1:123456789012:table/OldPayments"}); !slices.Contains(runtime, g) {
			t.Errorf("%v is missing", g)
		}
	}

	// An operator has all of that, and reads whole tables.
	operator := grants(t, iam.Operator, o)
	for _, g := range runtime {
		if !slices.Contains(operator, g) {
			t.Errorf("operator: %v is missing", g)
		}
	}
	for _, g := range operator {
		if !slices.Contains(runtime, g) && g.action != "dynamodb:Scan" { // the runtime scans one table, once a day
			t.Errorf("operator: %v", g)
		}
	}
	if more := len(operator) - len(runtime); more != 6 {
		t.Errorf("an operator may %d more things, want one on each other table", more)
	}
}

// TestAdministrationTouchesNoItems but the store's own, and sees whether there are others. It
// uses no service but DynamoDB.
func TestAdministrationTouchesNoItems(t *testing.T) {
	p, err := iam.New(iam.Administration, usual)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Statement {
		for _, a := range s.Action {
			item := strings.HasSuffix(a, "Item") || strings.HasSuffix(a, "Scan") || strings.HasSuffix(a, "Query")
			if s.Sid == "StoreEmpty" && a == "dynamodb:Scan" && len(s.Resource) == 1 &&
				strings.HasSuffix(s.Resource[0], "recurring-payments") {
				continue
			}
			if item && !reflect.DeepEqual([]string(s.Condition["ForAllValues:StringEquals"]["dynamodb:LeadingKeys"]),
				[]string{"META", "SETTINGS"}) {
				t.Errorf("%s on any item: %+v", a, s)
			}
			if !strings.HasPrefix(a, "dynamodb:") {
				t.Errorf("%s is of another service", a)
			}
		}
	}
}

// TestPoliciesFit: a managed policy has at most 6,144 characters besides white space.
func TestPoliciesFit(t *testing.T) {
	o := iam.Options{Account: "123456789012", Region: "ap-southeast-3", Prefix: "billing-production-"}
	for _, name := range iam.Names() {
		policy, _ := document(t, name, o)
		b, err := json.Marshal(policy)
		if err != nil || len(b) > 6144 {
			t.Errorf("%s: %d characters, %v", name, len(b), err)
		}
	}
}

func TestPartitions(t *testing.T) {
	for region, want := range map[string]string{"*": "arn:aws:", "eu-west-1": "arn:aws:",
		"cn-north-1": "arn:aws-cn:", "us-gov-east-1": "arn:aws-us-gov:"} {
		for _, g := range grants(t, iam.Administration, iam.Options{Account: "123456789012", Region: region}) {
			if g.resource != "*" && !strings.HasPrefix(g.resource, want) {
				t.Errorf("%s: %v", region, g)
			}
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		change func(*iam.Options)
		want   string
	}{
		{func(o *iam.Options) { o.Account = "" }, "12 digits"},
		{func(o *iam.Options) { o.Account = "12345678901" }, "12 digits"},
		{func(o *iam.Options) { o.Account = "12345678901x" }, "12 digits"},
		{func(o *iam.Options) { o.Region = "" }, "such as eu-west-1"},
		{func(o *iam.Options) { o.Region = "Frankfurt" }, "such as eu-west-1"},
		{func(o *iam.Options) { o.Region = "eu-*" }, "such as eu-west-1"},
		{func(o *iam.Options) { o.Prefix = "a b" }, "letters, digits"},
		{func(o *iam.Options) { o.Prefix = "*" }, "letters, digits"},
		{func(o *iam.Options) { o.RecurringTable = "x" }, "3 to 255"},
	} {
		o := usual
		tt.change(&o)
		for _, name := range iam.Names() {
			if _, err := iam.New(name, o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s of %+v: %v, want %s", name, o, err, tt.want)
			}
		}
	}
	if _, err := iam.New("root", usual); err == nil ||
		!strings.Contains(err.Error(), "seed, runtime, operator, administration") {
		t.Errorf("an unknown policy: %v", err)
	}
}
