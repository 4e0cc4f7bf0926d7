package dynamotable_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

func TestMain(m *testing.M) {
	if err := dynamotest.Own(); err != nil {
		panic(err)
	}
	m.Run()
}

// tables returns Duesday's tables under names that no other test has.
func tables(t *testing.T) []store.Table { return schema.New(dynamotest.Prefix(t)).All() }

func names(tables []store.Table) (names []string) {
	for _, t := range tables {
		names = append(names, t.Name)
	}
	return names
}

// existing returns the names of those tables that are there.
func existing(t *testing.T, client *dynamodb.Client, tables []store.Table) (there []string) {
	t.Helper()
	found, err := dynamotable.Describe(t.Context(), client, tables)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if !d.Missing {
			there = append(there, d.Table.Name)
		}
	}
	return there
}

func create(t *testing.T, client *dynamodb.Client, tables []store.Table, s dynamotable.Settings) (made []string,
	steps string) {
	t.Helper()
	var told []string
	made, err := dynamotable.Create(t.Context(), client, tables, s,
		func(table, step string) { told = append(told, table+": "+step) })
	if err != nil {
		t.Fatal(err)
	}
	return made, strings.Join(told, "\n")
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestLocal_CreateDescribeDrop(t *testing.T) {
	client, all := dynamotest.Client(t), tables(t)
	made, _ := create(t, client, all, dynamotable.Settings{})
	same(t, "made", made, names(all))
	found, err := dynamotable.Describe(t.Context(), client, all)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range found {
		if d.Missing || d.Status != "ACTIVE" || !d.OnDemand || d.DeletionProtection || d.Created.IsZero() ||
			len(d.Differences) > 0 {
			t.Errorf("%+v", d)
		}
		if d.Table.TTL != all[i].TTL || (all[i].TTL != "") != (d.TTLStatus == "ENABLED") {
			t.Errorf("table %s: TTL %q %s, want %q", d.Table.Name, d.Table.TTL, d.TTLStatus, all[i].TTL)
		}
		if len(d.IndexStatus) != len(all[i].Indexes) {
			t.Errorf("table %s: indexes %v", d.Table.Name, d.IndexStatus)
		}
	}
	made, told := create(t, client, all, dynamotable.Settings{})
	same(t, "made again", made, nil)
	if strings.Count(told, "exists already") != len(all) || strings.Contains(told, "TTL") {
		t.Errorf("the second time: %s", told)
	}
	dropped, err := dynamotable.Drop(t.Context(), client, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "dropped", dropped, names(all))
	same(t, "left", existing(t, client, all), nil)
	if dropped, err = dynamotable.Drop(t.Context(), client, all, nil); err != nil || len(dropped) > 0 {
		t.Errorf("dropped again: %q, %v", dropped, err)
	}
}

// TestLocal_Complete completes a set that was cut off: one table without TTL, the others missing.
func TestLocal_Complete(t *testing.T) {
	client, all := dynamotest.Client(t), tables(t)
	if _, err := client.CreateTable(t.Context(), dynamotable.Input(all[0], dynamotable.Settings{})); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{len(all) - 1, 0} {
		made, err := dynamotable.Create(t.Context(), client, all, dynamotable.Settings{}, nil)
		if err != nil || len(made) != want {
			t.Errorf("call %d: made %q, %v", i, made, err)
		}
	}
	found, err := dynamotable.Describe(t.Context(), client, all)
	if err != nil || len(found[0].Differences) > 0 || found[0].Table.TTL != all[0].TTL {
		t.Errorf("%+v, %v", found[0], err)
	}
}

// TestLocal_RefusesWhatDiffers: a table in the middle of the set is somebody else's.
func TestLocal_RefusesWhatDiffers(t *testing.T) {
	for _, x := range []struct {
		name   string
		spoil  func(*store.Table)
		ttl    string
		saying []string
	}{
		{"partition key", func(s *store.Table) { s.PartitionKey = "id" }, "", []string{"partition key: expected PK, got id"}},
		{"sort key", func(s *store.Table) { s.SortKey = "" }, "", []string{"sort key: expected SK, got none"}},
		{"an index missing", func(s *store.Table) { s.Indexes = s.Indexes[:1] }, "",
			[]string{"index GSI-2: expected NextPaymentDate/LastPaymentDate INCLUDE Email PaymentAmount PaymentDay " +
				"PaymentDetails SKU, got none"}},
		{"index keys", func(s *store.Table) { s.Indexes[0].SortKey = "Email" }, "",
			[]string{"index GSI-1 sort key: expected LastReminderDate, got Email"}},
		{"projection", func(s *store.Table) { s.Indexes[1].Include = s.Indexes[1].Include[:4] }, "",
			[]string{"index GSI-2 projection: expected INCLUDE Email PaymentAmount PaymentDay PaymentDetails SKU, got INCLUDE " +
				"Email PaymentDay"}},
		{"TTL", func(*store.Table) {}, "Expires", []string{"TTL attribute: expected TTL, got Expires"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			client, all := dynamotest.Client(t), tables(t)
			all[0], all[1] = all[1], all[0] // so that another would have been made before it
			theirs := all[1]
			theirs.Indexes = slices.Clone(theirs.Indexes)
			x.spoil(&theirs)
			in := dynamotable.Input(theirs, dynamotable.Settings{})
			if _, err := client.CreateTable(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if x.ttl != "" {
				if _, err := client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: in.TableName,
					TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &x.ttl,
						Enabled: aws.Bool(true)}}); err != nil {
					t.Fatal(err)
				}
			}
			made, err := dynamotable.Create(t.Context(), client, all, dynamotable.Settings{}, nil)
			different, ok := errors.AsType[*dynamotable.DifferentError](err)
			if !ok || len(made) > 0 || len(different.Differences) != len(x.saying) {
				t.Fatalf("made %q, error %v", made, err)
			}
			for _, text := range x.saying {
				if !strings.Contains(err.Error(), "table "+theirs.Name+": "+text) {
					t.Errorf("%q is not in: %v", text, err)
				}
			}
			same(t, "there", existing(t, client, all), []string{theirs.Name})
			if _, err := dynamotable.Drop(t.Context(), client, all, nil); !errors.As(err, &different) {
				t.Errorf("dropped what is somebody else's: %v", err)
			}
		})
	}
}

// TestLocal_WiderIsUsed: a table with more than was declared is used and completed, and its
// further index is provisioned with the others. It is not dropped: somebody has a use for it.
func TestLocal_WiderIsUsed(t *testing.T) {
	client, all := dynamotest.Client(t), tables(t)
	wide := all[0]
	wide.Indexes = append(slices.Clone(wide.Indexes), store.Index{Name: "mine", PartitionKey: "Email", All: true})
	wide.Indexes[0].All = true
	wide.Indexes[1].Include = append(slices.Clone(wide.Indexes[1].Include), "more")
	if _, err := client.CreateTable(t.Context(), dynamotable.Input(wide, dynamotable.Settings{})); err != nil {
		t.Fatal(err)
	}
	p := dynamotable.DefaultProvisioned()
	made, _ := create(t, client, all, dynamotable.Settings{Provisioned: &p})
	same(t, "made", made, names(all[1:]))
	found, err := dynamotable.Describe(t.Context(), client, all)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, d := range found[0].Differences {
		if !d.Harmless || d.Mends {
			t.Errorf("%+v", d)
		}
		parts = append(parts, d.Part)
	}
	same(t, "differences", parts, []string{"index GSI-1 projection", "index GSI-2 projection", "index mine"})
	if found[0].OnDemand || found[0].Table.TTL != all[0].TTL {
		t.Errorf("not completed: %+v", found[0])
	}
	if dropped, err := dynamotable.Drop(t.Context(), client, all, nil); err == nil || len(dropped) > 0 ||
		!strings.Contains(err.Error(), "index mine: expected none, got Email ALL") {
		t.Errorf("dropped %q, %v", dropped, err)
	}
}

// TestLocal_DeclaredTwice: nothing is made of declarations that cannot be.
func TestLocal_DeclaredTwice(t *testing.T) {
	client, all := dynamotest.Client(t), tables(t)
	all[0].Name = all[1].Name
	if made, err := dynamotable.Create(t.Context(), client, all, dynamotable.Settings{}, nil); !errors.Is(err,
		store.ErrInvalid) || len(made) > 0 {
		t.Errorf("made %q, %v", made, err)
	}
	same(t, "there", existing(t, client, all), nil)
}

func TestLocal_KeyOfAnotherType(t *testing.T) {
	client, all := dynamotest.Client(t), tables(t)
	in := dynamotable.Input(all[0], dynamotable.Settings{})
	for i := range in.AttributeDefinitions {
		in.AttributeDefinitions[i].AttributeType = types.ScalarAttributeTypeN
	}
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	_, err := dynamotable.Create(t.Context(), client, all, dynamotable.Settings{}, nil)
	if err == nil || !strings.Contains(err.Error(), "type of key attribute PK: expected S, got N") {
		t.Errorf("got %v", err)
	}
}

// TestLocal_CreatorsAtOnce: each ends with all tables, and each table was made once.
func TestLocal_CreatorsAtOnce(t *testing.T) {
	client, all := dynamotest.Client(t), tables(t)
	var wg sync.WaitGroup
	made := make([][]string, 4)
	for i := range made {
		wg.Go(func() {
			var err error
			if made[i], err = dynamotable.Create(t.Context(), client, all, dynamotable.Settings{}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	together := slices.Sorted(slices.Values(slices.Concat(made...)))
	want := slices.Sorted(slices.Values(names(all)))
	same(t, "made together", together, want)
	same(t, "there", existing(t, client, all), names(all))
}

func TestLocal_DeletionProtection(t *testing.T) {
	client, all := dynamotest.Client(t), tables(t)
	create(t, client, all[:1], dynamotable.Settings{})
	create(t, client, all, dynamotable.Settings{DeletionProtection: true}) // of the first, by an update
	_, err := dynamotable.Drop(t.Context(), client, all, nil)
	protected, ok := errors.AsType[*dynamotable.ProtectedError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	same(t, "protected", protected.Tables, names(all))
	if !strings.Contains(err.Error(), "--table-name "+all[0].Name+" --no-deletion-protection-enabled") {
		t.Errorf("got %v", err)
	}
	same(t, "there", existing(t, client, all), names(all))
}

func TestLocal_Provisioned(t *testing.T) {
	client, all := dynamotest.Client(t), tables(t)
	p := dynamotable.DefaultProvisioned()
	p.ReadUnits, p.WriteUnits = 7, 3
	for try := 1; ; try++ { // under load, DynamoDB Local may answer every update of a table with InternalFailure
		create(t, client, all[:1], dynamotable.Settings{}) // becomes provisioned by an update
		_, err := dynamotable.Create(t.Context(), client, all, dynamotable.Settings{Provisioned: &p}, func(string, string) {})
		if err == nil {
			break
		}
		if try == 3 || !strings.Contains(err.Error(), "InternalFailure") {
			t.Fatal(err)
		}
		t.Logf("with other tables: %v", err)
		all = tables(t)
	}
	found, err := dynamotable.Describe(t.Context(), client, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if d.OnDemand || d.ReadUnits != 7 || d.WriteUnits != 3 {
			t.Errorf("%+v", d)
		}
	}
	create(t, client, all, dynamotable.Settings{}) // says nothing of the billing mode, and leaves it
	if found, err = dynamotable.Describe(t.Context(), client, all); err != nil || found[0].OnDemand {
		t.Errorf("%+v, %v", found[0], err)
	}
}

// TestLocal_NoPointInTimeRecovery: what DynamoDB Local has not is said before a table is made.
func TestLocal_NoPointInTimeRecovery(t *testing.T) {
	client, all := dynamotest.Client(t), tables(t)
	_, err := dynamotable.Create(t.Context(), client, all, dynamotable.Settings{PointInTimeRecovery: true}, nil)
	if err == nil || !strings.Contains(err.Error(), "does not support point-in-time recovery") {
		t.Errorf("got %v", err)
	}
	same(t, "there", existing(t, client, all), nil)
}

func TestCreate_SettingsThatCannotBe(t *testing.T) {
	client := dynamotest.ClientAt("http://127.0.0.1:1") // never asked
	for _, p := range []dynamotable.Provisioned{{}, {ReadUnits: 1}, {WriteUnits: 1}} {
		if _, err := dynamotable.Create(t.Context(), client, nil, dynamotable.Settings{Provisioned: &p},
			nil); err == nil || !strings.Contains(err.Error(), "must be 1 or more") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestLocal_EndedContext(t *testing.T) {
	client, all := dynamotest.Client(t), tables(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dynamotable.Create(ctx, client, all, dynamotable.Settings{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
