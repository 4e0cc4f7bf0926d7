package dynamotable_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store/dynamotable"
)

// TestFake_Lacks reads answers of AWS's own form, which DynamoDB Local cannot give, and names what
// the table lacks.
func TestFake_Lacks(t *testing.T) {
	const (
		protected = onDemand + `,"DeletionProtectionEnabled":true`
		denied    = "!AccessDeniedException"
	)
	enabled := strings.Replace(isOn, "ENABLING", "ENABLED", 1)
	safe := fmt.Sprintf(backups, "ENABLED")
	good := described("ACTIVE", "ACTIVE", protected)
	for name, x := range map[string]struct {
		table, ttl, backups  string
		wrong, weak, unknown string // what each begins with
		fails                string
	}{
		"all is there":             {good, enabled, safe, "", "", "", ""},
		"a resized index":          {described("UPDATING", "UPDATING", protected), enabled, safe, "", "", "", ""},
		"another tool's new index": {strings.Replace(good, `[{"IndexName"`, `[{"IndexName":"more","IndexStatus":"CREATING","KeySchema":[{"AttributeName":"day","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}},{"IndexName"`, 1), enabled, safe, "", "", "", ""},
		"no index":                 {strings.Replace(good, "by-day", "by-month", 1), enabled, safe, "table one: index by-day: expected day KEYS_ONLY, got none", "", "", ""},
		"filling index":            {described("UPDATING", "CREATING", protected), enabled, safe, "table one: index by-day is CREATING", "", "", ""},
		"dying index":              {described("UPDATING", "DELETING", protected), enabled, safe, "table one: index by-day is DELETING", "", "", ""},
		"other keys":               {strings.ReplaceAll(good, `"id"`, `"ID"`), enabled, safe, "table one: partition key: expected id, got ID", "", "", ""},
		"TTL off":                  {good, isOff, safe, "table one: TTL attribute: expected until, got off", "", "", ""},
		"another TTL":              {good, strings.Replace(enabled, "until", "then", 1), safe, "table one: TTL attribute: expected until, got then", "", "", ""},
		"no recovery":              {good, enabled, fmt.Sprintf(backups, "DISABLED"), "", "point-in-time recovery is off for 1 of 1 tables", "", ""},
		"no backups":               {good, enabled, `{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"DISABLED"}}`, "", "point-in-time recovery is off for 1 of 1 tables", "", ""},
		"unprotected":              {described("ACTIVE", "ACTIVE", onDemand), enabled, safe, "", "deletion protection is off for 1 of 1 tables", "", ""},
		"not to be asked":          {good, enabled, denied, "", "", "point-in-time recovery may not be asked for", ""},
		"DynamoDB Local":           {good, enabled, "!UnknownOperationException", "", "", "", ""},
		"no table":                 {"!ResourceNotFoundException", enabled, safe, "table one: table: expected one, got none", "", "", ""},
		"locked key":               {described("INACCESSIBLE_ENCRYPTION_CREDENTIALS", "ACTIVE", protected), enabled, safe, "table one is INACCESSIBLE_ENCRYPTION_CREDENTIALS", "", "", ""},
		"nothing is told":          {denied, enabled, safe, "", "", "", "describing table one: "},
		"no TTL is told":           {good, denied, safe, "", "", "", "describing the TTL of table one: "},
		"everything lacks":         {strings.Replace(described("ACTIVE", "ACTIVE", onDemand), "by-day", "by-month", 1), isOff, fmt.Sprintf(backups, "DISABLED"), "table one: index by-day: expected day KEYS_ONLY, got none|table one: TTL attribute: expected until, got off", "point-in-time recovery is off for 1 of 1 tables|deletion protection is off for 1 of 1 tables", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, client := newFake(t, map[string][]string{"DescribeTable": {x.table}, "DescribeTimeToLive": {x.ttl},
				"DescribeContinuousBackups": {x.backups}})
			found, err := dynamotable.Describe(t.Context(), client, one())
			if x.fails != "" {
				if err == nil || !strings.HasPrefix(err.Error(), x.fails) || !strings.Contains(err.Error(), "AccessDenied") {
					t.Errorf("error %v, want %q", err, x.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wrong, weak, unknown := dynamotable.Lacks(found)
			for i, got := range [][]string{wrong, weak, unknown} {
				if want := strings.Split([]string{x.wrong, x.weak, x.unknown}[i], "|"); !slices.Equal(got, want) && (len(got) > 0 || want[0] != "") {
					t.Errorf("%s: got %q, want %q", []string{"wrong", "weak", "unknown"}[i], got, want)
				}
			}
		})
	}
}
