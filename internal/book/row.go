package book

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// texts are the fields of one row by column; "" when absent.
type texts [columns]string

// A problem is the fault of one column of a row.
type problem struct{ column, reason string }

// A checker turns rows into subscriptions. It has the form of the fields and the comparison of
// rows; the other rules are those of billing.NewSubscription.
type checker struct {
	ledger
	more Check // of Options
	// usual stands in the place of an unreadable amount, so that the other columns are checked.
	usual money.Amount

	// of the row at hand
	problems []problem
	bad      columnSet
	given    columnSet
}

func newChecker(more Check) checker {
	usd, _ := money.ParseCurrency("USD") // there is one
	l := ledger{seed: maphash.MakeSeed(), subscriptions: map[uint64]uint32{}, accounts: map[uint64]holder{},
		zoneIndex: map[string]uint32{}, facts: map[uint64]facts{}, products: map[string]productName{}}
	return checker{ledger: l, more: more, usual: money.New(100, usd)}
}

// shortened is how a spreadsheet shows a long number.
var shortened = regexp.MustCompile(`^[0-9]([.,][0-9]+)?E\+[0-9]+$`)

// subscription returns the row as a subscription. The row is good if c.problems is then empty.
func (c *checker) subscription(line int, t *texts) *billing.NewSubscription {
	c.reset()
	for col, text := range t {
		if c.given[col] = text != ""; !utf8.ValidString(text) {
			c.fault(column(col), "is not UTF-8; save the file as UTF-8, which Excel calls CSV UTF-8")
		}
	}
	n := &billing.NewSubscription{Account: t[account], Email: t[email], ID: t[subscription], SKU: t[sku],
		Method: t[paymentMethod], Collection: billing.Collection(t[collection]), Address: t[address], TimeZone: t[timeZone],
		Customer: t[customer], Name: t[customerName], Locale: t[locale], Fallback: t[fallback], Product: t[product]}
	for i, f := range n.Details.Fields() {
		*f = t[firstDetail+column(i)]
	}
	if n.Email == "" {
		c.fault(email, "is missing")
	}
	for _, col := range [...]column{account, subscription} {
		if shortened.MatchString(t[col]) {
			c.fault(col, fmt.Sprintf("is a number that a spreadsheet shortened (got %q); format the column as text, and save the file again", t[col]))
		}
	}
	c.terms(n, t)
	c.masked(t)
	c.rules(n, t)
	c.dates(n, t)
	if !n.Start.IsZero() || !n.NextPayment.IsZero() {
		c.rules(n, t) // of the dates
	}
	c.compareEarlier(line, n)
	if len(c.problems) > 1 {
		slices.SortStableFunc(c.problems, func(a, b problem) int { return position(a.column) - position(b.column) })
	}
	return n
}

// checked returns the problems of a row, or the one that the caller's Check finds in a row without any.
func (c *checker) checked(problems []problem, n *billing.NewSubscription) []problem {
	if len(problems) > 0 || c.more == nil || n == nil {
		return problems
	}
	if p := c.more(*n, c.has); p != nil {
		return []problem{{p.Field, p.Problem}}
	}
	return nil
}

// has reports whether the row at hand gives the column of that name.
func (c *checker) has(name string) bool {
	col, ok := columnNamed(name)
	return ok && c.given[col]
}

func (c *checker) reset() { c.problems, c.bad = c.problems[:0], columnSet{} }

// position orders problems as the columns are; those of unknown columns come last.
func position(name string) int {
	if c, ok := columnNamed(name); ok {
		return int(c)
	}
	return int(columns) + 1
}

// fault notes the first problem of a column.
func (c *checker) fault(col column, reason string) {
	if !c.bad[col] {
		c.bad[col] = true
		c.problems = append(c.problems, problem{columnNames[col], reason})
	}
}

// terms reads amount, interval and numbers, and has a harmless value for an unreadable one.
func (c *checker) terms(n *billing.NewSubscription, t *texts) {
	n.Amount = c.amount(t[amount], t[currency])
	n.Interval = billing.Monthly
	if text := t[interval]; text != "" && !c.card(interval, text) {
		i, err := civil.ParseInterval(text)
		if err != nil {
			c.fault(interval, err.Error())
		} else {
			n.Interval = i
		}
	}
	if n.PaymentDay = c.number(paymentDay, t[paymentDay], 1); t[paymentDay] == "" && n.Interval.Unit == civil.Day {
		n.PaymentDay = 0
	} else if t[paymentDay] == "" {
		c.fault(paymentDay, "is missing")
	}
	n.Terms = c.priceTerms(t, n.Amount.Currency())
	n.ReminderDays = c.number(reminderDays, t[reminderDays], billing.DefaultReminderDays)
	n.Installments = c.number(installments, t[installments], 0)
	n.TrialDays = c.number(trialDays, t[trialDays], 0)
	n.Terms.Tax = c.tax(t)
}

// tax reads a tax. A row without a rate gets that of its account's country.
func (c *checker) tax(t *texts) (x price.Tax) {
	given, card := false, false
	for _, col := range [...]column{taxRate, taxMode, taxNote} {
		given, card = given || t[col] != "", c.card(col, t[col]) || card
	}
	if !given || card {
		return price.Tax{}
	}
	var err error
	x = price.Tax{Mode: price.Mode(t[taxMode]), Note: t[taxNote]}
	if x.Rate, err = price.ParsePercent(t[taxRate]); err != nil {
		c.fault(taxRate, err.Error())
	}
	if x.Mode != price.Inclusive && x.Mode != price.Exclusive {
		c.fault(taxMode, "must be inclusive or exclusive if there is a tax_rate")
	}
	if c.bad[taxRate] || c.bad[taxMode] {
		return price.Tax{}
	}
	return x
}

// priceTerms reads the quantity and the discount, whose percentage may have a decimal comma, too.
func (c *checker) priceTerms(t *texts, in money.Currency) (x price.Terms) {
	x.Quantity = c.number(quantity, t[quantity], 0)
	if t[quantity] != "" && x.Quantity == 0 && !c.bad[quantity] {
		c.fault(quantity, "must be 1 or more")
	}
	if t[discountPeriods] != ever {
		x.Discount.Periods = c.number(discountPeriods, t[discountPeriods], 0)
	}
	text := strings.ReplaceAll(t[discount], " ", "")
	if text == "" || c.card(discount, t[discount]) || c.bad[currency] {
		return x
	}
	number, percent := strings.CutSuffix(text, "%")
	plain, problem := plainAmount(number, in.Exponent())
	if percent {
		plain, problem = strings.Replace(number, ",", ".", 1)+"%", ""
	}
	if problem != "" {
		c.fault(discount, problem)
		return x
	}
	d, err := price.ParseDiscount(plain, in)
	if wrong, is := errors.AsType[*billing.FieldError](err); is {
		c.fault(discount, wrong.Problem)
		return x
	}
	d.Periods = x.Discount.Periods
	x.Discount = d
	return x
}

// ever is the number of a discount's periods that have no end, as an empty field is.
const ever = "ever"

func (c *checker) rules(n *billing.NewSubscription, t *texts) {
	for _, p := range n.Problems() {
		col, ok := columnNamed(p.Field)
		switch {
		case !ok:
			c.problems = append(c.problems, problem{p.Field, p.Problem})
		case !c.card(col, t[col]): // before a reason that quotes it, with escapes that end in digits
			c.fault(col, p.Problem)
		}
	}
}

// dates reads the two dates. A next payment date, whence due dates count, must be a payment day.
func (c *checker) dates(n *billing.NewSubscription, t *texts) {
	n.Start = c.date(startDate, t[startDate])
	n.NextPayment = c.date(nextPaymentDate, t[nextPaymentDate])
	if c.bad[paymentDay] || c.bad[interval] {
		return
	}
	switch next := n.NextPayment; {
	case !next.IsZero():
		first, err := civil.FirstOnOrAfter(next, cmp.Or(n.PaymentDay, next.Day()), n.Interval)
		switch {
		case err != nil:
			c.fault(nextPaymentDate, err.Error())
		case first != next && n.Interval.Unit != civil.Day:
			c.fault(nextPaymentDate, fmt.Sprintf("%s is not a payment day; with payment_day %d, the first payment day from then on is %s",
				next, n.PaymentDay, first))
		case next.Before(n.Start):
			c.fault(nextPaymentDate, fmt.Sprintf("must not be before start_date %s (got %s)", n.Start, next))
		}
	case !n.Start.IsZero():
		if _, err := civil.FirstOnOrAfter(n.Start, cmp.Or(n.PaymentDay, n.Start.Day()), n.Interval); err != nil {
			c.fault(startDate, err.Error())
		}
	}
}

// compareEarlier compares the row with earlier ones, by its good columns. A row without a time zone
// gets that of its account's first row; if that has none, the account may be in the store.
func (c *checker) compareEarlier(line int, n *billing.NewSubscription) {
	if c.bad[account] {
		return
	}
	if !c.bad[subscription] {
		if first := c.lineOf(line, n.Account, n.ID); first > 0 {
			c.fault(subscription, "the account already has it"+onLine(first)+"; a subscription must have one row and one SKU")
		}
	}
	c.compareProduct(line, n)
	if c.bad[email] || c.bad[timeZone] {
		return
	}
	first, sameEmail, zone := c.holderOf(line, n.Account, n.Email, n.TimeZone)
	if !sameEmail {
		c.fault(email, "the account has a different address"+onLine(first))
	}
	c.compareFacts(line, first, n)
	switch {
	case n.TimeZone == "":
		n.TimeZone = zone
	case zone == "" && n.TimeZone != "UTC":
		c.fault(timeZone, "the account has no time zone"+onLine(first)+
			", which means UTC unless the account already exists; use the same time zone in every row")
	case zone != "" && n.TimeZone != zone:
		c.fault(timeZone, "the account has time zone "+zone+onLine(first))
	}
}

// compareFacts compares what the row says of its customer with the account's first row.
func (c *checker) compareFacts(line, first int, n *billing.NewSubscription) {
	all := n.Holder(new(billing.Account))
	var now facts
	for i, fact := range all {
		if fact.Given != "" {
			now[i] = uint32(maphash.String(c.seed, fact.Given)) | 1
		}
	}
	if now == (facts{}) {
		return
	}
	h := maphash.String(c.seed, n.Account)
	if first == line {
		c.facts[h] = now
	}
	for i, fact := range all {
		if col, _ := columnNamed(fact.Name); now[i] != 0 && now[i] != c.facts[h][i] {
			c.fault(col, "differs from the account's first row"+onLine(first)+"; use the same in every row")
		}
	}
}

// compareProduct compares the product's name with that of an earlier row of the SKU.
func (c *checker) compareProduct(line int, n *billing.NewSubscription) {
	if n.Product == "" || c.bad[sku] || c.bad[product] {
		return
	}
	first, known := c.products[n.SKU]
	switch {
	case known && first.name != n.Product:
		c.fault(product, fmt.Sprintf("SKU %s has the name %q%s", n.SKU, first.name, onLine(first.line)))
	case !known && len(c.products) == settings.MaxProducts:
		c.fault(product, fmt.Sprintf("a store has at most %d product names", settings.MaxProducts))
	case !known:
		c.products[strings.Clone(n.SKU)] = productName{strings.Clone(n.Product), line}
	}
}

// A ledger remembers, for every row, the facts that a later row may contradict. It takes up to 100
// bytes for a row with an account of its own, so that a million fit. It keeps hashes under a random
// seed, not texts. Two of a million rows are confused once in forty million imports, and not again
// in the next import of the same file.
type ledger struct {
	seed          maphash.Seed
	subscriptions map[uint64]uint32 // account/subscription -> line
	accounts      map[uint64]holder
	zones         []string // by holder.zone
	zoneIndex     map[string]uint32
	facts         map[uint64]facts       // of accounts that have any
	products      map[string]productName // by SKU, few
	key           []byte
}

// facts are hashes of what a row says of its account in billing.HolderField; 0: nothing.
type facts [4 + len(party.Names)]uint32

type productName struct {
	name string
	line int
}

// A holder is the first row of an account.
type holder struct {
	email uint64
	line  uint32
	zone  uint32
}

// lineOf returns the earlier line of the account's subscription, or 0, and remembers this one.
func (l *ledger) lineOf(line int, account, id string) int {
	l.key = append(append(append(l.key[:0], account...), '/'), id...) // neither has a slash
	h := maphash.Bytes(l.seed, l.key)
	if first, ok := l.subscriptions[h]; ok {
		return int(first)
	}
	l.subscriptions[h] = uint32(line)
	return 0
}

// holderOf compares the row with the account's first, whose line and zone it returns.
func (l *ledger) holderOf(line int, account, email, zone string) (first int, sameEmail bool, firstZone string) {
	h, e := maphash.String(l.seed, account), maphash.String(l.seed, email)
	a, ok := l.accounts[h]
	if !ok {
		a = holder{email: e, line: uint32(line), zone: l.zone(zone)}
		l.accounts[h] = a
	}
	return int(a.line), a.email == e, l.zones[a.zone]
}

// zone returns the index of a zone's name. There are no more names than zones.
func (l *ledger) zone(name string) uint32 {
	z, ok := l.zoneIndex[name]
	if !ok {
		name = strings.Clone(name)
		z = uint32(len(l.zones))
		l.zones = append(l.zones, name)
		l.zoneIndex[name] = z
	}
	return z
}

func onLine(line int) string { return " on line " + strconv.Itoa(line) }
