package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// An otherTool is another tool, which writes to the row of a subscription at every point of its
// charge: before each request to the store about it, and before and after each request to the
// processor.
type otherTool struct {
	store.Store
	processor.Charger
	t      *testing.T
	client *dynamodb.Client
	table  string

	mu   sync.Mutex
	rows map[string]*meddled // by account; guarded by mu
	refs map[string]string   // account by intent; guarded by mu
	all  int                 // writes; guarded by mu
}

type meddled struct {
	what      string // attribute that is written once
	value     string
	at        int  // point of that write
	again     bool // the date is moved once more at each later point
	points    int  // so far
	confirmed bool
	tags      []string
	when      string // point at which it was written; "" not
	late      bool   // after the last look before CONFIRM
	bound     bool   // a commit has landed
	frozen    bool   // it was written after BIND
	quiet     bool
}

const meddledSK = "SUB#s1#SKU#gold"

// point is one point of the charge of an account.
func (m *otherTool) point(account, name string) {
	m.mu.Lock()
	r := m.rows[account]
	if r == nil || r.quiet {
		m.mu.Unlock()
		return
	}
	tag := fmt.Sprintf("%s-%d", name, r.points)
	r.tags = append(r.tags, tag)
	set, values := "SET Notes = :n ADD Tags :t", map[string]types.AttributeValue{
		":n": &types.AttributeValueMemberS{Value: tag}, ":t": &types.AttributeValueMemberSS{Value: []string{tag}}}
	if name == "committed" && r.confirmed && r.at == r.points {
		r.at++ // the charge is over
	}
	if again := r.again && r.when != "" && !(name == "committed" && r.confirmed); again {
		r.value = date("2024-03-05").AddDays(r.points).String()
		set = "SET Notes = :n, " + r.what + " = :v ADD Tags :t"
		values[":v"] = &types.AttributeValueMemberS{Value: r.value}
	} else if r.at == r.points {
		r.when, r.late, r.frozen = name, r.confirmed || name == "confirm", r.bound || name == "committed"
		set = "SET Notes = :n, " + r.what + " = :v ADD Tags :t"
		values[":v"] = &types.AttributeValueMemberS{Value: r.value}
		if r.value == "" {
			set = "SET Notes = :n REMOVE " + r.what + " ADD Tags :t"
			delete(values, ":v")
		}
	}
	r.points++
	r.bound = r.bound || name == "committed"
	m.all++
	r.confirmed = r.confirmed || name == "confirm"
	m.mu.Unlock()
	for {
		_, err := m.client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{TableName: &m.table,
			Key: map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "ACC#" + account},
				"SK": &types.AttributeValueMemberS{Value: meddledSK}},
			UpdateExpression: &set, ExpressionAttributeValues: values})
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "TransactionConflict") {
			m.t.Error(err)
			return
		}
	}
}

func (m *otherTool) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	if key.SK == meddledSK {
		m.point(billing.AccountOf(key.PK), "get")
	}
	return m.Store.Get(ctx, table, key)
}

func (m *otherTool) Commit(ctx context.Context, writes ...store.Write) error {
	for _, w := range writes {
		if w.Item.Str(schema.SK) == meddledSK {
			m.point(billing.AccountOf(w.Item.Str(schema.PK)), "commit")
		}
	}
	err := m.Store.Commit(ctx, writes...)
	for _, w := range writes {
		if w.Item.Str(schema.SK) == meddledSK {
			m.point(billing.AccountOf(w.Item.Str(schema.PK)), "committed")
		}
	}
	return err
}

func (m *otherTool) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	m.point(r.Tag.Account, "open")
	in, err := m.Charger.Open(ctx, r)
	m.mu.Lock()
	m.refs[in.Ref] = r.Tag.Account
	m.mu.Unlock()
	m.point(r.Tag.Account, "opened")
	return in, err
}

func (m *otherTool) account(ref string) string { m.mu.Lock(); defer m.mu.Unlock(); return m.refs[ref] }

func (m *otherTool) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	m.point(m.account(r.Ref), "confirm")
	in, err := m.Charger.Confirm(ctx, r)
	m.point(m.account(r.Ref), "confirmed")
	return in, err
}

func (m *otherTool) Lookup(ctx context.Context, ref string) (processor.Intent, error) {
	m.point(m.account(ref), "look up")
	return m.Charger.Lookup(ctx, ref)
}

// TestOtherHands_DuringCharges: what another tool writes at any point of a charge stays. A date
// moved before the last look before CONFIRM is not charged, and parks; after it the period is
// settled and named.
func TestOtherHands_DuringCharges(t *testing.T) {
	now := time.Date(2024, 1, 31, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	tables := schema.New(dynamotest.Prefix(t))
	used := []store.Table{tables.RecurringPayments, tables.Outbox}
	client := dynamotest.Client(t)
	_, err := dynamotable.Create(t.Context(), client, used, dynamotable.Settings{}, nil)
	mustNot(t, err)
	db, err := dynamostore.Open(t.Context(), dynamostore.Options{Tables: used, Now: clock, Client: client})
	mustNot(t, err)
	defer db.Close()
	box, err := sandbox.Open("", sandbox.Options{Now: clock})
	mustNot(t, err)
	m := &otherTool{Store: db, Charger: box, t: t, client: client, table: tables.RecurringPayments.Name,
		rows: map[string]*meddled{}, refs: map[string]string{}}
	e, err := engine.Open(t.Context(), engine.Options{Store: m, Tables: tables, Processor: struct{ processor.Charger }{m},
		Now: clock, Config: engine.DefaultConfig(), Lease: time.Minute})
	mustNot(t, err)
	kinds := []struct{ what, value string }{{"NextPaymentDate", "2024-02-29"}, {"NextPaymentDate", "2024-03-05"},
		{"NextPaymentDate", "again"}, {"NextPaymentDate", ""}, {"PaymentAmount", "6.00"}, {"LastPaymentDate", "2024-01-31T08:00:00.000Z"}, {"Email", "new@example.com"}}
	n := soaktest.Cases(t, 35, 150, 1200)
	rows := map[string]*meddled{}
	for i := range n {
		account := fmt.Sprintf("a%04d", i)
		_, err := e.CreateSubscription(t.Context(), one("2024-01-31", func(n *billing.NewSubscription) {
			n.Account, n.Email = account, account+"@example.com"
			if i%5 == 3 {
				n.Method = "pm_card_visa_chargeDeclined"
			}
		}))
		mustNot(t, err)
		k := kinds[i%len(kinds)]
		rows[account] = &meddled{what: k.what, value: k.value, at: i / len(kinds) * 5 % 12}
		if k.value == "again" {
			rows[account].value, rows[account].again = "2024-03-05", true
		}
	}
	m.mu.Lock()
	m.rows = rows
	m.mu.Unlock()
	named := map[string]bool{}
	report, err := job.Payments(t.Context(), e, job.Options{Workers: 8, Each: func(r engine.Result) {
		if r.Reason != "" {
			named[r.Account] = true
		}
	}})
	mustNot(t, err)
	for _, r := range rows {
		r.quiet = true
	}
	doubts := map[string]bool{}
	for d, err := range e.Doubts(t.Context()) {
		mustNot(t, err)
		doubts[d.Account] = true
	}
	counts := map[string]int{}
	for account, r := range rows {
		name := billing.Name{Account: account, ID: "s1", SKU: "gold"}
		it, err := db.Get(t.Context(), m.table, name.Key())
		mustNot(t, err)
		s, err := billing.DecodeSubscription(it)
		mustNot(t, err)
		for _, tag := range r.tags {
			if !slices.ContainsFunc(it.Get("Tags").Elements(), func(v store.Value) bool { return v.Str() == tag }) {
				t.Errorf("%s: the write at %q is lost: %v", account, tag, it.Get("Tags").Elements())
			}
		}
		if got := it.Str("Notes"); got != r.tags[len(r.tags)-1] {
			t.Errorf("%s: Notes %q, and the last write was %v", account, got, r.tags)
		}
		paid := s.Period == 1
		moved := r.what == "NextPaymentDate" && r.when != ""
		what := r.what + " " + strconv.FormatBool(r.late)
		switch {
		case moved && !r.late && (paid || s.Status != billing.ParkedState || !named[account]):
			t.Errorf("%s: moved at %q, point %d, and %s, paid %v, named %v", account, r.when, r.at, s.Status, paid, named[account])
		case moved && r.late && paid && (!doubts[account] || !named[account] || it.Str(schema.NextPaymentDate) != r.value):
			t.Errorf("%s: moved at %q, point %d: doubt %v, named %v, on %s", account, r.when, r.at, doubts[account], named[account],
				it.Str(schema.NextPaymentDate))
		case moved && !paid && !named[account]:
			t.Errorf("%s: moved at %q, and not named", account, r.when)
		case !moved && doubts[account]:
			t.Errorf("%s: %s is no move", account, r.what)
		case r.when != "" && !moved && r.what != "LastPaymentDate" && it.Str(r.what) != r.value:
			t.Errorf("%s: %s, written at %q, is lost: %s", account, r.what, r.when, it.Str(r.what))
		}
		for rec, err := range e.GetReceiptsByAccount(t.Context(), account) {
			mustNot(t, err)
			want := usd(1299)
			if r.what == "PaymentAmount" && r.when != "" && !r.frozen {
				want = usd(600)
			}
			if rec.Amount != want {
				t.Errorf("%s: %s written at %q, and %s charged", account, r.what, r.when, rec.Amount)
			}
		}
		if r.when != "" {
			counts[what]++
		}
	}
	audit, err := e.Verify(t.Context())
	mustNot(t, err)
	for _, p := range audit.Problems {
		if p.Kind == "perhaps paid twice" {
			delete(doubts, p.Account)
		}
	}
	if len(doubts) > 0 || len(counts) != 8 || !report.NeedsPerson() {
		t.Errorf("not named by verify: %v; cases %v", doubts, counts)
	}
	t.Logf("%d writes of another tool; %v", m.all, counts)
}
