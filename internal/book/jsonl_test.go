package book

import (
	"reflect"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
)

const goodLine = `{"account":"1","email":"a@b.c","subscription":"s1","sku":"k","amount":"12.99","currency":"USD","payment_day":28,"payment_method":"pm"}`

// with is the good line with one more member in front.
func with(member string) string { return "{" + member + "," + goodLine[1:] }

// set is the good line with a member's value replaced.
func set(name, value string) string {
	var b strings.Builder
	for n, v := range members(goodLine) {
		if n == name {
			v = value
		}
		b.WriteString(`,"` + n + `":` + v)
	}
	return "{" + b.String()[1:] + "}"
}

func TestJSONLines_Row(t *testing.T) {
	want := &billing.NewSubscription{Account: "1", Email: "a@b.c", ID: "s1", SKU: "k", Amount: amountOf(t, "12.99", "USD"),
		PaymentDay: 28, Method: "pm", Interval: billing.Monthly, ReminderDays: 7}
	for _, text := range []string{
		goodLine, byteOrderMark + goodLine + "\r\n\r\n", set("amount", "12.99"), set("payment_day", `"28"`), set("account",
			"1"), set("account", `"\u0031"`),
		with(`"address":null`), with(`"start_date":""`), with(`"rejected_line":1,"rejected_reason":"x"`),
		strings.NewReplacer(`:`, " :\t", `,`, " , ", "{", "{ ", "}", " }").Replace(goodLine),
	} {
		records, got := readAll(t, JSONLines, text)
		rejects(t, got)
		if len(records) != 1 || !reflect.DeepEqual(records[0].Subscription, want) {
			t.Errorf("%s: got %+v", text, records)
		}
	}
	records, got := readAll(t, JSONLines,
		with(`"reminder_days":0,"installments":3,"address":"a \"b\" \\ {c},[d]","interval":"yearly"`))
	rejects(t, got)
	if s := records[0].Subscription; s.ReminderDays != 0 || s.Installments != 3 || s.Address != `a "b" \ {c},[d]` {
		t.Errorf("got %+v", s)
	}
}

func TestJSONLines_BadLines(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{`{"account":"1"`, []string{"1 : must be one JSON object per line: unexpected end"}},
		{goodLine + " x", []string{"1 : must be one JSON object per line: invalid character 'x'"}},
		{goodLine + goodLine, []string{"1 : must be one JSON object per line: invalid character '{'"}},
		{`"text"`, []string{"1 : must be one JSON object per line, not another value"}},
		{"\n" + `[` + goodLine + `]`, []string{"2 : must be one JSON object per line, not another value"}},
		{`[` + goodLine + `]`, []string{"!1 : the file is a JSON array"}},
		{`{}`, []string{"1 account: ", "1 email: ", "1 subscription: ", "1 sku: ", "1 amount: ", "1 currency: ",
			"1 payment_day: "}},
		{with(`"colour":"red"`), []string{"1 colour: is an unknown column"}},
		{with(`"Account":"1"`), []string{"1 account: appears twice"}},
		{with(`"account":"2"`), []string{"1 account: appears twice"}},
		{with(`"acc\u006funt":"2"`), []string{"1 account: appears twice"}},
		{with(`"address":{"a":["}"]}`), []string{"1 address: must be a string or a number"}},
		{with(`"address":[1,2]`), []string{"1 address: must be a string or a number"}},
		{with(`"address":true`), []string{"1 address: must be a string or a number"}},
		{set("amount", "1.299e1"), []string{"1 amount: "}},
		{set("amount", "-12.99"), []string{"1 amount: must be more"}},
		{set("amount", "12.990"), []string{"1 amount: …at most 2 decimals"}},
		{set("payment_day", "28.0"), []string{"1 payment_day: must be a whole"}},
		{set("account", `"\ud800"`), []string{"1 account: "}},
		{set("account", "null"), []string{"1 account: is missing"}},
		{set("email", `{"a":1}`), []string{"1 email: must be a string"}},
		{set("account", `4242424242424242`), []string{"1 account: looks like a card number (************4242)"}},
		{set("account", `"\u0034242424242424242"`), []string{"1 account: looks like a card number (************4242)"}},
		{with(`"colour":"4242 4242 4242 4242"`), []string{"1 colour: looks like a card number"}},
		{with(`"４２４２_４２４２_４２４２_４２４２":1`), []string{"1 ****_****_****_４２４２: looks like a card number"}},
		{with(`"colour":{"4242/4242/4242/4242":1}`), []string{"1 colour: looks like a card number"}},
		{with(`"colour":["\u0034\u0032424242\u0020\u002d42424242\u002d4242"]`), []string{"1 colour: is an unknown column"}},
		{with(`"colour":["\u0034\u0032424242\u002d42424242"]`), []string{"1 colour: looks like a card number"}},
		{with(`"address":["4242 4242 4242 4242"]`), []string{"1 address: looks like a card number"}},
		{with(`"4242424242424242":1`), []string{"1 ************4242: looks like a card number"}},
		{`{"account":"4242424242424242"`, []string{"1 : must be one JSON object per line"}},
		{"\n" + goodLine + "\n\n" + goodLine, []string{"4 subscription: …on line 2"}},
		{goodLine + "\n" + strings.Repeat("x", maxRow+chunk) + "\n" + goodLine, []string{"!2 : a row is longer"}},
	} {
		_, got := readAll(t, JSONLines, tt.text)
		rejects(t, got, tt.want...)
	}
}

func TestUnescaped(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"\u0034\u0020\u002d\u002D\u00e94"}`: `{"a":"4 --é4"}`,
		`\\u0034`:     `\\u0034`,
		`\\\u0034`:    `\\4`,
		`\u00`:        `\u00`,
		`\u003z\u002`: `\u003z\u002`,
		`\ud83d\n4`:   "\uFFFD\\n4",
		`\`:           `\`,
	} {
		if got := unescaped(text); got != want {
			t.Errorf("unescaped(%s) = %s, want %s", text, got, want)
		}
	}
}

// TestJSONLines_CardsBesideEscapes: the digits at the end of an escape do not make a card
// number look like something longer.
func TestJSONLines_CardsBesideEscapes(t *testing.T) {
	for _, escape := range []string{`\u0001`, `\u0009`, `\u00e9`, `\u2028`, `\u003c`, `\ufff9`, `\\`} {
		for _, text := range []string{with(`"address":"` + escape + `4242424242424242"`), with(`"` + escape +
			`4242424242424242":1`),
			with(`"x":{"` + escape + `4242424242424242":["` + escape + `4242424242424242"]}`), `{"` + escape +
				`4242424242424242"`} {
			if escape == `\u003c3` && strings.Contains(text, `34242`) {
				text = strings.ReplaceAll(text, `\u003c`, `\u003c`)
			}
			if out := rejectedFile(t, JSONLines, text); strings.Contains(out, "424242") || out == "" {
				t.Errorf("%s: the card is shown: %s", text, out)
			}
		}
	}
}
