package book

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
)

func seedModel(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("testdata/RecurringPaymentsSchema.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestWorkbench_Seed(t *testing.T) {
	records, got := readAll(t, Workbench, seedModel(t))
	rejects(t, got)
	want := []Record{
		{Line: 38, Subscription: &billing.NewSubscription{Account: "123", Email: "s@s.com", ID: "123", SKU: "999",
			Amount: amountOf(t, "12.99", "USD"), PaymentDay: 28, Method: "pm_card_visa", Address: "12 Bridge Street, " +
				"Birmingham, B12 7ST",
			Interval: billing.Monthly, ReminderDays: 7,
			NextPayment: dayOf(t, "2023-06-28"), NextReminder: dayOf(t, "2023-06-21"),
			Created: at(t, "2023-05-18T09:41:25.856Z"), LastPayment: at(t, "2023-05-18T14:15:39.247Z"), LastReminder: at(t,
				"2023-05-21T14:15:39.247Z")}},
		{Line: 68, Receipt: &billing.Receipt{Name: billing.Name{Account: "123", SKU: "999"}, Email: "s@s.com",
			Processed: at(t, "2023-05-28T14:15:39.247Z"), Amount: amountOf(t, "12.99", "USD"), Expires: time.Unix(1700318200,
				0).UTC()}},
	}
	if !reflect.DeepEqual(records, want) {
		t.Errorf("got %+v\n%+v\n%+v", records, records[0].Subscription, records[1].Receipt)
	}
}

// modelOf is a model of one facet, whose items stand on lines 2, 3 and so on.
func modelOf(items ...string) string {
	return `{"ModelName":"x","DataModel":[{"TableName":"any","GlobalSecondaryIndexes":[{"a":[{}]}],"TableFacets":[{"FacetName":"f","TableData":[` + "\n" +
		strings.Join(items, ",\n") + "\n" + `]}],"TableData":[]}]}`
}

const goodItem = `{"PK":{"S":"ACC#1"},"SK":{"S":"SUB#s1#SKU#k"},"Email":{"S":"a@b.c"},"PaymentDay":{"S":"28"},"PaymentAmount":{"S":"12.99"},` +
	`"NextPaymentDate":{"S":"2023-06-28"},"SKU":{"S":"k"},"PaymentDetails":{"M":{"default-card":{"S":"4242424242424242"},"default-address":{"S":"x"}}}}`

const goodReceipt = `{"PK":{"S":"ACC#1"},"SK":{"S":"REC#2023-05-28T14:15:39.247Z#SKU#k"},"Email":{"S":"a@b.c"},"SKU":{"S":"k"},` +
	`"ProcessedDate":{"S":"2023-05-28T14:15:39.247Z"},"ProcessedAmount":{"S":"12.99"},"TTL":{"N":"1700318200"}}`

func TestWorkbench_Subscriptions(t *testing.T) {
	edit := func(old, new string) string {
		t.Helper()
		if !strings.Contains(goodItem, old) {
			t.Fatalf("the good item has no %s", old)
		}
		return strings.Replace(goodItem, old, new, 1)
	}
	for _, tt := range []struct {
		item string
		want []string
	}{
		{goodItem, nil},
		{edit("SUB#s1#SKU#k", "SUB#s1#SKUk"), nil},
		{edit(`{"S":"28"}`, `{"N":"28"}`), nil},
		{edit(`{"S":"12.99"}`, `{"N":12.99}`), nil},
		{edit(`"default-card":{"S":"4242424242424242"}`, `"default-card":{"L":[{"N":"4242424242424242"}]}`), nil},
		{edit(`"SKU":{"S":"k"}`, `"default-card":{"S":"4242424242424242"}`), nil},
		{edit(`"SKU":{"S":"k"}`,
			`"Status":{"S":"active"},"TimeZone":{"S":"Asia/Tokyo"},"Interval":{"S":"month"},"ReminderDays":{"N":"0"},"Installments":{"N":"3"}`), nil},
		{edit(`"SKU":{"S":"k"}`, `"CreatedDate":{"S":"2023-05-18"}`), nil},
		{edit(`"SKU":{"S":"k"}`, `"SKU":{"S":"other"}`), []string{"2 SKU: differs from the SKU in SK"}},
		{edit(`"SKU":{"S":"k"}`, `"Status":{"S":"canceled"}`), []string{"2 Status: must be active"}},
		{edit(`"SKU":{"S":"k"}`, `"Colour":{"S":"4242424242424242"}`), []string{"2 Colour: is not an attribute"}},
		{edit(`"default-address"`, `"cvv"`), []string{"2 PaymentDetails.cvv: is not an attribute"}},
		{edit(`"default-address":{"S":"x"}`, `"default-address":{"S":"4242 4242 4242 4242"}`),
			[]string{"2 PaymentDetails.default-address: looks like a card number"}},
		{edit(`"default-address":{"S":"x"}`, `"default-address":{"BOOL":true}`),
			[]string{"2 PaymentDetails.default-address: must be a string"}},
		{edit(`"default-address":{"S":"x"}`, `"Currency":{"S":"JPY"}`), []string{"2 PaymentAmount: …without decimals"}},
		{edit(`"default-address":{"S":"x"}`, `"Currency":{"S":"what"}`), []string{"2 PaymentDetails.Currency: …ISO"}},
		{edit(`"NextPaymentDate":{"S":"2023-06-28"},`, ""), []string{"2 NextPaymentDate: is missing"}},
		{edit(`2023-06-28`, `2023-06-27`), []string{"2 NextPaymentDate: …2023-06-28"}},
		{edit(`"SKU":{"S":"k"}`, `"CreatedDate":{"S":"May"},"NextReminderDate":{"S":"x"}`),
			[]string{"2 CreatedDate: must be a time", "2 NextReminderDate: "}},
		{edit(`"SKU":{"S":"k"}`, `"CreatedDate":{"S":"4242424242424242"}`),
			[]string{"2 CreatedDate: looks like a card number"}},
		{edit("SUB#s1#SKU#k", "SUB#s1"), []string{"2 SK: must be SUB#"}},
		{edit("SUB#s1#SKU#k", "THING#1"), []string{"2 SK: is not an item that import knows"}},
		{edit("ACC#1", "STORE#1"), []string{"2 PK: must be ACC#"}},
		{edit("ACC#1", "ACC#4242424242424242"), []string{"2 PK: looks like a card number"}},
		{edit(`"PK":{"S":"ACC#1"},`, ""), []string{"2 : must be an item with PK and SK"}},
		{edit(`"Email":{"S":"a@b.c"},`, ""), []string{"2 Email: is missing"}},
		{`{"PK":"ACC#1"}`, []string{"2 : must be an item in DynamoDB JSON"}},
		{`"text"`, []string{"2 : must be an item in DynamoDB JSON"}},
	} {
		records, got := readAll(t, Workbench, modelOf(tt.item))
		if len(tt.want) == 0 && len(records) != 1 {
			t.Errorf("%s: %d records", tt.item, len(records))
		}
		rejects(t, got, tt.want...)
	}
}

func TestWorkbench_Options(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{}, "--payment-method: is missing; set the processor's token, such as pm_card_visa"},
		{Options{PaymentMethod: "pm", Currency: "XXQ"},
			`--currency: currency "XXQ" is not an active ISO 4217 code; use an active one, such as EUR`},
	} {
		for _, bad := range Read(strings.NewReader(modelOf(goodItem)), Workbench, tt.o) {
			if bad == nil || bad.Column+": "+bad.Reason != tt.want {
				t.Errorf("got %+v, want %s", bad, tt.want)
			}
		}
	}
	for r := range Read(strings.NewReader(modelOf(goodItem)), Workbench, Options{PaymentMethod: "pm", Currency: "KWD"}) {
		if s := r.Subscription; s.Method != "pm" || s.Amount != amountOf(t, "12.99", "KWD") {
			t.Errorf("got %+v", s)
		}
	}
}

func TestWorkbench_ReceiptsAndAccounts(t *testing.T) {
	edit := func(old, new string) string { return strings.Replace(goodReceipt, old, new, 1) }
	account := `{"PK":{"S":"ACC#1"},"SK":{"S":"ACC"},"Email":{"S":"a@b.c"},"TimeZone":{"S":"Asia/Tokyo"},"Version":{"N":"3"}}`
	for _, tt := range []struct {
		item string
		want []string
	}{
		{goodReceipt, nil},
		{edit("#SKU#k", "#SKUk"), nil},
		{edit(`"TTL":{"N":"1700318200"}`, `"TTL":{"S":"1700318200"}`), nil},
		{edit(`"SKU":{"S":"k"}`, `"Subscription":{"S":"s1"},"Currency":{"S":"EUR"}`), nil},
		{edit(`"ProcessedDate":{"S":"2023-05-28T14:15:39.247Z"},`, ""), []string{"2 ProcessedDate: is missing"}},
		{edit(`"ProcessedDate":{"S":"2023-05-28T14:15:39.247Z"}`, `"ProcessedDate":{"S":"x"}`),
			[]string{"2 ProcessedDate: must be a time"}},
		{edit(`12.99`, `x`), []string{"2 ProcessedAmount: "}},
		{edit(`12.99`, `-1`), []string{"2 ProcessedAmount: must not be negative"}},
		{edit(`"ProcessedAmount":{"S":"12.99"},`, ``), []string{"2 ProcessedAmount: is missing"}},
		{edit(`1700318200`, `1700318200000`), []string{"2 TTL: must be seconds"}},
		{edit(`ACC#1`, `ACC#`), []string{"2 PK: is missing"}},
		{edit(`REC#2023-05-28T14:15:39.247Z`, `REC#4242424242424242`), []string{"2 SK: looks like a card number"}},
		{edit(`"SKU":{"S":"k"}`, `"Charge":{"S":"pi_1"}`), []string{"2 Charge: is not an attribute"}},
		{account, nil},
		{strings.Replace(account, "Asia/Tokyo", "Mars", 1), []string{"2 TimeZone: "}},
		{strings.Replace(account, "a@b.c", "a", 1), []string{"2 Email: must be an address"}},
	} {
		records, got := readAll(t, Workbench, modelOf(tt.item))
		rejects(t, got, tt.want...)
		if len(tt.want) == 0 && (len(records) != 1 || records[0].Subscription != nil) {
			t.Errorf("%s: got %+v", tt.item, records)
		}
	}
	records, _ := readAll(t, Workbench, modelOf(account))
	if want := (billing.Account{ID: "1", Email: "a@b.c", TimeZone: "Asia/Tokyo"}); !reflect.DeepEqual(*records[0].Account, want) {
		t.Errorf("got %+v, want %+v", *records[0].Account, want)
	}
}

func TestWorkbench_ItemsAgainstEachOther(t *testing.T) {
	reordered := strings.Replace(strings.TrimSuffix(goodItem, "}"), `{"PK":{"S":"ACC#1"},`, "{", 1) +
		`,"PK":{"S":"ACC#1"}}`
	records, got := readAll(t, Workbench, modelOf(goodItem, goodItem, reordered,
		strings.Replace(goodItem, "4242424242424242", "0", 1)))
	rejects(t, got)
	if len(records) != 1 {
		t.Errorf("an item of several facets was yielded %d times", len(records))
	}
	_, got = readAll(t, Workbench, modelOf(goodItem,
		strings.Replace(goodItem, "12.99", "13.99", 1), strings.ReplaceAll(goodItem, `k"`,
			`k2"`), strings.Replace(strings.ReplaceAll(goodItem, "s1", "s2"), "a@b.c", "x@b.c", 1)))
	rejects(t, got, "3 SK: …on line 2", "4 SK: …on line 2", "5 Email: the account has a different address on line 2")
}

func TestWorkbench_BrokenModels(t *testing.T) {
	for text, want := range map[string]string{
		`{"DataModel":[`:                      "!1 : not a NoSQL Workbench model: unexpected EOF",
		"{\"a\":1,\n\"DataModel\":[{]}":       "!2 : not a NoSQL Workbench model: invalid character",
		`{"DataModel":7}`:                     "!1 : not a NoSQL Workbench model: a JSON array",
		`{"DataModel":[7]}`:                   "!1 : not a NoSQL Workbench model: a JSON object",
		`{"ModelName":"x"}`:                   "!1 : not a NoSQL Workbench model: it has no DataModel",
		`[]`:                                  "!1 : not a NoSQL Workbench model: a JSON object",
		modelOf(goodItem) + "x":               "!3 : not a NoSQL Workbench model: …",
		modelOf(goodItem) + "{}":              "!3 : not a NoSQL Workbench model: the file has more text",
		modelOf(goodItem + goodItem):          "!2 : not a NoSQL Workbench model: …",
		`{"x":"` + strings.Repeat("x", 3<<20): "!1 : …a row is longer than 1 MiB",
	} {
		_, got := readAll(t, Workbench, text)
		rejects(t, got, want)
	}
}
