package processor

import (
	"context"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// A Settler is a Charger that knows what the processor pays out to the merchant's bank account. Its
// sequences end after an error. The Ref of a charge on a connected account begins with the account
// and a slash.
type Settler interface {
	// Payouts yields the payouts that arrive at or after r.Since, in no particular order.
	Payouts(ctx context.Context, r ListRequest) iter.Seq2[Payout, error]

	// Settled yields the transactions that a payout contains, without the payout's own.
	Settled(ctx context.Context, at, payout string) iter.Seq2[Transaction, error]
}

// A Payout is a transfer to the merchant's bank account.
type Payout struct {
	At       string // connected account, or ""
	ID       string
	Amount   money.Amount // negative if the processor collects the money from the bank account
	Arrival  civil.Date   // when the bank books it
	State    string       // in the processor's words
	Returned bool         // it failed or was canceled, so its money is in the balance again
	Hidden   string       // why the processor does not list the transactions; "": it does
}

// A Transaction is a change of the merchant's balance at the processor. Its amounts are in the
// currency of the payout, and negative if they reduce the balance.
type Transaction struct {
	ID      string
	Kind    TransactionKind
	Type    string // in the processor's words
	Ref     string // intent of the charge, or of what is reversed; the ID of a payout that returned its money; or ""
	Tag     Tag    // zero if the processor does not return one, or if another system created the source
	Created time.Time
	Gross   money.Amount
	Fee     money.Amount
	Net     money.Amount // Gross and Fee together
	Charged money.Amount // what the customer paid, in the customer's currency; only for a charge
}

// A TransactionKind is the cause of a Transaction.
type TransactionKind string

// These are the kinds of transactions.
const (
	SettledCharge  TransactionKind = "charge"
	SettledRefund  TransactionKind = "refund"
	SettledDispute TransactionKind = "dispute"
	SettledFee     TransactionKind = "fee" // without a charge
	SettledOther   TransactionKind = "other"
)
