package book

import (
	"fmt"
	"slices"

	"github.com/duesday/duesday/internal/billing"
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
	currencies memo[money.Currency]
	intervals  memo[civil.Interval]
	usual      money.Amount // in the place of an unreadable amount, so that the other columns are checked

	// of the row at hand
	problems []problem
	bad      columnSet
}

func newChecker() checker {
	usd, err := money.ParseCurrency("USD")
	if err != nil {
		panic(err) // unreachable: the currency exists
	}
	return checker{ledger: newLedger(), usual: money.New(100, usd),
		currencies: memo[money.Currency]{parse: money.ParseCurrency},
		intervals:  memo[civil.Interval]{parse: civil.ParseInterval}}
}

// subscription returns the row as a subscription. The row is good if c.problems is then empty.
func (c *checker) subscription(line int, t *texts) *billing.NewSubscription {
	c.reset()
	n := &billing.NewSubscription{Account: t[account], Email: t[email], ID: t[subscription], SKU: t[sku],
		Method: t[paymentMethod], Address: t[address], TimeZone: t[timeZone]}
	if n.Email == "" {
		c.fault(email, "is missing")
	}
	c.terms(n, t)
	c.masked(t)
	c.rules(n, t)
	c.dates(n, t)
	if !n.Start.IsZero() || !n.NextPayment.IsZero() {
		c.rules(n, t) // of the dates
	}
	c.others(line, n)
	if len(c.problems) > 1 {
		slices.SortStableFunc(c.problems, func(a, b problem) int { return position(a.column) - position(b.column) })
	}
	return n
}

func (c *checker) reset() { c.problems, c.bad = c.problems[:0], 0 }

// position orders problems as the columns are; those of unknown columns come last.
func position(name string) int {
	if c, ok := columnNamed(name); ok {
		return int(c)
	}
	return int(columns) + 1
}

// fault notes the first problem of a column.
func (c *checker) fault(col column, reason string) {
	if !c.bad.has(col) {
		c.bad.add(col)
		c.problems = append(c.problems, problem{columnNames[col], reason})
	}
}

// terms reads amount, interval and numbers. It replaces an unreadable one by a harmless value for
// the other rules.
func (c *checker) terms(n *billing.NewSubscription, t *texts) {
	n.Amount = c.amount(t[amount], t[currency])
	n.Interval = billing.Monthly
	if text := t[interval]; text != "" && !c.card(interval, text) {
		i, err := c.intervals.get(text)
		if err != nil {
			c.fault(interval, err.Error())
		} else {
			n.Interval = i
		}
	}
	if t[paymentDay] == "" {
		c.fault(paymentDay, "is missing")
	}
	n.PaymentDay = c.number(paymentDay, t[paymentDay], 1)
	n.ReminderDays = c.number(reminderDays, t[reminderDays], billing.DefaultReminderDays)
	n.Installments = c.number(installments, t[installments], 0)
}

// rules adds the problems of billing's own rules.
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

// dates reads the two dates. A next payment date must be a payment day, since it is the origin of
// the due dates.
func (c *checker) dates(n *billing.NewSubscription, t *texts) {
	n.Start = c.date(startDate, t[startDate])
	n.NextPayment = c.date(nextPaymentDate, t[nextPaymentDate])
	if c.bad.has(paymentDay) || c.bad.has(interval) {
		return
	}
	switch next := n.NextPayment; {
	case !next.IsZero():
		first, err := civil.FirstOnOrAfter(next, n.PaymentDay, n.Interval)
		switch {
		case err != nil:
			c.fault(nextPaymentDate, err.Error())
		case first != next:
			c.fault(nextPaymentDate, fmt.Sprintf("%s is no payment day: with payment_day %d the first one from then is %s",
				next, n.PaymentDay, first))
		case next.Before(n.Start):
			c.fault(nextPaymentDate, fmt.Sprintf("%s is before start_date %s", next, n.Start))
		}
	case !n.Start.IsZero():
		if _, err := civil.FirstOnOrAfter(n.Start, n.PaymentDay, n.Interval); err != nil {
			c.fault(startDate, err.Error())
		}
	}
}

// others compares the row with earlier ones, by its good columns. A row without a time zone gets
// that of its account's first row. If that has none either, it stays empty: the account may be in
// the store.
func (c *checker) others(line int, n *billing.NewSubscription) {
	if c.bad.has(account) {
		return
	}
	if !c.bad.has(subscription) {
		if first := c.lineOf(line, n.Account, n.ID); first > 0 {
			c.fault(subscription, "the account has it already"+onLine(first)+": one subscription has one row and one SKU")
		}
	}
	if c.bad.has(email) || c.bad.has(timeZone) {
		return
	}
	a := c.holderOf(line, n.Account, n.Email, n.TimeZone)
	if !a.sameEmail {
		c.fault(email, "the account has another address"+onLine(a.line))
	}
	switch {
	case n.TimeZone == "":
		n.TimeZone = a.zone
	case a.zone == "" && n.TimeZone != "UTC":
		c.fault(timeZone, "the account has none"+onLine(a.line)+
			", which makes it UTC unless it exists already: name the same one in every row")
	case a.zone != "" && n.TimeZone != a.zone:
		c.fault(timeZone, "the account is in "+a.zone+onLine(a.line))
	}
}
