package dynamostore_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
)

// withSets are values that are or hold a set or a null, as DynamoDB writes them.
var withSets = map[string]store.Value{`{"SS":["b","a"]}`: setOf(store.S("a"), store.S("b")),
	`{"NS":["1","-2.50"]}`: setOf(store.Int(1), fraction), `{"BS":["AA=="]}`: setOf(store.B([]byte{0})),
	`{"L":[{"M":{"x":{"NS":["1"]}}}]}`: store.L(store.M(store.NewItem(attribute("x", setOf(store.Int(1)))))),
	`{"M":{"n":{"NULL":true},"x":{"SS":[""]}}}`: store.M(store.Item{attribute("n", store.Null()),
		attribute("x", setOf(store.S("")))}),
	`{"L":[{"NULL":true},{"N":"1"}]}`: store.L(store.Null(), store.Int(1))}

var fraction, _ = store.Number("-2.5")

func setOf(elements ...store.Value) store.Value {
	v, _ := store.Set(elements...)
	return v
}

func TestLegacyItem_Get(t *testing.T) {
	for v, want := range withSets {
		item := `{"id":{"S":"a"},"n":{"N":"7"},"v":` + v + `}`
		s, script := scripted(t, got(item), got(item))
		it, err := s.Get(t.Context(), "t", keyA)
		if err != nil || !it.Equal(itemA(number("n", 7), attribute("v", want))) {
			t.Errorf("an item with %s: %v, %v", v, it, err)
		}
		if err := s.Commit(t.Context(), store.Check("t", keyA, store.AttributeEquals("v", want))); err != nil {
			t.Errorf("a check of %s: %v", v, err)
		}
		script.over("GetItem", "GetItem")
		s, _ = scripted(t, got(`{"id":{"S":"a"},"ttl":{"N":"1"},"v":`+v+`}`))
		if _, err := s.Get(t.Context(), "t", keyA); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an expired item with %s: %v, want ErrNotFound", v, err)
		}
	}
}

func TestLegacyItem_Null(t *testing.T) {
	s, _ := scripted(t, got(`{"id":{"S":"a"},"n":{"N":"7"},"v":{"NULL":true},"l":{"L":[{"NULL":true},{"N":"1"}]},"m":{"M":{"x":{"NULL":true},"y":{"L":[{"NULL":true}]}}}}`))
	want := itemA(number("n", 7), attribute("l", store.L(store.Null(), store.Int(1))),
		attribute("m", store.M(store.Item{attribute("x", store.Null()), attribute("y", store.L(store.Null()))})))
	if it, err := s.Get(t.Context(), "t", keyA); err != nil || !it.Equal(want) {
		t.Errorf("Get = %v, %v; want %v", it, err, want)
	}
}

// TestLegacyItem_Iterations: the item is yielded whole, and what follows too.
func TestLegacyItem_Iterations(t *testing.T) {
	for v, want := range withSets {
		page := answer(`{"Items":[{"id":{"S":"a"},"n":{"N":"7"},"v":` + v + `},{"id":{"S":"b"}}]}`)
		s, _ := scripted(t, page, page, page)
		for name, rows := range map[string]iter.Seq2[store.Item, error]{
			"Scan":        s.Scan(t.Context(), store.Scan{Table: "t"}),
			"Query":       s.Query(t.Context(), store.Query{Table: "t", Partition: "a"}),
			"index Query": s.Query(t.Context(), store.Query{Table: "t", Index: "x", Partition: "a"}),
		} {
			var items []store.Item
			for it, err := range rows {
				if err != nil {
					t.Errorf("%s of %s: %v", name, v, err)
				}
				items = append(items, it)
			}
			if len(items) != 2 || !items[0].Equal(itemA(number("n", 7), attribute("v", want))) {
				t.Errorf("%s of %s: %v, want a whole, and b", name, v, items)
			}
		}
	}
}

// TestLegacyItem_Conflict: the stored item that comes with a failed condition has a set.
func TestLegacyItem_Conflict(t *testing.T) {
	item := `{"id":{"S":"a"},"n":{"N":"7"},"v":{"SS":["a"]},"w":{"NULL":true}}`
	failed := cancelled(reason("None"), `{"Code":"ConditionalCheckFailed","Message":"no","Item":`+item+`}`)
	absentV, absentW := store.AttributeAbsent("v"), store.AttributeAbsent("w")
	seven := store.AttributeEquals("n", store.Int(7))
	equalsV := store.AttributeEquals("v", store.S("a"))
	for _, c := range []struct {
		write store.Write
		want  store.Condition // that is named
	}{
		{putGuarded, one}, {updateGuarded, one}, {removeIf, one}, {putAbsent, store.Absent()},
		{store.Put("t", itemA(), seven, absentW, absentV),
			absentV}, {store.Update("t", keyA, nil, []string{"n"}, seven, equalsV), equalsV},
	} {
		s, _ := scripted(t, conflicting(item))
		alone := s.Commit(t.Context(), c.write)
		s, _ = scripted(t, failed)
		together := s.Commit(t.Context(), store.Put("t",
			store.NewItem(store.Attribute{Name: "id", Value: store.S("b")})), c.write)
		for _, err := range []error{alone, together} {
			if conflict, ok := errors.AsType[*store.ConflictError](err); !ok || conflict.Condition != c.want.String() ||
				conflict.Key != keyA {
				t.Errorf("Commit = %v, want a conflict: %s", err, c.want)
			}
		}
	}
	// A delete whose answer was lost: the item that is read back has expired.
	s, script := scripted(t, silence, got(`{"id":{"S":"a"},"ttl":{"N":"1"},"v":{"SS":["a"]}}`))
	if err := s.Commit(t.Context(), remove); err != nil {
		t.Error(err)
	}
	script.over()
}

// TestLegacyItem_Local has DynamoDB's own view of the conditions.
func TestLegacyItem_Local(t *testing.T) {
	s := openLocal(t, []store.Table{{Name: "t", PartitionKey: "id"}}, dynamostore.Options{})
	defer closeStore(t, s)
	legacyItem := map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "a"}, "n": &types.AttributeValueMemberN{Value: "1"},
		"null": &types.AttributeValueMemberNULL{Value: true}, "set": &types.AttributeValueMemberSS{Value: []string{"x"}},
	}
	raw := func() map[string]types.AttributeValue {
		out, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: aws.String(s.prefix + "t"), Key: map[string]types.AttributeValue{"id": legacyItem["id"]},
			ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.Item
	}
	if _, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(s.prefix + "t"),
		Item: legacyItem}); err != nil {
		t.Fatal(err)
	}
	other := store.Put("t", store.NewItem(store.Attribute{Name: "id", Value: store.S("b")}))
	for i, c := range []struct {
		condition store.Condition
		want      error
	}{
		{store.AttributeAbsent("null"), nil}, {store.AttributeAbsent("set"),
			store.ErrConflict}, {store.AttributeAbsent("n"), store.ErrConflict},
		{store.AttributeEquals("set", store.L(store.S("x"))), store.ErrConflict}, {store.Absent(), store.ErrConflict},
	} {
		write := store.Update("t", keyA, store.NewItem(number("m", int64(i))), nil, c.condition)
		for _, err := range []error{s.Commit(t.Context(), write), s.Commit(t.Context(), other, write)} {
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Errorf("an update if %s: %v, want %v", c.condition, err, c.want)
			}
		}
	}
	two := []store.Condition{store.AttributeAbsent("null"), store.AttributeAbsent("none")}
	for _, key := range []string{"a", "nobody"} { // there, and not
		for _, write := range []store.Write{store.Check("t", store.Key{PK: "b"}, two...),
			store.Put("t", store.NewItem(store.Attribute{Name: "id", Value: store.S(key + "2")}), two...)} {
			if err := s.Commit(t.Context(), write, store.Update("t", keyA, nil, nil, two...)); err != nil {
				t.Errorf("if both are absent: %v", err)
			}
		}
	}
	if _, kept := raw()["set"].(*types.AttributeValueMemberSS); !kept {
		t.Error("an update has lost the set")
	}
	if it, err := s.Get(t.Context(), "t", keyA); err != nil || !it.Get("set").Equal(setOf(store.S("x"))) || it.Has("null") {
		t.Errorf("Get = %v, %v", it, err)
	}
	if err := s.Commit(t.Context(), store.Delete("t", keyA, store.AttributeAbsent("null"))); err != nil {
		t.Errorf("Delete = %v", err)
	}
}
