package dynamotable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamotable"
)

// one is a small table with an index.
func one() []store.Table {
	return []store.Table{{Name: "one", PartitionKey: "id", TTL: "until",
		Indexes: []store.Index{{Name: "by-day", PartitionKey: "day"}}}}
}

// described is what the service says of one.
func described(status, indexStatus, more string) string {
	return fmt.Sprintf(`{"Table":{"TableName":"one","TableStatus":%q,"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"day","AttributeType":"S"}],
		"GlobalSecondaryIndexes":[{"IndexName":"by-day","IndexStatus":%q,"KeySchema":[{"AttributeName":"day","KeyType":"HASH"}],
			"Projection":{"ProjectionType":"KEYS_ONLY"}}]%s}}`, status, indexStatus, more)
}

const (
	onDemand = `,"BillingModeSummary":{"BillingMode":"PAY_PER_REQUEST"}`
	isOff    = `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`
	isOn     = `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLING","AttributeName":"until"}}`
	backups  = `{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"ENABLED","PointInTimeRecoveryDescription":{"PointInTimeRecoveryStatus":"%s"}}}`

	creates = `CreateTable {"TableName":"one","BillingMode":"PAY_PER_REQUEST","DeletionProtectionEnabled":%v,
		"AttributeDefinitions":[{"AttributeName":"day","AttributeType":"S"},{"AttributeName":"id","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"GlobalSecondaryIndexes":[{"IndexName":"by-day","KeySchema":[{"AttributeName":"day","KeyType":"HASH"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}]}`
	startsTTL     = `UpdateTimeToLive {"TableName":"one","TimeToLiveSpecification":{"AttributeName":"until","Enabled":true}}`
	startsBackups = `UpdateContinuousBackups {"TableName":"one","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`
)

// TestFake_WaitsUntilActive: a new table is not seen at first, then it is being created, then its index is.
func TestFake_WaitsUntilActive(t *testing.T) {
	f, client := newFake(t, map[string][]string{
		"DescribeTable": {"!ResourceNotFoundException", "!ResourceNotFoundException",
			described("CREATING", "CREATING", onDemand),
			described("ACTIVE", "CREATING", onDemand), described("ACTIVE", "ACTIVE", onDemand)},
		"CreateTable": {"!ThrottlingException", "{}"}, "DescribeTimeToLive": {isOff}, "UpdateTimeToLive": {"{}"},
		"DescribeContinuousBackups": {"!TableNotFoundException", fmt.Sprintf(backups, "DISABLED")},
		"UpdateContinuousBackups":   {"!ContinuousBackupsUnavailableException", "{}"},
	})
	made, told := create(t, client, one(), dynamotable.Settings{DeletionProtection: false, PointInTimeRecovery: true})
	same(t, "made", made, []string{"one"})
	same(t, "told", strings.Split(told, "\n"), []string{"one: creating", "one: waiting: not to be seen yet",
		"one: waiting: CREATING",
		"one: waiting: index by-day CREATING", "one: active", "one: TTL on, attribute until",
		"one: point-in-time recovery on"})
	f.expect(fmt.Sprintf(creates, false), fmt.Sprintf(creates, false), startsTTL, startsBackups, startsBackups)
}

// TestFake_StopsWaiting: a table that never becomes active is waited for as long as the caller wants.
func TestFake_StopsWaiting(t *testing.T) {
	_, client := newFake(t, map[string][]string{"DescribeTable": {described("CREATING", "CREATING", onDemand)}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := dynamotable.Create(ctx, client, one(), dynamotable.Settings{}, func(_, step string) {
		if strings.HasPrefix(step, "waiting: ") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "waiting for table one, which is CREATING") {
		t.Errorf("got %v", err)
	}
}

// TestFake_TwinMadeSomethingElse: a table that appears between the comparison and the request is
// compared when it is there.
func TestFake_TwinMadeSomethingElse(t *testing.T) {
	_, client := newFake(t, map[string][]string{
		"DescribeTable": {"!ResourceNotFoundException", strings.ReplaceAll(described("ACTIVE", "ACTIVE", ""), `"id"`,
			`"key"`)},
		"CreateTable": {"!ResourceInUseException"}, "DescribeTimeToLive": {isOff},
	})
	made, err := dynamotable.Create(t.Context(), client, one(), dynamotable.Settings{}, nil)
	if _, ok := errors.AsType[*dynamotable.DifferentError](err); !ok || len(made) > 0 ||
		!strings.Contains(err.Error(), "partition key: expected id, got key") {
		t.Errorf("made %q, error %v", made, err)
	}
}

// TestFake_EverythingOnAnExistingTable switches on what is off, each by its own request.
func TestFake_EverythingOnAnExistingTable(t *testing.T) {
	f, client := newFake(t, map[string][]string{
		"DescribeTable": {described("ACTIVE", "ACTIVE", onDemand)}, "DescribeTimeToLive": {isOff},
		"UpdateTimeToLive": {"{}"}, "UpdateTable": {"!ResourceInUseException", "{}"},
		"DescribeContinuousBackups": {fmt.Sprintf(backups, "DISABLED")}, "UpdateContinuousBackups": {"{}"},
	})
	p := dynamotable.DefaultProvisioned()
	made, told := create(t, client, one(), dynamotable.Settings{Provisioned: &p, DeletionProtection: true,
		PointInTimeRecovery: true})
	same(t, "made", made, nil)
	same(t, "told", strings.Split(told, "\n"), []string{"one: exists already", "one: TTL on, attribute until",
		"one: deletion protection on",
		"one: provisioned: 5 read and 5 write units", "one: point-in-time recovery on"})
	protects := `UpdateTable {"TableName":"one","DeletionProtectionEnabled":true}`
	f.expect(startsTTL, protects, protects,
		`UpdateTable {"TableName":"one","BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":5},
			"GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"by-day","ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":5}}}]}`,
		startsBackups)
}

// TestFake_NothingToDo: what is on already is not switched on again.
func TestFake_NothingToDo(t *testing.T) {
	f, client := newFake(t, map[string][]string{
		"DescribeTable":             {described("ACTIVE", "ACTIVE", onDemand+`,"DeletionProtectionEnabled":true`)},
		"DescribeTimeToLive":        {isOn},
		"DescribeContinuousBackups": {fmt.Sprintf(backups, "ENABLED")},
	})
	create(t, client, one(), dynamotable.Settings{DeletionProtection: true, PointInTimeRecovery: true})
	f.expect()
	found, err := dynamotable.Describe(t.Context(), client, one())
	if err != nil || found[0].PointInTimeRecovery != "ENABLED" || found[0].TTLStatus != "ENABLING" ||
		!found[0].DeletionProtection || len(found[0].Differences) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestFake_TTLWasFaster: a twin, or a reply that was lost, has switched it on.
func TestFake_TTLWasFaster(t *testing.T) {
	_, client := newFake(t, map[string][]string{
		"DescribeTable": {described("ACTIVE", "ACTIVE", onDemand)}, "DescribeTimeToLive": {isOff, isOff,
			isOn}, "UpdateTimeToLive": {"!ValidationException"},
	})
	create(t, client, one(), dynamotable.Settings{})
	_, client = newFake(t, map[string][]string{
		"DescribeTable": {described("ACTIVE", "ACTIVE", onDemand)}, "DescribeTimeToLive": {isOff},
		"UpdateTimeToLive": {"!ValidationException"},
	})
	if _, err := dynamotable.Create(t.Context(), client, one(), dynamotable.Settings{}, nil); err == nil ||
		!strings.Contains(err.Error(), "enabling TTL for table one") {
		t.Errorf("got %v", err)
	}
}

func TestFake_UnusableTables(t *testing.T) {
	for status, want := range map[string]string{"DELETING": "is being deleted; run this again",
		"INACCESSIBLE_ENCRYPTION_CREDENTIALS": "cannot be used"} {
		f, client := newFake(t, map[string][]string{"DescribeTable": {described(status, "ACTIVE", onDemand)},
			"DescribeTimeToLive": {isOn}})
		if _, err := dynamotable.Create(t.Context(), client, one(), dynamotable.Settings{}, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", status, err)
		}
		f.expect()
	}
}

// TestFake_DropWaitsItsTurn: a table that is being changed is dropped after that.
func TestFake_DropWaitsItsTurn(t *testing.T) {
	f, client := newFake(t, map[string][]string{
		"DescribeTable": {described("UPDATING", "ACTIVE", onDemand), described("UPDATING", "ACTIVE", onDemand),
			"!ResourceNotFoundException"},
		"DeleteTable": {"!ResourceInUseException", "{}"}, "DescribeTimeToLive": {isOn},
	})
	if _, err := dynamotable.Drop(t.Context(), client, one(), nil); err != nil {
		t.Fatal(err)
	}
	f.expect(`DeleteTable {"TableName":"one"}`, `DeleteTable {"TableName":"one"}`)
}
