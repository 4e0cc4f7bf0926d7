package billing

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

const (
	RefPrefix = "REF#" // of the sort keys of ReversalRecords
	// UnfinishedPK is the partition of the refunds without an answer: found without a scan.
	UnfinishedPK = "REFUNDS"
)

// A ReversalRecord is the item REF#… beside a receipt: a refund or dispute of its charge. The
// receipt is not changed. The record never expires. Its state changes, and with it the
// processor's reference, reason and times.
type ReversalRecord struct {
	Name
	ReversalID string // our own id of a refund asked for here; else the processor's id
	Kind       processor.ReversalKind
	Period     int
	Generation int    // of the charge's intent
	Charge     string // reference of the charge's intent
	Amount     money.Amount
	State      processor.ReversalState
	Reason     string    // in the processor's words; "": none was given
	Refusal    string    // why the processor refused it
	Ref        string    // the processor's id; "" before its answer, and after a refusal
	Created    time.Time // when it was recorded here, or made at the processor by others
	Processed  time.Time // when it was made at the processor; zero while Ref is ""
	InSeries   string    // the number of a successful refund, such as R-2026-000124; "": none
	Ended      time.Time // when this store first saw it succeeded, failed or canceled; else zero
	Evidence   time.Time // when the evidence against a dispute is due; zero: not known
}

// AskedHere reports whether the refund was asked for by this store.
func (r *ReversalRecord) AskedHere() bool { return IsRefundID(r.ReversalID) }

// Counts reports whether the customer has, or may have, the record's money back. An inquiry
// does not count: no money has moved, and a refund may be the answer to it.
func (r *ReversalRecord) Counts() bool {
	return r.State != processor.ReversalFailed && r.State != processor.ReversalCanceled &&
		r.State != processor.ReversalInquiry
}

// follows reports whether a record may go from the state was to s. A final state is left in one
// case only: a successful refund is sent back by the bank, or a lost dispute is won.
func follows(s, was processor.ReversalState) bool {
	switch was {
	case processor.ReversalInquiry:
		return s == processor.ReversalPending || s.Final()
	case processor.ReversalPending:
		return s.Final()
	case processor.ReversalSucceeded:
		return s == processor.ReversalFailed
	}
	return false
}

// Version returns a number that rises with each change of the record, as follows allows them.
func (r *ReversalRecord) Version() int64 {
	switch {
	case r.Ref != "":
		return 3 + int64(slices.Index([]processor.ReversalState{processor.ReversalInquiry, processor.ReversalPending,
			processor.ReversalSucceeded, processor.ReversalFailed, processor.ReversalCanceled}, r.State))
	case r.State == processor.ReversalRequested:
		return 1
	}
	return 2 // refused; the processor may show it after all
}

// Apply brings the record to its state at the processor, and reports whether this is new. A refund
// shown after a refusal counts: another request had been refused.
func (r *ReversalRecord) Apply(shown processor.Reversal, now time.Time) bool {
	if !shown.State.Final() && shown.State != processor.ReversalInquiry {
		shown.State = processor.ReversalPending
	}
	switch {
	case r.Ref == "":
		r.Ref, r.Processed, r.Refusal = shown.ID, shown.Created, ""
	case r.Ref != shown.ID || !follows(shown.State, r.State):
		return false
	}
	r.Reason = cmp.Or(r.Reason, secret.MaskCards(shown.Reason))
	r.State, r.Ended, r.Evidence = shown.State, time.Time{}, shown.EvidenceDue
	if r.State.Final() {
		r.Ended = now
	}
	return true
}

// Refuse records the processor's definite refusal of a refund, or returns false: it was answered.
func (r *ReversalRecord) Refuse(why string, now time.Time) bool {
	if r.State != processor.ReversalRequested {
		return false
	}
	r.State, r.Refusal, r.Ended = processor.ReversalFailed, why, now
	return true
}

// Reconcile compares a reversal at the processor with its account's records. It returns the
// matching record as it was, nil if there is none, and as it becomes, nil if nothing is new. A
// refund whose record the store has lost gets its own id back.
func Reconcile(list []*ReversalRecord, n Name, shown processor.Reversal, now time.Time) (was, becomes *ReversalRecord) {
	if was = matching(list, shown); was != nil {
		if changed := *was; changed.Apply(shown, now) {
			becomes = &changed
		}
		return was, becomes
	}
	becomes = &ReversalRecord{Name: n, ReversalID: shown.ID, Kind: shown.Kind, Period: shown.Tag.Period,
		Generation: shown.Tag.Generation, Charge: shown.Ref, Amount: shown.Amount, State: processor.ReversalRequested,
		Created: shown.Created}
	if IsRefundID(shown.Request) && FindReversal(list, shown.Request) == nil {
		becomes.ReversalID = shown.Request
	}
	becomes.Apply(shown, now)
	return nil, becomes
}

// matching returns the record of the reversal, or nil. If the processor has made two refunds of one
// request, the record of the request has one of them.
func matching(list []*ReversalRecord, shown processor.Reversal) *ReversalRecord {
	var asked *ReversalRecord
	for _, r := range list {
		switch {
		case r.Kind != shown.Kind:
		case r.Ref == shown.ID:
			return r
		case r.Ref == "" && r.ReversalID == shown.Request && r.AskedHere():
			asked = r
		}
	}
	return asked
}

// FindReversal returns the record with the id, or nil.
func FindReversal(list []*ReversalRecord, id string) *ReversalRecord {
	if i := slices.IndexFunc(list, func(r *ReversalRecord) bool { return r.ReversalID == id }); i >= 0 {
		return list[i]
	}
	return nil
}

// Key is the key of the record's item.
func (r *ReversalRecord) Key() store.Key {
	return store.Key{PK: AccountPK(r.Account), SK: RefPrefix + Stamp(r.Created) + "#" + r.ReversalID}
}

// unfinishedKey is the key of the item naming the record: <account>#<its sort key>.
func (r *ReversalRecord) unfinishedKey() store.Key {
	return store.Key{PK: UnfinishedPK, SK: r.Account + "#" + r.Key().SK}
}

func (r *ReversalRecord) item() store.Item {
	c := writer(nil)
	r.attributes(c, r.Key())
	return c.item
}

// changing are the attributes changing with the record's state.
func (r *ReversalRecord) changing() store.Item {
	return slices.DeleteFunc(r.item(), func(a store.Attribute) bool {
		switch a.Name {
		case schema.State, schema.Reason, schema.LastError, schema.Refund, schema.ProcessedDate, schema.EndedDate,
			schema.EvidenceDate:
			return false
		}
		return true
	})
}

func (r *ReversalRecord) attributes(c *codec, key store.Key) {
	c.amount(schema.Amount, "record", &r.Amount)
	always(c, schema.Charge, &r.Charge)
	c.instant(schema.CreatedDate, &r.Created)
	c.stamp(schema.EndedDate, &r.Ended)
	c.stamp(schema.EvidenceDate, &r.Evidence)
	c.count(schema.Generation, &r.Generation, 0)
	always(c, schema.Kind, &r.Kind)
	text(c, schema.LastError, &r.Refusal)
	text(c, schema.Number, &r.InSeries)
	c.only(schema.PK, key.PK)
	c.number(schema.Period, &r.Period)
	c.stamp(schema.ProcessedDate, &r.Processed)
	text(c, schema.Reason, &r.Reason)
	text(c, schema.Refund, &r.Ref)
	if r.AskedHere() {
		c.only(schema.Request, r.ReversalID)
	}
	c.only(schema.SK, key.SK)
	always(c, schema.SKU, &r.SKU)
	text(c, schema.State, &r.State)
	always(c, schema.Subscription, &r.ID)
}

// Writes returns the writes to bring the record from was to r. If was is nil, r is new: they then
// hold only if no reversal of the account was recorded since a was read; a nil a: it has no item.
func (r *ReversalRecord) Writes(table string, was *ReversalRecord, a *Account) []store.Write {
	if was != nil {
		return r.change(table, was)
	}
	writes := []store.Write{store.Check(table, AccountKey(r.Account), store.Absent()), store.Put(table, r.item(), store.Absent())}
	if a != nil {
		writes[0] = a.BumpVersion(table)
	}
	if r.State == processor.ReversalRequested {
		writes = append(writes, store.Put(table, ItemAt(r.unfinishedKey())))
	}
	return writes
}

// change returns the writes that hold while the record's state and reference are those of was.
func (r *ReversalRecord) change(table string, was *ReversalRecord) []store.Write {
	set := r.changing()
	var remove []string
	for _, a := range was.changing() {
		if !set.Has(a.Name) {
			remove = append(remove, a.Name)
		}
	}
	var ref store.Value
	if was.Ref != "" {
		ref = store.S(was.Ref)
	}
	writes := []store.Write{store.Update(table, r.Key(), set, remove,
		store.AttributeEquals(schema.State, store.S(string(was.State))), Unchanged(schema.Refund, ref))}
	if was.State == processor.ReversalRequested && r.State != processor.ReversalRequested {
		writes = append(writes, store.Delete(table, r.unfinishedKey()))
	}
	return writes
}

// DecodeReversal reads the item.
func DecodeReversal(it store.Item) (*ReversalRecord, error) {
	_, id, _ := strings.Cut(strings.TrimPrefix(it.Str(schema.SK), RefPrefix), "#")
	r := &ReversalRecord{Name: Name{Account: AccountOf(it.Str(schema.PK))}, ReversalID: id}
	c := codec{stored: it}
	r.attributes(&c, store.Key{})
	switch {
	case r.Key() != KeyOf(it):
		return nil, &IllegibleError{schema.SK, "does not go with CreatedDate", nil}
	case r.State != processor.ReversalRequested && r.State != processor.ReversalInquiry &&
		r.State != processor.ReversalPending && !r.State.Final():
		return nil, &IllegibleError{schema.State, "is not a state of a refund or dispute", nil}
	}
	return r, c.err
}

// IsReversal reports whether the item is the record of a refund or dispute.
func IsReversal(it store.Item) bool { return strings.HasPrefix(it.Str(schema.SK), RefPrefix) }

// GetReversalsByAccount yields the account's refunds and disputes, oldest first.
func (e *Records) GetReversalsByAccount(ctx context.Context, account string) iter.Seq2[*ReversalRecord, error] {
	return decoded(e, ctx, store.Query{Table: e.Table, Partition: AccountPK(account), Prefix: RefPrefix}, DecodeReversal)
}

// ReversalRecords yields all recorded refunds and disputes. It scans.
func (e *Records) ReversalRecords(ctx context.Context) iter.Seq2[*ReversalRecord, error] {
	return scanned(e, ctx, IsReversal, DecodeReversal)
}

// ReversalsOf returns the account's refunds and disputes, oldest first, or an IllegibleError.
func (e *Records) ReversalsOf(ctx context.Context, account string) (list []*ReversalRecord, err error) {
	if list, err = processor.Gather(e.GetReversalsByAccount(ctx, account)); err != nil {
		return nil, fmt.Errorf("account %s: reading a refund or dispute: %w", account, err)
	}
	return list, nil
}

// RefundIDPrefix begins the ids of refunds asked for here; 32 hexadecimal digits follow.
const RefundIDPrefix = "rf_"

// IsRefundID reports whether the id is one of a refund asked for here.
func IsRefundID(id string) bool {
	digits, ok := strings.CutPrefix(id, RefundIDPrefix)
	_, err := hex.DecodeString(digits)
	return ok && err == nil && len(digits) == 32
}
