package book

import (
	"reflect"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
)

const (
	sampleHeader = "PK,SK,Email,PaymentDay,PaymentAmount,NextPaymentDate,SKU,PaymentDetails"
	goodSample   = `ACC#1,SUB#s1#SKU#k,a@b.c,28,12.99,2023-06-28,k,"{""PaymentMethod"":{""S"":""pm_1""},""default-address"":{""S"":""x, y""}}"`
)

func TestSamples_Rows(t *testing.T) {
	records, bad := readAll(t, Samples, byteOrderMark+sampleHeader+",ProcessedDate,ProcessedAmount,TTL,Version\r\n"+
		goodSample+",,,,\r\n\r\n"+
		"ACC#1,REC#2023-05-28T14:15:39.24#SKU#k,a@b.c,,,,k,,2023-05-28T14:15:39.247Z,12.99,1700318200,\r\n"+
		"ACC#1,ACC,a@b.c,,,,,,,,,1\r\n"+
		goodSample+",,,,\r\n")
	rejects(t, bad)
	want := []Record{
		{Line: 2, Subscription: &billing.NewSubscription{Account: "1", Email: "a@b.c", ID: "s1", SKU: "k",
			Amount:     amountOf(t, "12.99", "USD"),
			PaymentDay: 28, Method: "pm_1", Address: "x, y", Interval: billing.Monthly, ReminderDays: 7,
			NextPayment: dayOf(t, "2023-06-28")}},
		{Line: 4, Receipt: &billing.Receipt{Name: billing.Name{Account: "1", SKU: "k"}, Email: "a@b.c",
			Processed: at(t, "2023-05-28T14:15:39.247Z"), Amount: amountOf(t, "12.99", "USD"), Expires: at(t,
				"2023-11-18T14:36:40Z")}},
		{Line: 5, Account: &billing.Account{ID: "1", Email: "a@b.c"}},
	}
	if !reflect.DeepEqual(records, want) {
		t.Errorf("got %+v, want %+v", records, want)
	}
}

func TestSamples_BadRows(t *testing.T) {
	row := func(old, new string) string {
		t.Helper()
		if !strings.Contains(goodSample, old) {
			t.Fatalf("the good row has no %s", old)
		}
		return strings.Replace(goodSample, old, new, 1)
	}
	for _, tt := range []struct{ row, want string }{
		{row("28,12.99", "28,12.999"), "2 PaymentAmount: …at most 2 decimals"},
		{row("ACC#1", ""), "2 : must be an item with PK and SK"},
		{row("ACC#1", "STORE#1"), "2 PK: must be ACC#"},
		{row("SUB#s1#SKU#k", "SUB#s1"), "2 SK: must be SUB#"},
		{row("a@b.c", "4242424242424242"), "2 Email: looks like a card number"},
		{row(`"{""PaymentMethod`, `"{""cvv"":{""S"":""1""},""PaymentMethod`), "2 PaymentDetails.cvv: is not an attribute"},
		{row(`{""S"":""pm_1""}`, `""pm_1""`), "2 PaymentDetails: must be a map in DynamoDB JSON"},
		{goodSample + ",more", "2 : has 9 fields, but the header has 8"},
		{row("a@b.c", `a"b.c`), `2 Email: a " at byte`},
	} {
		_, got := readAll(t, Samples, sampleHeader+"\n"+tt.row+"\n")
		rejects(t, got, tt.want)
	}
	_, got := readAll(t, Samples, sampleHeader+",Status,Colour\n"+goodSample+",canceled,red\n")
	rejects(t, got, "2 Status: must be active", "2 Colour: is not an attribute")
	_, got = readAll(t, Samples, sampleHeader+"\n"+goodSample+"\n"+row("12.99", "13.99")+"\n")
	rejects(t, got, "3 SK: …on line 2")
}

// TestSamples_NeedAPaymentMethod: where neither the item nor the caller names one.
func TestSamples_NeedAPaymentMethod(t *testing.T) {
	text := strings.Replace(goodSample, `""PaymentMethod"":{""S"":""pm_1""},`, "", 1)
	yields := 0
	for _, bad := range Read(strings.NewReader(sampleHeader+"\n"+text+"\n"), Samples, Options{}) {
		if yields++; bad == nil || bad.Column != "--payment-method" {
			t.Errorf("got %+v", bad)
		}
	}
	if yields != 1 {
		t.Errorf("%d yields, want 1", yields)
	}
}

func TestSamples_Header(t *testing.T) {
	for text, want := range map[string]string{
		"PK,SK,\n":                 "!1 : column 3 of the header has no name",
		"PK,SK,PK\n":               "!1 PK: appears twice",
		"PK,Email\n":               "!1 SK: is missing",
		"PK,SK,4242424242424242\n": "!1 ************4242: looks like a card number",
		"PK,SK,\"Em\"ail\"\n":      "!1 : a quoted field does not end correctly",
		"PK,SK\n\"" + strings.Repeat("x\n", 1<<20): "!2 : a row is longer",
	} {
		_, got := readAll(t, Samples, text)
		rejects(t, got, want)
	}
}

// TestSamples_CardsAreNotShown: neither a card number nor what a default-card holds.
func TestSamples_CardsAreNotShown(t *testing.T) {
	card := strings.Replace(goodSample, `""PaymentMethod""`,
		`""default-card"":{""S"":""1234123412341234""},""PaymentMethod""`, 1)
	records, got := readAll(t, Samples, sampleHeader+"\n"+card+"\n")
	rejects(t, got)
	if len(records) != 1 || records[0].Subscription.Method != "pm_1" {
		t.Errorf("records %+v", records)
	}
	text := sampleHeader + "\n" + strings.Replace(card, "12.99", "x", 1) + "\n"
	if shown := rejectedFile(t, Samples, text); strings.Contains(shown, "1234") ||
		strings.Contains(shown, "default-card") || !strings.Contains(shown, `"PK":"ACC#1"`) {
		t.Errorf("FILE.rejected: %s", shown)
	}
}

// TestStoresOwnItemsArePassedOver holds for both forms: what a store keeps about itself is
// nothing to import, and the tracking tables are no book.
func TestStoresOwnItemsArePassedOver(t *testing.T) {
	for _, key := range [][2]string{{"META", "META"}, {"RUN#payments", "FLOOR"}, {"RUN#reminders", "2023-05-28#x"},
		{"LEASE#payments", "2023-05-28"}, {"SETTINGS", "NOW"}, {"SETTINGS", "CHANGE#000000002"},
		{"OUT#00", "2023#x"}, {"OUT#DEAD", "2023#x"}, {"ACT#00", "2023#x"}, {"INB#DEAD", "2023#x"},
		{"ACCOUNT", "acct_1"}, {"CUSTOMER", "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"}, {"QUARANTINE", "acct_1#evt_1"},
		{"OWN", "OWN"}, {"ACC#1", "PER#1#SKU#2#000003"}} {
		item := `{"PK":{"S":"` + key[0] + `"},"SK":{"S":"` + key[1] +
			`"},"Completed":{"BOOL":true},"Counts":{"M":{"due":{"N":"1"}}}}`
		records, got := readAll(t, Workbench, modelOf(item))
		rejects(t, got)
		if len(records) != 0 {
			t.Errorf("%v: %+v", key, records)
		}
		records, got = readAll(t, Samples, "PK,SK,Completed\n"+key[0]+","+key[1]+",true\n")
		rejects(t, got)
		if len(records) != 0 {
			t.Errorf("%v: %+v", key, records)
		}
	}
	const events = `{"DataModel":[{"TableName":"e","KeyAttributes":{"PartitionKey":{"AttributeName":"id","AttributeType":"S"}},"TableData":[{"id":{"S":"evt_1"}}]},` +
		`{"TableName":"p","KeyAttributes":{"PartitionKey":{"AttributeName":"stripe_account"},"SortKey":{"AttributeName":"id"}},"TableFacets":[{"TableData":[{"id":{"S":"1"}}]}]},` +
		`{"TableName":"r","KeyAttributes":{"PartitionKey":{"AttributeName":"PK"},"SortKey":{"AttributeName":"SK"}},"TableData":[` + goodItem + `]}]}`
	records, got := readAll(t, Workbench, events)
	rejects(t, got)
	if len(records) != 1 {
		t.Errorf("%d records, want the one of the table after them", len(records))
	}
	for _, keys := range []string{`7`, `{"PartitionKey":"id"}`,
		`{"PartitionKey":{"AttributeName":"pk"},"SortKey":{"AttributeName":"sk"}}`} {
		_, got := readAll(t, Workbench, `{"DataModel":[{"KeyAttributes":`+keys+`,"TableData":[{"id":{"S":"evt_1"}}]}]}`)
		rejects(t, got, "1 : must be an item with PK and SK")
	}
}
