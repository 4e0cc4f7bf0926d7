package billing

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing/price"
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
	// Overpayment is a manual payment of a period that was charged, too: a person gives one of them back.
	Overpayment ReceiptKind = "overpayment"
)

// A Receipt is the record of one payment. It never changes, except that a drain sets its number and that
// the e-mail address is a copy. It expires by its TTL. No decision to charge reads it.
type Receipt struct {
	Name             // of the subscription; its SKU is that of the key
	SKU       string // what was paid for
	Email     string
	Kind      ReceiptKind
	Period    int
	Due       civil.Date
	Processed time.Time
	Amount    money.Amount
	Price     *price.Price // as OpenPeriod's; nil also of another amount than it says
	Charge    string       // the processor's reference; the note of a manual payment
	Expires   time.Time    // zero: never
	InSeries  string       // its number, such as R-2026-000123; "": a drain has not given one
	Recovered string       // RecoveredDecline, or when its period had ended failed; "": neither
	Declined  string       // as OpenPeriod's

	Raw store.Item
}

// RecoveredDecline is Receipt.Recovered after a decline; else it is when the period ended failed.
const RecoveredDecline = "declined"

// Item returns the item to be stored. An imported receipt keeps its key.
func (r *Receipt) Item() store.Item {
	c := writer(nil)
	r.attributes(c, r.key())
	return c.item
}

func (r *Receipt) key() store.Key {
	key := receiptKey(r.Name, r.Processed, r.Period)
	if r.Kind == Imported && r.Raw != nil {
		key.SK = r.Raw.Str(schema.SK)
	}
	if r.Kind == Overpayment { // the period has another receipt, perhaps of the same time
		key.SK += "#" + string(Overpayment)
	}
	return key
}

// Number returns the receipt's id for people, such as 20230628-8F3K20QX-M4ZN7TRA: the day of the
// payment in UTC, and 80 bits of a hash of the receipt's key and of the store's installation. It is
// not stored: the same receipt always has the same number.
func (r *Receipt) Number(installation string) string {
	key := r.key()
	sum := sha256.Sum256([]byte("receipt\x00" + installation + "\x00" + key.PK + "\x00" + key.SK))
	text := base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").EncodeToString(sum[:10])
	return r.Processed.UTC().Format("20060102") + "-" + text[:8] + "-" + text[8:]
}

// DecodeReceipt reads a receipt's item. A legacy item becomes a receipt of the kind Imported.
func DecodeReceipt(it store.Item) (*Receipt, error) {
	r := &Receipt{Name: Name{Account: AccountOf(it.Str(schema.PK))}, Raw: it}
	c := codec{stored: it}
	if r.attributes(&c, store.Key{}); c.err != nil {
		return nil, c.err
	}
	sku := keySKU(it.Str(schema.SK))
	r.SKU, r.Name.SKU = cmp.Or(r.SKU, sku), cmp.Or(sku, r.SKU)
	r.Kind = cmp.Or(r.Kind, Charged)
	if r.Charge == "" && r.Kind == Charged { // written by other tools from the published model
		processed, _, _ := strings.Cut(strings.TrimPrefix(it.Str(schema.SK), RecPrefix), "#")
		r.Kind, r.Processed = Imported, cmp.Or(r.Processed, readStamp(processed))
	}
	return r, nil
}

func (r *Receipt) attributes(c *codec, key store.Key) {
	text(c, schema.Charge, &r.Charge)
	text(c, schema.DeclinedSum, &r.Declined)
	c.date(schema.DueDate, &r.Due)
	text(c, schema.Email, &r.Email)
	textBut(c, schema.Kind, &r.Kind, Charged)
	text(c, schema.Number, &r.InSeries)
	c.only(schema.PK, key.PK)
	c.number(schema.Period, &r.Period)
	c.price(&r.Price)
	c.amount(schema.ProcessedAmount, "receipt", &r.Amount)
	c.instant(schema.ProcessedDate, &r.Processed)
	text(c, schema.Recovered, &r.Recovered)
	c.only(schema.SK, key.SK)
	r.SKU = cmp.Or(r.SKU, r.Name.SKU)
	text(c, schema.SKU, &r.SKU)
	text(c, schema.Subscription, &r.ID)
	attribute(c, schema.TTL, &r.Expires, r.Expires.IsZero(), store.KindNone, readExpiry,
		func(at time.Time) store.Value { return store.Int(at.Unix()) })
}

// readExpiry returns the zero time for a TTL that expires nothing.
func readExpiry(v store.Value) (at time.Time) {
	if n, _ := v.Int64(); n > 0 {
		at = time.Unix(n, 0).UTC()
	}
	return at
}

// keySKU returns the SKU in the sort key of a receipt or of a period's record.
func keySKU(sk string) string {
	_, rest, _ := strings.Cut(sk, "#")
	_, rest, _ = strings.Cut(rest, "#SKU")
	sku, _, _ := strings.Cut(strings.TrimPrefix(rest, "#"), "#")
	return sku
}

// IsImported reports whether the item is an imported receipt, or one that another tool has written.
func IsImported(it store.Item) bool {
	kind := it.Str(schema.Kind)
	return isReceipt(it) && (kind == string(Imported) || kind == "" && it.Str(schema.Charge) == "")
}

func isReceipt(it store.Item) bool { return strings.HasPrefix(it.Str(schema.SK), RecPrefix) }
