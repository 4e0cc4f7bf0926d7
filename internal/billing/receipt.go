package billing

import (
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A ReceiptKind tells where a payment was taken.
type ReceiptKind string

// The kinds of receipts.
const (
	Charged  ReceiptKind = "charge"   // by the processor, through Duesday
	External ReceiptKind = "external" // a manual payment, recorded by a person
	Imported ReceiptKind = "imported" // came with the data
)

// A Receipt is the record of one payment. It never changes, except for the copy of the e-mail
// address, and expires by its TTL. No decision to charge reads it.
type Receipt struct {
	Name
	Email     string
	Kind      ReceiptKind
	Period    int
	Due       civil.Date
	Processed time.Time
	Amount    money.Amount
	Charge    string    // the processor's reference; the note of a manual payment
	Expires   time.Time // zero: never

	Raw store.Item
}

// Item returns the item to be stored. An imported receipt keeps its key.
func (r *Receipt) Item() store.Item {
	key := receiptKey(r.Name, r.Processed, r.Period)
	if r.Kind == Imported && r.Raw != nil {
		key.SK = r.Raw.Str(schema.SK)
	}
	it := item{make(store.Item, 0, 16)}
	it.text(schema.Charge, r.Charge)
	it.text(schema.Currency, r.Amount.Currency().Code())
	it.date(schema.DueDate, r.Due)
	it.text(schema.Email, r.Email)
	if r.Kind != Charged {
		it.text(schema.Kind, string(r.Kind))
	}
	it.text(schema.PK, key.PK)
	it.Set(schema.Period, store.Int(int64(r.Period)))
	it.text(schema.ProcessedAmount, r.Amount.Decimal())
	it.text(schema.ProcessedDate, Stamp(r.Processed))
	it.text(schema.SK, key.SK)
	it.text(schema.SKU, r.SKU)
	it.text(schema.Subscription, r.ID)
	if !r.Expires.IsZero() {
		it.Set(schema.TTL, store.Int(r.Expires.Unix()))
	}
	return it.Item
}

// DecodeReceipt reads a receipt's item. A legacy item becomes a receipt of the kind Imported.
func DecodeReceipt(it store.Item) (*Receipt, error) {
	r := &Receipt{Name: Name{Account: AccountOf(it.Str(schema.PK)), ID: it.Str(schema.Subscription),
		SKU: it.Str(schema.SKU)},
		Email: it.Str(schema.Email), Kind: ReceiptKind(it.Str(schema.Kind)), Period: int(it.Int(schema.Period)),
		Processed: readStamp(it.Str(schema.ProcessedDate)), Charge: it.Str(schema.Charge), Raw: it}
	if r.Kind == "" {
		r.Kind = Charged
	}
	if r.Charge == "" && r.Kind == Charged { // written by other tools from the published model
		r.Kind = Imported
		r.readKey(it.Str(schema.SK))
	}
	if at := it.Int(schema.TTL); at > 0 {
		r.Expires = time.Unix(at, 0).UTC()
	}
	var err error
	if r.Amount, err = decodeAmount(textOf(it.Get(schema.ProcessedAmount)), it.Str(schema.Currency)); err != nil {
		return nil, &unreadableError{schema.ProcessedAmount, "is no amount in the receipt's currency", err}
	}
	if text := it.Str(schema.DueDate); text != "" {
		if r.Due, err = civil.Parse(text); err != nil {
			return nil, &unreadableError{schema.DueDate, "is no date", err}
		}
	}
	return r, nil
}

// readKey takes missing attributes from the model's key, REC#<processed>#SKU#<sku>.
func (r *Receipt) readKey(sk string) {
	processed, rest, _ := strings.Cut(strings.TrimPrefix(sk, RecPrefix), "#")
	if r.Processed.IsZero() {
		r.Processed = readStamp(processed)
	}
	if r.SKU == "" {
		r.SKU, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(rest, "SKU"), "#"), "#")
	}
}

func isReceipt(it store.Item) bool { return strings.HasPrefix(it.Str(schema.SK), RecPrefix) }
