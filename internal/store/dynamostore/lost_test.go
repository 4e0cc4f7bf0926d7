package dynamostore_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

func number(name string, n int64) store.Attribute {
	return store.Attribute{Name: name, Value: store.Int(n)}
}

func itemA(attributes ...store.Attribute) store.Item {
	return store.NewItem(append(attributes, store.Attribute{Name: "id", Value: store.S("a")})...)
}

// The writes of these tests. A guarded one makes its own condition false.
var (
	keyA = store.Key{PK: "a"}
	one  = store.AttributeEquals("n", store.Int(1))

	put           = store.Put("t", itemA(number("n", 2)))
	putAbsent     = store.Put("t", itemA(number("n", 2)), store.Absent())
	putSame       = store.Put("t", itemA(number("n", 1)), one)
	putGuarded    = store.Put("t", itemA(number("n", 2)), one)
	update        = store.Update("t", keyA, store.NewItem(number("n", 2)), nil)
	updateOther   = store.Update("t", keyA, store.NewItem(number("m", 2)), nil, one)
	updateGuarded = store.Update("t", keyA, store.NewItem(number("n", 2)), nil, one)
	removeGuarded = store.Update("t", keyA, nil, []string{"n"}, one)
	remove        = store.Delete("t", keyA)
	removeIf      = store.Delete("t", keyA, one)
)

// TestLostReplies has every row of the table at commit.single: what is asked after an
// answer was lost, and what the caller is told.
func TestLostReplies(t *testing.T) {
	unknown, none := store.ErrUnknown, error(nil)
	for _, c := range []struct {
		name    string
		write   store.Write
		replies []reply // the first is to the write itself
		want    error
	}{
		{"put landed", put, []reply{silence, got(ours)}, none},
		{"put landed, by an error", put, []reply{broken, got(ours)}, none},
		{"put, another's item", put, []reply{silence, got(theirs)}, unknown},
		{"put, an item without a token", put, []reply{silence, got(`{"id":{"S":"a"}}`)}, unknown},
		{"put, no item", put, []reply{silence, absent}, unknown},
		{"put if absent, no item", putAbsent, []reply{silence, absent}, unknown},
		{"put if absent landed", putAbsent, []reply{silence, got(ours)}, none},
		{"put that keeps what it compares", putSame, []reply{silence, got(theirs)}, unknown},
		{"guarded put landed", putGuarded, []reply{silence, got(ours)}, none},
		{"guarded put, sent again", putGuarded, []reply{silence, got(theirs), done}, none},
		{"guarded put, no item, sent again", putGuarded, []reply{silence, absent, done}, none},
		{"guarded put, sent again, had landed meanwhile", putGuarded, []reply{silence, got(theirs), conflicting(ours)}, none},
		{"guarded put, sent again, conflict", putGuarded, []reply{silence, got(theirs), conflicting(theirs)}, unknown},
		{"guarded put, sent again, conflict with nothing", putGuarded, []reply{silence, got(theirs), conflicting("")},
			unknown},
		{"guarded put, lost twice", putGuarded, []reply{silence, got(theirs), broken, got(ours)}, none},
		{"guarded put, busy when sent again", putGuarded, []reply{silence, got(theirs), busy, got(theirs), done}, none},
		{"guarded put, refused when sent again", putGuarded, []reply{silence, got(theirs), invalid("no")}, unknown},
		{"update landed", update, []reply{silence, got(ours)}, none},
		{"update, another's item", update, []reply{silence, got(theirs)}, unknown},
		{"update of something else than it compares", updateOther, []reply{silence, got(theirs)}, unknown},
		{"guarded update, sent again", updateGuarded, []reply{silence, got(theirs), done}, none},
		{"guarded update that removes, sent again", removeGuarded, []reply{silence, got(theirs), done}, none},
		{"guarded update, sent again, had landed", updateGuarded, []reply{silence, got(theirs), conflicting(ours)}, none},
		{"guarded update, sent again, conflict", updateGuarded, []reply{silence, got(theirs), conflicting(theirs)}, unknown},
		{"delete landed", remove, []reply{silence, absent}, none},
		{"delete, expired meanwhile", remove, []reply{silence, got(`{"id":{"S":"a"},"ttl":{"N":"1"}}`)}, none},
		{"delete, an item", remove, []reply{silence, got(theirs)}, unknown},
		{"guarded delete landed", removeIf, []reply{silence, absent}, none},
		{"guarded delete, sent again", removeIf, []reply{silence, got(theirs), done}, none},
		{"guarded delete, sent again, gone meanwhile", removeIf, []reply{silence, got(theirs), conflicting("")}, none},
		{"guarded delete, sent again, conflict", removeIf, []reply{silence, got(theirs), conflicting(theirs)}, unknown},
		{"reading back fails for a while", put, []reply{silence, busy, broken, silence, got(ours)}, none},
		{"reading back is not allowed", put, []reply{silence,
			failure(http.StatusBadRequest, "AccessDeniedException")}, unknown},
		{"nothing lost, only busy", put, []reply{busy, failure(http.StatusBadRequest, "TransactionConflictException"),
			busy, done}, none},
		{"nothing lost, busy, conflict", putGuarded, []reply{busy, conflicting(theirs)}, store.ErrConflict},
		{"conflict at once", putAbsent, []reply{conflicting(theirs)}, store.ErrConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, script := scripted(t, c.replies...)
			err := s.Commit(t.Context(), c.write)
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Errorf("Commit = %v, want %v", err, c.want)
			}
			if errors.Is(err, store.ErrUnknown) && (errors.Is(err, store.ErrThrottled) ||
				errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrInvalid)) {
				t.Errorf("%v is unknown, and says that nothing was written", err)
			}
			script.over()
		})
	}
}

// TestLostReplies_Again checks what is sent again: the same write with the same token.
func TestLostReplies_Again(t *testing.T) {
	s, script := scripted(t, silence, got(theirs), done)
	if err := s.Commit(t.Context(), putGuarded); err != nil {
		t.Fatal(err)
	}
	script.over("PutItem", "GetItem", "PutItem")
	if script.bodies[0] != script.bodies[2] {
		t.Errorf("sent again as\n%s, first as\n%s", script.bodies[2], script.bodies[0])
	}
	if !strings.Contains(script.bodies[1], `"ConsistentRead":true`) {
		t.Errorf("read back by a weak read: %s", script.bodies[1])
	}
}

// Reasons for a cancellation, with the items.
const (
	failedOurs   = `{"Code":"ConditionalCheckFailed","Message":"no","Item":` + ours + `}`
	failedTheirs = `{"Code":"ConditionalCheckFailed","Message":"no","Item":` + theirs + `}`
)

// TestTransactions has the reasons of cancelled transactions, alone and together, and
// what is made of them before and after a lost answer.
func TestTransactions(t *testing.T) {
	none, conflict, throttled := reason("None"), reason("TransactionConflict"), reason("ThrottlingError")
	provisioned, tooLarge := reason("ProvisionedThroughputExceeded"),
		`{"Code":"ValidationError","Message":"Item size to update has exceeded the maximum allowed size"}`
	for _, c := range []struct {
		name    string
		replies []reply
		want    error // nil for success
	}{
		{"done", []reply{done}, nil},
		{"conflict of others", []reply{cancelled(none, conflict), done}, nil},
		{"throttled", []reply{cancelled(throttled, none), cancelled(none, provisioned), done}, nil},
		{"conflict and throttled", []reply{cancelled(conflict, throttled), done}, nil},
		{"a condition", []reply{cancelled(none, failedTheirs)}, store.ErrConflict},
		{"a condition counts before a conflict", []reply{cancelled(conflict, failedTheirs)}, store.ErrConflict},
		{"a condition counts before throttling", []reply{cancelled(failedTheirs, throttled)}, store.ErrConflict},
		{"too large counts before throttling", []reply{cancelled(tooLarge, throttled), cancelled(tooLarge, none)},
			store.ErrTooLarge},
		{"too large with the token alone", []reply{cancelled(tooLarge, none), done}, nil},
		{"invalid", []reply{cancelled(none, reason("ValidationError"))}, store.ErrInvalid},
		{"busy, then a condition", []reply{cancelled(conflict, none), busy, cancelled(failedTheirs, none)},
			store.ErrConflict},
		{"lost, sent again", []reply{silence, done}, nil},
		{"lost, an error, in progress, sent again", []reply{silence, broken,
			failure(http.StatusBadRequest, "TransactionInProgressException"), done}, nil},
		{"lost, then a condition", []reply{silence, cancelled(none, failedTheirs)}, store.ErrUnknown},
		{"lost, then a condition, and our token", []reply{silence, cancelled(none, failedOurs)}, nil},
		{"lost, busy, sent again", []reply{silence, busy, cancelled(conflict, none), done}, nil},
		{"lost, then refused", []reply{silence, failure(http.StatusBadRequest, "AccessDeniedException")}, store.ErrUnknown},
		{"the same token, another transaction", []reply{failure(http.StatusBadRequest,
			"IdempotentParameterMismatchException")}, store.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, script := scripted(t, c.replies...)
			err := s.Commit(t.Context(), store.Put("t", store.NewItem(store.Attribute{Name: "id", Value: store.S("b")})),
				updateGuarded)
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Errorf("Commit = %v, want %v", err, c.want)
			}
			script.over()
			if c.name != "too large with the token alone" && !strings.HasPrefix(c.name, "too large counts") {
				if same := slices.Compact(slices.Clone(script.bodies)); len(same) != 1 {
					t.Errorf("%d different requests, want the same one each time", len(same))
				}
			}
		})
	}
}

// TestTransactions_MissingTable: which of the tables is not there DynamoDB does not tell.
func TestTransactions_MissingTable(t *testing.T) {
	server := httptest.NewServer(&script{t: t, replies: []reply{failure(http.StatusBadRequest,
		"ResourceNotFoundException")}})
	defer server.Close()
	s, err := dynamostore.Open(t.Context(), dynamostore.Options{
		Tables: []store.Table{{Name: "t", PartitionKey: "id"},
			{Name: "u", PartitionKey: "id"}}, Client: dynamotest.ClientAt(server.URL), Pace: quick(),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Commit(t.Context(), store.Put("t", itemA()), store.Put("u", itemA()), store.Delete("u", store.Key{PK: "b"}))
	if !errors.Is(err, store.ErrMissing) || !strings.HasSuffix(err.Error(), "DynamoDB has no table t or u") {
		t.Errorf("Commit = %v, want that there is no table t or u", err)
	}
}

// TestLostReplies_Log: one line above Debug for a write whose outcome stays unknown, none
// for one that was found out.
func TestLostReplies_Log(t *testing.T) {
	for _, c := range []struct {
		replies []reply
		debug   int
		warn    int
	}{
		{[]reply{done}, 0, 0}, {[]reply{silence, got(ours)}, 1, 0}, {[]reply{silence, got(theirs), broken, got(ours)}, 2, 0},
		{[]reply{silence, got(theirs), broken, got(theirs), conflicting(theirs)}, 2, 1},
	} {
		script := &script{t: t, replies: c.replies}
		server := httptest.NewServer(script)
		var text strings.Builder
		s, err := dynamostore.Open(t.Context(), dynamostore.Options{
			Tables: []store.Table{{Name: "t", PartitionKey: "id"}}, Client: dynamotest.ClientAt(server.URL), Pace: quick(),
			Logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(t.Context(), putGuarded); (err != nil) != (c.warn > 0) {
			t.Errorf("Commit = %v", err)
		}
		script.over()
		server.Close()
		debug, warn, lines := strings.Count(text.String(), "level=DEBUG"), strings.Count(text.String(),
			"level=WARN"), strings.Count(text.String(), "\n")
		if debug != c.debug || warn != c.warn || lines != c.debug+c.warn ||
			strings.Count(text.String(), "tables=t ") != lines {
			t.Errorf("the log is\n%swant %d lines of Debug and %d of Warn", text.String(), c.debug, c.warn)
		}
	}
}

// TestTransactions_Conflict checks that the failed write and condition are named.
func TestTransactions_Conflict(t *testing.T) {
	s, _ := scripted(t, cancelled(reason("None"), failedTheirs))
	err := s.Commit(t.Context(), store.Put("t", store.NewItem(store.Attribute{Name: "id", Value: store.S("b")})),
		updateGuarded)
	got, ok := errors.AsType[*store.ConflictError](err)
	if want := (store.ConflictError{Write: 1, Table: "t", Key: keyA, Condition: one.String()}); !ok || *got != want {
		t.Errorf("Commit = %v, want %v", err, &want)
	}
}
