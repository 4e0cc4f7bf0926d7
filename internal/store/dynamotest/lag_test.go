package dynamotest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// laggingProxy is one whose indexes show nothing of what is younger than a minute, on a
// clock that the test moves.
func laggingProxy(t *testing.T, rates Rates) (*Proxy, *time.Time) {
	t.Helper()
	now := time.Unix(1_000_000, 0)
	return NewProxy(t, Endpoint(t), Options{Seed: 1, IndexLag: time.Minute, Rates: rates,
		Now: func() time.Time { return now }}), &now
}

func remove(t *testing.T, c *dynamodb.Client, table, p string) {
	t.Helper()
	if _, err := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table,
		Key: attributes{"P": s(p), "S": s("1")}}); err != nil {
		t.Fatal(err)
	}
}

// shows returns the rows of a page as "P Note", and checks that its counts are right.
func shows(t *testing.T, page *dynamodb.QueryOutput) (rows []string) {
	t.Helper()
	for _, item := range page.Items {
		if item["Secret"] != nil {
			t.Error("the index shows what it does not project")
		}
		rows = append(rows, item["P"].(*types.AttributeValueMemberS).Value+" "+
			item["Note"].(*types.AttributeValueMemberS).Value)
	}
	if int(page.Count) != len(rows) {
		t.Errorf("Count is %d of %v", page.Count, rows)
	}
	return rows
}

func query(t *testing.T, c *dynamodb.Client, in *dynamodb.QueryInput) []string {
	t.Helper()
	page, err := c.Query(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return shows(t, page)
}

func TestIndexMissesWhatIsNew(t *testing.T) {
	table, direct := newTable(t)
	proxy, now := laggingProxy(t, Rates{IndexMissing: 1})
	if err := transact(t, proxy.Client(), table, row("a", "1", "d", "x"), row("b", "1", "d", "x")); err != nil {
		t.Fatal(err)
	}
	if got := query(t, proxy.Client(), byDay(table, "d")); len(got) != 0 {
		t.Errorf("at once: %v", got)
	}
	if got := query(t, direct, byDay(table, "d")); len(got) != 2 {
		t.Errorf("past the proxy: %v", got)
	}
	if proxy.Count("Query", IndexMissing) != 2 || proxy.Count("", IndexStale) != 0 {
		t.Errorf("counted %v", proxy.Counts())
	}
	*now = now.Add(time.Minute)
	if got := query(t, proxy.Client(), byDay(table, "d")); len(got) != 2 {
		t.Errorf("a minute later: %v", got)
	}
	// A change of what is there hides nothing: no state in which the row is not there.
	if err := put(t, proxy.Client(), table, row("a", "1", "d", "y")); err != nil {
		t.Fatal(err)
	}
	if got := query(t, proxy.Client(), byDay(table, "d")); len(got) != 2 {
		t.Errorf("after a change: %v", got)
	}
}

func TestIndexShowsWhatIsGone(t *testing.T) {
	table, direct := newTable(t)
	for _, p := range []string{"a", "b", "c"} {
		if err := put(t, direct, table, attributes{"P": s(p), "S": s("1"), "D": s("d"), "Note": s("old")}); err != nil {
			t.Fatal(err)
		}
	}
	proxy, now := laggingProxy(t, Rates{IndexStale: 1})
	client := proxy.Client()
	remove(t, client, table, "a")                                            // gone
	if err := put(t, client, table, row("b", "1", "d", "new")); err != nil { // changed
		t.Fatal(err)
	}
	if err := put(t, client, table, row("c", "1", "other", "new")); err != nil { // moved
		t.Fatal(err)
	}
	got := query(t, client, byDay(table, "d"))
	slices.Sort(got)
	if want := []string{"a old", "b old", "c old"}; !slices.Equal(got, want) {
		t.Errorf("at once: got %v, want %v", got, want)
	}
	if got := query(t, client, byDay(table, "other")); !slices.Equal(got, []string{"c new"}) {
		t.Errorf("where it has moved to: %v", got)
	}
	if got := proxy.Count("Query", IndexStale); got != 3 {
		t.Errorf("counted %d", got)
	}
	*now = now.Add(time.Minute)
	if got := query(t, client, byDay(table, "d")); !slices.Equal(got, []string{"b new"}) {
		t.Errorf("a minute later: %v", got)
	}
}

// TestOldRowsHaveTheirPlace: in their order, on the page that they were on, within the Limit.
func TestOldRowsHaveTheirPlace(t *testing.T) {
	table, direct := newTable(t)
	for i := range 9 {
		if err := put(t, direct, table, row("p", fmt.Sprint(i), "d", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, forward := range []bool{true, false} {
		proxy, _ := laggingProxy(t, Rates{IndexStale: 1, SmallPage: 1})
		for _, gone := range []string{"0", "4", "8"} {
			key := attributes{"P": s("p"), "S": s(gone)}
			if err := put(t, direct, table, row("p", gone, "d", gone)); err != nil {
				t.Fatal(err)
			}
			if _, err := proxy.Client().DeleteItem(t.Context(),
				&dynamodb.DeleteItemInput{TableName: &table, Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		in := byDay(table, "d")
		in.ScanIndexForward = &forward
		in.Limit = aws.Int32(5)
		var got, want []string
		for pages := dynamodb.NewQueryPaginator(proxy.Client(), in); pages.HasMorePages(); {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Items) > 5 {
				t.Errorf("a page of %d, over the Limit", len(page.Items))
			}
			got = append(got, shows(t, page)...)
		}
		for i := range 9 {
			want = append(want, fmt.Sprintf("p %d", i))
		}
		if !forward {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("forward %v: got %v, want %v", forward, got, want)
		}
		// The sort key narrows a query: what is out of it stays out.
		in = byDay(table, "d")
		in.KeyConditionExpression = aws.String("(#d = :d) AND (S BETWEEN :a AND :b)")
		in.ExpressionAttributeValues[":a"], in.ExpressionAttributeValues[":b"] = s("3"), s("5")
		proxy.setRates(Rates{IndexStale: 1})
		if got := query(t, proxy.Client(), in); !slices.Equal(got, []string{"p 3", "p 4", "p 5"}) {
			t.Errorf("narrowed: %v", got)
		}
	}
}

// TestOldRowsAtTheEdges: what is gone is not shown again by the page after the one that
// it ended, is shown once where it shares its sort key with a page's last row, and takes
// no place over the Limit.
func TestOldRowsAtTheEdges(t *testing.T) {
	table, direct := newTable(t)
	for i := range 6 {
		if err := put(t, direct, table, row("p", fmt.Sprint(i), "d", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(t, direct, table, row("q", "2", "d", "twin")); err != nil {
		t.Fatal(err)
	}
	proxy, _ := laggingProxy(t, Rates{IndexStale: 1})
	client := proxy.Client()
	forget := func(p, sort string) {
		t.Helper()
		if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table,
			Key: attributes{"P": s(p), "S": s(sort)}}); err != nil {
			t.Fatal(err)
		}
	}
	forget("q", "2")
	in := byDay(table, "d")
	// The proxy's own small pages leave room for old rows below the client's Limit.
	in.Limit = aws.Int32(5)
	proxy.setRates(Rates{IndexStale: 1, SmallPage: 1})
	var first *dynamodb.QueryOutput
	last := ""
	for tries := 0; last != "2"; tries++ {
		var err error
		if first, err = client.Query(t.Context(), in); err != nil || tries > 100 {
			t.Fatalf("no page ended with row 2 in %d tries: %v", tries, err)
		}
		last = first.LastEvaluatedKey["S"].(*types.AttributeValueMemberS).Value
	}
	in.ExclusiveStartKey = first.LastEvaluatedKey
	proxy.setRates(Rates{IndexStale: 1})
	forget("p", last)
	in.Limit = nil
	rest := query(t, client, in)
	if slices.Contains(rest, "p "+last) {
		t.Errorf("a row that the page before ended with is shown again: %v, then %v", shows(t, first), rest)
	}
	twins := 0
	for _, row := range append(shows(t, first), rest...) {
		if row == "q twin" {
			twins++
		}
	}
	if twins != 1 {
		t.Errorf("the twin is shown %d times: %v, then %v", twins, shows(t, first), rest)
	}
	in = byDay(table, "d")
	in.ExpressionAttributeValues[":to"] = s("9")
	in.KeyConditionExpression = aws.String("#d = :d AND S < :to")
	in.Limit = aws.Int32(4)
	if got := query(t, client, in); len(got) != 4 {
		t.Errorf("a Limit of 4 shows %v", got)
	}
}

// TestEveryRowWasTrueWithinTheLag: whatever is written and asked, each row that is shown
// was the item's state within the last minute, each that is not shown was not there at
// some time within it, and both kinds of fault happen.
func TestEveryRowWasTrueWithinTheLag(t *testing.T) {
	table, _ := newTable(t)
	proxy, now := laggingProxy(t, Rates{IndexMissing: 0.5, IndexStale: 0.5})
	client := proxy.Client()
	draws := rand.New(rand.NewPCG(5, 5))
	type spell struct {
		note  string // "" when it was not in the index under d
		until time.Time
	}
	const never = 1 << 40
	forever := time.Unix(never, 0)
	items := make([][]spell, 6)
	for i := range items {
		items[i] = []spell{{"", forever}}
	}
	for step := range 300 {
		i, p := 0, ""
		i = draws.IntN(len(items))
		p = fmt.Sprint(i)
		items[i][len(items[i])-1].until = *now
		next := spell{fmt.Sprint("n", step), forever}
		switch draws.IntN(3) {
		case 0:
			remove(t, client, table, p)
			next.note = ""
		case 1:
			if err := put(t, client, table, row(p, "1", "elsewhere", next.note)); err != nil {
				t.Fatal(err)
			}
			next.note = ""
		default:
			if err := put(t, client, table, row(p, "1", "d", next.note)); err != nil {
				t.Fatal(err)
			}
		}
		items[i] = append(items[i], next)
		*now = now.Add(time.Duration(draws.IntN(20)) * time.Second)

		shown := map[string]string{}
		page, err := client.Query(t.Context(), byDay(table, "d"))
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			p := item["P"].(*types.AttributeValueMemberS).Value
			if shown[p] != "" {
				t.Fatalf("step %d: %s is shown twice", step, p)
			}
			shown[p] = item["Note"].(*types.AttributeValueMemberS).Value
		}
		for i, spells := range items {
			got := shown[fmt.Sprint(i)]
			if !slices.ContainsFunc(spells, func(s spell) bool { return s.note == got && now.Sub(s.until) < time.Minute }) {
				t.Fatalf("step %d: item %d is shown as %q, at %v; it was %v", step, i, got, now, spells)
			}
		}
	}
	if proxy.Count("", IndexMissing) < 20 || proxy.Count("", IndexStale) < 20 {
		t.Errorf("counted %v", proxy.Counts())
	}
}

func TestKeyConditions(t *testing.T) {
	values := map[string]any{}
	for _, text := range []string{"2", "10", "b", "bc"} {
		values[":"+text] = map[string]any{"S": text}
		values[":n"+text] = map[string]any{"N": text}
	}
	of := item{"H": map[string]any{"S": "b"}, "R": map[string]any{"N": "9"}, "T": map[string]any{"S": "bcd"},
		"B": map[string]any{"B": "/w=="}}
	values[":bytes"] = map[string]any{"B": "AQ=="}
	kinds := map[string]string{"H": "S", "R": "N", "T": "S", "B": "B"}
	for expression, want := range map[string]bool{
		"H = :b":                              true,
		"H = :2":                              false,
		"#h = :b and R < :n10":                true, // by value, not by text
		"#h = :b AND R >= :n10":               false,
		"(#h = :b) AND (begins_with(T, :bc))": true,
		"H = :b AND begins_with ( T , :10 )":  false,
		"H = :b AND R BETWEEN :n2 AND :n10":   true,
		"H = :b AND R BETWEEN :n10 AND :n10":  false,
		"H=:b AND R<=:n2":                     false,
		"H = :b AND B > :bytes":               true,
		"H = :b AND Absent > :bytes":          false,
	} {
		c, err := newConditions(map[string]any{"KeyConditionExpression": expression,
			"ExpressionAttributeValues": values, "ExpressionAttributeNames": map[string]any{"#h": "H"}})
		if err != nil {
			t.Error(err)
			continue
		}
		if got := c.hold(of, kinds); got != want {
			t.Errorf("%s: got %v", expression, got)
		}
	}
	for _, wrong := range []string{"", "H", "H = ", "H = :b OR R = :2", "H = :b AND", "(H = :b", "#x = :b", "H = :x"} {
		if _, err := newConditions(map[string]any{"KeyConditionExpression": wrong,
			"ExpressionAttributeValues": values}); err == nil {
			t.Errorf("%q is understood", wrong)
		}
	}
}
