package book

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
)

// A column is a column of a CSV header, or a member of a JSON line.
type column uint8

const (
	account column = iota
	email
	subscription
	sku
	amount
	currency
	paymentDay
	paymentMethod
	startDate
	nextPaymentDate
	interval
	timeZone
	reminderDays
	installments
	address
	collection
	trialDays
	customer
	customerName
	locale
	fallback
	product
	quantity
	discount
	discountPeriods
	taxRate
	taxMode
	taxNote
	firstDetail // of the account, and those that follow it in party.Names
	columns     = firstDetail + column(len(party.Names))
)

// required is the first optional column: without a payment method, the account's is charged.
const required = paymentMethod

// columnNames are the columns by their names in a header.
var columnNames = [columns]string{
	"account", "email", "subscription", "sku", "amount", "currency", "payment_day", "payment_method",
	"start_date", "next_payment_date", "interval", "time_zone", "reminder_days", "installments", "address",
	"collection", "trial_days", "customer", "name", "locale", "fallback", "product", "quantity", "discount", "discount_periods",
	"tax_rate", "tax", "tax_note",
	"address_line1", "address_line2", "city", "company", "country", "postal_code", "state", "tax_id", // party.Names
}

// The columns of FILE.rejected before the row's own, skipped by Read: it can be corrected in place.
const (
	rejectedLine   = "rejected_line"
	rejectedColumn = "rejected_column"
	rejectedReason = "rejected_reason"
)

// ignored stands for a skipped column.
const ignored = columns

// A columnSet is a set of columns, with ignored.
type columnSet [columns + 1]bool

// Columns returns the names of the columns of a stored subscription, the seven required ones first. It
// has a next_payment_date instead of trial_days. Those from customer to fallback, and party.Names, are its account's.
func Columns() []string {
	return slices.Delete(slices.Clone(columnNames[:]), int(trialDays), int(trialDays)+1)
}

// columnNamed returns the column of a name in any case, with spaces or hyphens for its underscores.
func columnNamed(name string) (c column, ok bool) {
	for range 2 {
		if i := slices.Index(columnNames[:], name); i >= 0 {
			return column(i), true
		}
		if name == rejectedLine || name == rejectedColumn || name == rejectedReason {
			return ignored, true
		}
		name = folded(name)
	}
	return 0, false
}

func folded(name string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(name)))
}

// column is columnNamed with the columns that the options ignore.
func (s *session) column(name string) (c column, ok bool) {
	if slices.ContainsFunc(s.options.IgnoreColumns, func(i string) bool { return folded(i) == folded(name) }) {
		return ignored, true
	}
	return columnNamed(name)
}

// allColumns is listed once for a header.
var allColumns = " the columns are " + strings.Join(columnNames[:], ", ") + ";"

// unknownColumn names the nearest column, if there is one that a typing error can explain.
func unknownColumn(name string) problem {
	nearest, least := "", 3
	for _, known := range columnNames {
		if d := distance(folded(name), known); d < least && d <= len(known)/3 {
			nearest, least = " the closest is "+known+";", d
		}
	}
	return problem{name, "is an unknown column;" + cmp.Or(nearest, allColumns) + " leave columns out with --ignore-columns"}
}

// distance returns the length of what is between the beginning and the end that the names share.
func distance(a, b string) int {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b))
}

func (c *checker) amount(text, code string) money.Amount {
	var cur money.Currency
	var err error
	if code == "" {
		c.fault(currency, "is missing")
	} else if !c.card(currency, code) {
		if cur, err = money.ParseCurrency(code); err != nil {
			c.fault(currency, err.Error())
		}
	}
	switch {
	case text == "":
		c.fault(amount, "is missing")
	case c.card(amount, text):
	case c.bad[currency]:
		c.amountOfAny(text)
	default:
		plain, problem := plainAmount(text, cur.Exponent())
		if problem != "" {
			c.fault(amount, problem)
			break
		}
		a, err := money.Parse(plain, cur)
		if err == nil {
			return a
		}
		c.fault(amount, strings.Replace(err.Error(), strconv.Quote(plain), strconv.Quote(text), 1))
	}
	return c.usual
}

// amountOfAny reads an amount of an unknown currency.
func (c *checker) amountOfAny(text string) string {
	if text == "" {
		c.fault(amount, "is missing")
	}
	if text == "" || c.card(amount, text) {
		return ""
	}
	plain, problem := plainAmount(text, 2)
	if problem == "" && !someAmount.MatchString(plain) {
		problem = fmt.Sprintf("must be a number such as 12.99 (got %.40q)", text)
	}
	if problem != "" {
		c.fault(amount, problem)
	}
	return plain
}

// number reads a small count. absent stands for an empty or unreadable field.
func (c *checker) number(col column, text string, absent int) int {
	if text == "" || c.card(col, text) {
		return absent
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || len(text) > 9 {
		c.fault(col, fmt.Sprintf("must be a whole number (got %.40q)", text))
		return absent
	}
	return int(n)
}

func (c *checker) date(col column, text string) civil.Date {
	if text == "" || c.card(col, text) {
		return civil.Date{}
	}
	form := text
	if m := dotted.FindStringSubmatch(text); m != nil {
		form = m[3] + "-" + ("0" + m[2])[len(m[2])-1:] + "-" + ("0" + m[1])[len(m[1])-1:]
	}
	d, err := civil.Parse(form)
	if err != nil {
		reason := "must be a date such as 2026-01-31 or 31.01.2026"
		if _, why, ok := strings.Cut(err.Error(), ": date: "); ok {
			reason = why
		}
		c.fault(col, fmt.Sprintf("%s (got %.40q)", reason, text))
	}
	return d
}

// shortestCard is the length of the shortest card number.
const shortestCard = 13

// card reports, and notes, a text like a card number. It must come before the field is read: a long
// amount can be a card number, and an error would quote a part of it.
func (c *checker) card(col column, text string) bool {
	switch {
	case len(text) < shortestCard:
		return false
	case col == paymentMethod && secret.HasCardInMethod(text):
		c.fault(col, maskedReason(secret.MaskMethod(text)))
	case secret.HasCardNumber(text):
		c.fault(col, cardReason(text))
	default:
		return false
	}
	return true
}

// masked refuses a masked card number: an uncorrected row of FILE.rejected must not count as good.
func (c *checker) masked(t *texts) {
	for col, text := range t {
		if strings.Count(text, "*") >= shortestCard-4 {
			c.fault(column(col), "contains a masked card number; use the processor's token")
		}
	}
}

func cardReason(text string) string { return maskedReason(secret.MaskCards(text)) }

func maskedReason(masked string) string {
	return fmt.Sprintf("looks like a card number (%.40s), which Duesday never accepts; use the processor's token", masked)
}
