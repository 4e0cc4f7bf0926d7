package billing

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

const (
	refPrefix = "REF#"
	// unfinishedPK is the partition that names the refunds that are recorded and not yet
	// answered, so that they are found without a scan.
	UnfinishedPK = "REFUNDS"
)

// A ReversalRecord is the item REF#… beside a receipt: money of the charge that went back, or
// is claimed back. The receipt stays as it is. The record never expires, and only its state,
// and what the processor says with it, ever changes.
type ReversalRecord struct {
	Name
	ReversalID string // ours of a refund that was asked for here; else the processor's
	Kind       ReversalKind
	Period     int
	Generation int    // of the charge's intent
	Charge     string // reference of the charge's intent
	Amount     money.Amount
	State      ReversalState
	Reason     string    // in the processor's words, "" when none was given
	Refusal    string    // why the processor refused it
	Ref        string    // the processor's id; "" while it has not answered, and when it refused
	Created    time.Time // when it was recorded here; of one that was made at the processor, there
	Processed  time.Time // when it was made at the processor; zero while Ref is ""
	Ended      time.Time // when it was seen here that it is succeeded, failed or canceled; else zero
}

// AskedHere reports whether the refund was asked for by this store.
func (r *ReversalRecord) AskedHere() bool { return IsRefundID(r.ReversalID) }

// Counts reports whether the record's money is, or may be, back with the customer. A bank that
// only asks has it not: a refund may be the answer.
func (r *ReversalRecord) Counts() bool {
	return r.State != ReversalFailed && r.State != ReversalCanceled && r.State != ReversalInquiry
}

func (s ReversalState) final() bool {
	return s == ReversalSucceeded || s == ReversalFailed || s == ReversalCanceled
}

// follows reports whether a record that is in the state was may come into s. Nothing goes
// back from a final state; but a bank may send a refund back that had succeeded, and a
// dispute that was lost may be won after all.
func (s ReversalState) follows(was ReversalState) bool {
	switch was {
	case ReversalInquiry:
		return s == ReversalPending || s.final()
	case ReversalPending:
		return s.final()
	case ReversalSucceeded:
		return s == ReversalFailed
	}
	return false
}

// take brings the record to what the processor shows, or returns false when that says
// nothing new. What the processor shows of a refund that it had refused is right: the
// refusal was an answer to another try.
func (r *ReversalRecord) Apply(seen Reversal, now time.Time) bool {
	if !seen.State.final() && seen.State != ReversalInquiry {
		seen.State = ReversalPending
	}
	switch {
	case r.Ref == "":
		r.Ref, r.Processed, r.Refusal = seen.ID, seen.Created, ""
	case r.Ref != seen.ID || !seen.State.follows(r.State):
		return false
	}
	if r.Reason == "" {
		r.Reason = secret.MaskCards(seen.Reason)
	}
	r.State, r.Ended = seen.State, time.Time{}
	if r.State.final() {
		r.Ended = now
	}
	return true
}

// recordOf makes the record of what was made at the processor, without its being asked for
// here, or in a part of the store that is lost.
func NewReversalRecord(n Name, seen Reversal, id string, now time.Time) *ReversalRecord {
	r := &ReversalRecord{Name: n, ReversalID: id, Kind: seen.Kind, Period: seen.Tag.Period, Generation: seen.Tag.Generation, Charge: seen.Ref,
		Amount: seen.Amount, State: ReversalRequested, Created: seen.Created}
	r.Apply(seen, now)
	return r
}

func (r *ReversalRecord) Key() store.Key {
	return store.Key{PK: AccountPK(r.Account), SK: refPrefix + Stamp(r.Created) + "#" + r.ReversalID}
}

// unfinishedKey is of the item that names the record: <account>#<sort key of the record>.
func (r *ReversalRecord) unfinishedKey() store.Key {
	return store.Key{PK: UnfinishedPK, SK: r.Account + "#" + r.Key().SK}
}

func (r *ReversalRecord) item() store.Item {
	key := r.Key()
	it := store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S(key.PK)},
		store.Attribute{Name: schema.SK, Value: store.S(key.SK)},
		store.Attribute{Name: schema.Amount, Value: store.S(r.Amount.Decimal())},
		store.Attribute{Name: schema.Charge, Value: store.S(r.Charge)},
		store.Attribute{Name: schema.CreatedDate, Value: store.S(Stamp(r.Created))},
		store.Attribute{Name: schema.Currency, Value: store.S(r.Amount.Currency().Code())},
		store.Attribute{Name: schema.Kind, Value: store.S(string(r.Kind))},
		store.Attribute{Name: schema.Period, Value: store.Int(int64(r.Period))},
		store.Attribute{Name: schema.SKU, Value: store.S(r.SKU)},
		store.Attribute{Name: schema.Subscription, Value: store.S(r.ID)})
	if r.Generation != 0 {
		it.Set(schema.Generation, store.Int(int64(r.Generation)))
	}
	if r.AskedHere() {
		it.Set(schema.Request, store.S(r.ReversalID))
	}
	for _, a := range r.moving() {
		it.Set(a.Name, a.Value)
	}
	return it
}

// moving are the attributes that change with the record's state.
func (r *ReversalRecord) moving() []store.Attribute {
	list := []store.Attribute{{Name: schema.State, Value: store.S(string(r.State))}}
	for _, f := range [...]struct{ name, text string }{{schema.Reason, r.Reason}, {schema.LastError, r.Refusal}, {schema.Refund, r.Ref}} {
		if f.text != "" {
			list = append(list, store.Attribute{Name: f.name, Value: store.S(f.text)})
		}
	}
	for _, f := range [...]struct {
		name string
		at   time.Time
	}{{schema.ProcessedDate, r.Processed}, {schema.EndedDate, r.Ended}} {
		if !f.at.IsZero() {
			list = append(list, store.Attribute{Name: f.name, Value: store.S(Stamp(f.at))})
		}
	}
	return list
}

// create returns the writes that record r, if nothing of its account's has been recorded
// since the account was read; a is nil for an account that has no item.
func (r *ReversalRecord) Create(table string, a *Account) []store.Write {
	writes := []store.Write{store.Put(table, r.item(), store.Absent())}
	if a == nil {
		writes = append(writes, store.Check(table, AccountKey(r.Account), store.Absent()))
	} else {
		writes = append(writes, a.BumpVersion(table))
	}
	if r.State == ReversalRequested {
		key := r.unfinishedKey()
		writes = append(writes, store.Put(table, store.NewItem(
			store.Attribute{Name: schema.PK, Value: store.S(key.PK)},
			store.Attribute{Name: schema.SK, Value: store.S(key.SK)})))
	}
	return writes
}

// move returns the writes that bring the record from was to r, if it is still as it was.
func (r *ReversalRecord) Change(table string, was *ReversalRecord) []store.Write {
	set := store.NewItem(r.moving()...)
	var remove []string
	for _, a := range was.moving() {
		if !set.Has(a.Name) {
			remove = append(remove, a.Name)
		}
	}
	still := []store.Condition{store.AttributeEquals(schema.State, store.S(string(was.State))), store.AttributeAbsent(schema.Refund)}
	if was.Ref != "" {
		still[1] = store.AttributeEquals(schema.Refund, store.S(was.Ref))
	}
	writes := []store.Write{store.Update(table, r.Key(), set, remove, still...)}
	if was.State == ReversalRequested && r.State != ReversalRequested {
		writes = append(writes, store.Delete(table, r.unfinishedKey()))
	}
	return writes
}

func DecodeReversal(it store.Item) (*ReversalRecord, error) {
	_, id, _ := strings.Cut(strings.TrimPrefix(it.Str(schema.SK), refPrefix), "#")
	r := &ReversalRecord{Name: Name{Account: AccountOf(it.Str(schema.PK)), ID: it.Str(schema.Subscription), SKU: it.Str(schema.SKU)},
		ReversalID: id, Kind: ReversalKind(it.Str(schema.Kind)), Period: int(it.Int(schema.Period)), Generation: int(it.Int(schema.Generation)),
		Charge: it.Str(schema.Charge), State: ReversalState(it.Str(schema.State)), Reason: it.Str(schema.Reason), Refusal: it.Str(schema.LastError),
		Ref: it.Str(schema.Refund), Created: ParseStamp(it.Str(schema.CreatedDate)), Processed: ParseStamp(it.Str(schema.ProcessedDate)),
		Ended: ParseStamp(it.Str(schema.EndedDate))}
	if r.Key() != KeyOf(it) {
		return nil, &UnreadableError{schema.SK, "does not go with CreatedDate", nil}
	}
	if r.State != ReversalRequested && r.State != ReversalInquiry && r.State != ReversalPending && !r.State.final() {
		return nil, &UnreadableError{schema.State, "is none of a refund's or dispute's", nil}
	}
	var err error
	if r.Amount, err = decodeAmount(it.Str(schema.Amount), it.Str(schema.Currency)); err != nil {
		return nil, &UnreadableError{schema.Amount, "is no amount in the record's currency", err}
	}
	return r, nil
}

func IsReversal(it store.Item) bool { return strings.HasPrefix(it.Str(schema.SK), refPrefix) }

// GetReturnsByAccount yields the account's refunds and disputes, oldest first.
func (e *Records) GetReversalsByAccount(ctx context.Context, account string) iter.Seq2[*ReversalRecord, error] {
	return decoded(e, ctx, store.Query{Table: e.Table, Partition: AccountPK(account), Prefix: refPrefix}, DecodeReversal)
}

// ReversalRecords yields all refunds and disputes that are recorded. It scans.
func (e *Records) ReversalRecords(ctx context.Context) iter.Seq2[*ReversalRecord, error] {
	return scanned(e, ctx, IsReversal, DecodeReversal)
}

func (e *Records) ReversalsOf(ctx context.Context, account string) (list []*ReversalRecord, err error) {
	for r, err := range e.GetReversalsByAccount(ctx, account) {
		if _, bad := errors.AsType[*UnreadableError](err); bad {
			err = &IllegibleError{Err: err}
		}
		if err != nil {
			return nil, fmt.Errorf("account %s: reading a refund or dispute: %w", account, err)
		}
		list = append(list, r)
	}
	return list, nil
}

// recordFor returns the record of what the processor shows, or nil. Should one request have
// come to two refunds there, only one of them is the request's.
func FindReversal(list []*ReversalRecord, seen Reversal) *ReversalRecord {
	var asked *ReversalRecord
	for _, r := range list {
		switch {
		case r.Kind != seen.Kind:
		case r.Ref == seen.ID:
			return r
		case r.Ref == "" && r.ReversalID == seen.Request && r.AskedHere():
			asked = r
		}
	}
	return asked
}

// recordOfID returns the record of the id, or nil.
func FindReversalID(list []*ReversalRecord, id string) *ReversalRecord {
	for _, r := range list {
		if r.ReversalID == id {
			return r
		}
	}
	return nil
}

const (
	RefundIDPrefix = "rf_"
)

// isRequest reports whether the id is one that refundID makes.
func IsRefundID(id string) bool {
	hexed, ok := strings.CutPrefix(id, RefundIDPrefix)
	_, err := hex.DecodeString(hexed)
	return ok && err == nil && len(hexed) == 32
}

// refuse is the definite answer that nothing goes back.
func (r *ReversalRecord) Refuse(why string, now time.Time) bool {
	if r.State != ReversalRequested {
		return false
	}
	r.State, r.Refusal, r.Ended = ReversalFailed, why, now
	return true
}
