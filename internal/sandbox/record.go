package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// A record is a line of the file.
type record struct {
	Ref          string `json:"ref"`
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	SKU          string `json:"sku"`
	Period       int    `json:"period"`
	Generation   int    `json:"generation"`
	Attempt      int    `json:"attempt"`
	Amount       string `json:"amount"` // decimal, at the currency's exponent
	Currency     string `json:"currency"`
	Outcome      string `json:"outcome"`
	At           string `json:"at"`

	Install string `json:"install,omitempty"`
	Price   string `json:"price,omitempty"`
	Key     string `json:"key,omitempty"` // idempotency key
	Method  string `json:"method,omitempty"`
	Charge  string `json:"charge,omitempty"`
	Code    string `json:"code,omitempty"`
	Hard    bool   `json:"hard,omitempty"`

	// Of a refund or dispute, whose own id is Ref.
	Of      string `json:"of,omitempty"`      // ref of the intent
	Request string `json:"request,omitempty"` // the caller's id
	Reason  string `json:"reason,omitempty"`
}

const atLayout = "2006-01-02T15:04:05.000Z"

func recordOf(e Entry) record {
	return record{Ref: e.Ref, Account: e.Tag.Account, Subscription: e.Tag.Subscription, SKU: e.Tag.SKU,
		Period: e.Tag.Period, Generation: e.Tag.Generation, Attempt: e.Attempt, Amount: e.Amount.Decimal(),
		Currency: e.Amount.Currency().Code(), Outcome: string(e.State), At: e.Changed.Format(atLayout),
		Install: e.Tag.Installation, Price: e.Price, Method: e.Method, Charge: e.Latest, Code: e.Code, Hard: e.Hard}
}

// restore adds a line of the file. A line of an unknown ref makes the intent: lines may be added by
// hand.
func (l *ledger) restore(text []byte) error {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	if _, ok := reversalWords[r.Outcome]; ok {
		return l.restoreReversal(&r)
	}
	n, tag, amount, err := r.parse()
	if err != nil {
		return err
	}
	known := false
	if n.intent, known = l.refs[r.Ref]; known {
		n.terms = l.lines.at(l.intents.at(n.intent).last).terms
	} else {
		n.intent = l.addIntent(r.Ref)
	}
	if t := n.terms; !known || l.tag(l.terms.at(t)) != tag || l.terms.at(t).amount() != amount || l.name(l.terms.at(t).price) != r.Price {
		n.terms = l.addTerms(tag, amount, r.Price)
	}
	n.method, n.code = l.intern(r.Method), l.intern(r.Code)
	n.charge = l.restoreCharge(&r, n.intent, n.state)
	l.add(n, r.Key)
	return nil
}

// parse returns the parts of a charge's line, or the reason why the line is invalid.
func (r *record) parse() (n line, tag processor.Tag, amount money.Amount, err error) {
	var known bool
	n.state, known = stateOf(processor.State(r.Outcome))
	at, noTime := time.Parse(time.RFC3339, r.At)
	amount, noAmount := parseAmount(r.Amount, r.Currency)
	switch {
	case !known:
		err = fmt.Errorf("outcome must be one of %s (got %q)", states, r.Outcome)
	case r.Ref == "":
		err = errors.New(`the field "ref" is missing`)
	case !fits(r.Period) || !fits(r.Generation) || !fits(r.Attempt):
		err = errors.New("period, generation and attempt must be whole numbers from 0 to 2147483647")
	case len(r.Account) > math.MaxUint16:
		err = errors.New("account is too long")
	case noTime != nil:
		err = fmt.Errorf("at: %w", noTime)
	case noAmount != nil:
		err = noAmount
	case !amount.IsPositive():
		err = fmt.Errorf("amount must be more than zero (got %s)", r.Amount)
	}
	if err != nil {
		return line{}, processor.Tag{}, money.Amount{}, err
	}
	n.at, n.attempt, n.hard = at.UnixMilli(), int32(r.Attempt), r.Hard
	tag = processor.Tag{Installation: r.Install, Account: r.Account, Subscription: r.Subscription, SKU: r.SKU,
		Period: r.Period, Generation: r.Generation}
	return n, tag, amount, nil
}

// restoreCharge returns the number of the attempt in the line's charge. A line by hand without a
// charge is an attempt of its own.
func (l *ledger) restoreCharge(r *record, i uint32, s state) uint32 {
	in := l.intents.at(i)
	if r.Charge == "" {
		if s == opened || s == canceled {
			return 0
		}
		return in.charges + 1
	}
	tail := r.Charge[strings.LastIndexByte(r.Charge, '_')+1:]
	if n, err := strconv.ParseUint(tail, 10, 31); err == nil && n > 0 && chargeID(in.ref, uint32(n)) == r.Charge {
		return uint32(n)
	}
	return l.intern(r.Charge) | oddCharge
}

func parseAmount(decimal, code string) (money.Amount, error) {
	c, err := money.ParseCurrency(code)
	if err != nil {
		return money.Amount{}, err
	}
	return money.Parse(decimal, c)
}
