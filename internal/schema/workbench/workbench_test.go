package workbench_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/schema/workbench"
	"github.com/duesday/duesday/internal/secret"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
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
	if secret.HasCardNumber(string(got)) {
		t.Errorf("%s holds what looks like a card number", path)
	}
}

func model(t *testing.T, tables schema.Tables) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := workbench.Write(&b, tables); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	tables := schema.New(schema.DefaultPrefix)
	golden(t, "model.json", model(t, tables))
	for _, d := range tables.Describe() {
		var b bytes.Buffer
		if err := workbench.WriteCSV(&b, d); err != nil {
			t.Fatal(err)
		}
		golden(t, d.Table.Name+".csv", b.Bytes())
	}
}

// differences are what may differ from the published model, by the path in it. Everything
// else of the model is in ours, in the same place and the same order.
var differences = map[string]string{
	"ModelMetadata.Description": "ours says what it is a model of",
	"DataModel.0.TableName":     "the published name is misspelt",
	"DataModel.0.TableFacets.0.TableData.0.PaymentDetails.M.default-card": "no card number is stored, so none is shown",
	"DataModel.0.TableFacets.1.TableData.0.SK.S":                          "the published key has a stray 1",
}

// additions are what ours has in places where the published model has nothing.
var additions = map[string]string{
	"DataModel.*":                    "the other tables",
	"DataModel.0.NonKeyAttributes.*": "Duesday's own attributes",
	"DataModel.0.TableFacets.*":      "Duesday's own items",
	"DataModel.0.TableFacets.0.TableData.0.PaymentDetails.M.PaymentMethod": "the token in the card number's place",
}

func TestModelIsThePublishedOne(t *testing.T) {
	b, err := os.ReadFile("../../book/testdata/RecurringPaymentsSchema.json")
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(model(t, schema.New(schema.DefaultPrefix)), &got); err != nil {
		t.Fatal(err)
	}
	c := comparison{met: map[string]bool{}}
	c.compare("", want, got)
	for _, w := range c.wrong {
		t.Error(w)
	}
	for path := range differences {
		if !c.met[path] {
			t.Errorf("%s does not differ: take it off the list", path)
		}
	}
	for path := range additions {
		if !c.met[path] {
			t.Errorf("%s is not added: take it off the list", path)
		}
	}

	// What is allowed to differ differs in just this way.
	table := got.(map[string]any)["DataModel"].([]any)[0].(map[string]any)
	equal(t, table["TableName"], "duesday-recurring-payments")
	facets := table["TableFacets"].([]any)
	subscription, receipt := sample(facets[0]), sample(facets[1])
	equal(t, subscription["PaymentDetails"], map[string]any{"M": map[string]any{
		"PaymentMethod":   map[string]any{"S": "pm_card_visa"},
		"default-address": map[string]any{"S": "12 Bridge Street, Birmingham, B12 7ST"}}})
	equal(t, receipt["SK"], map[string]any{"S": "REC#2023-05-28T14:15:39.24#SKU#999"})
	if strings.Contains(string(model(t, schema.New(""))), "default-card") {
		t.Error("the model names default-card")
	}
}

func sample(facet any) map[string]any {
	return facet.(map[string]any)["TableData"].([]any)[0].(map[string]any)
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

type comparison struct {
	wrong []string
	met   map[string]bool // paths of the lists above
}

func (c *comparison) compare(path string, want, got any) {
	if _, may := differences[path]; may && !reflect.DeepEqual(want, got) {
		c.met[path] = true
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			c.fault(path, "is no object")
			return
		}
		for name, value := range w {
			c.compare(join(path, name), value, g[name])
		}
		for name := range g {
			if _, there := w[name]; !there && !c.added(join(path, name)) {
				c.fault(join(path, name), "is not in the published model")
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) < len(w) {
			c.fault(path, "is no array, or too short")
			return
		}
		for i := range w {
			c.compare(join(path, strconv.Itoa(i)), w[i], g[i])
		}
		if len(g) > len(w) && !c.added(join(path, "*")) {
			c.fault(path, "is longer than in the published model")
		}
	default:
		if want != got {
			c.fault(path, "differs")
		}
	}
}

func (c *comparison) added(path string) bool {
	_, may := additions[path]
	c.met[path] = c.met[path] || may
	return may
}

func (c *comparison) fault(path, what string) { c.wrong = append(c.wrong, path+": "+what) }

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// TestComparisonFindsChanges: the test above would fail if ours were otherwise.
func TestComparisonFindsChanges(t *testing.T) {
	ours := string(model(t, schema.New(schema.DefaultPrefix)))
	b, err := os.ReadFile("../../book/testdata/RecurringPaymentsSchema.json")
	if err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	for _, edit := range [][2]string{{`"SubId#SKU"`, `"SubId"`}, {`"GSI-1"`, `"GSI-01"`},
		{`"ReadCapacityUnits": 5`, `"ReadCapacityUnits": 6`},
		{`"1700318200"`, `"1700318201"`}, {`"AttributeName": "TTL"`,
			`"AttributeName": "Ttl"`}, {`"FacetName": "Receipts"`, `"FacetName": "Receipt"`}} {
		if !strings.Contains(ours, edit[0]) {
			t.Fatalf("the model has no %s", edit[0])
		}
		var got any
		if err := json.Unmarshal([]byte(strings.Replace(ours, edit[0], edit[1], 1)), &got); err != nil {
			t.Fatal(err)
		}
		c := comparison{met: map[string]bool{}}
		if c.compare("", want, got); len(c.wrong) == 0 {
			t.Errorf("%s in place of %s is not found", edit[1], edit[0])
		}
	}
}

// TestCSVHasTheDeclaredNames: Workbench finds a column by the attribute's name.
func TestCSVHasTheDeclaredNames(t *testing.T) {
	for _, d := range schema.New("").Describe() {
		var b bytes.Buffer
		if err := workbench.WriteCSV(&b, d); err != nil {
			t.Fatal(err)
		}
		header, _, _ := strings.Cut(b.String(), "\n")
		for name := range strings.SplitSeq(header, ",") {
			if !d.Table.IsKey(name) && !slices.ContainsFunc(d.Attributes,
				func(a schema.Attribute) bool { return a.Name == name }) {
				t.Errorf("%s: column %s is no attribute", d.Table.Name, name)
			}
		}
		if rows := strings.Count(b.String(), "\n") - 1; rows != len(d.Samples()) || rows > 150 {
			t.Errorf("%s: %d rows of %d samples", d.Table.Name, rows, len(d.Samples()))
		}
	}
}
