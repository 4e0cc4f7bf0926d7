package audit

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/kept"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// add gathers one item.
func (a *auditor) add(it store.Item) {
	key := billing.KeyOf(it)
	stray := billing.StrayRow(it)
	a.given.Meet(it)
	switch n, isSub := billing.NameOf(key); {
	case key.PK == settings.Key.PK:
		a.addSettings(key, it)
	case isSub:
		s, err := billing.DecodeSubscription(it)
		if err != nil {
			a.problem("unreadable subscription", n, 0, "%v", err)
			return
		}
		a.addSubscription(s)
	case lookup.IsRow(it):
		a.toggle(it)
	case stray != nil:
		key.SK = secret.MaskCards(key.SK)
		a.unreadable("subscription", key, billing.UnreadableReason(stray))
	case numbering.IsNumber(key):
		gather(a, "receipt number", it, numbering.Decode, func(*numbering.Number) {})
	case report.IsSum(key):
		a.met.add(report.TimeOf(it))
		if list, err := report.Decode(it); err != nil {
			a.unreadable("sums", key, err)
			for _, s := range list {
				a.result.Corrections = append(a.result.Corrections, report.Correction{Sum: s, Was: it}) // those that can be read stay
			}
		}
	case key.PK == billing.DoubtPK:
		gather(a, "doubt", it, billing.DecodeDoubt, func(d *billing.Doubt) {
			a.problem("perhaps paid twice", d.Name, d.Period, "another tool %s during the charge; check whether that tool took the payment, "+
				"then run duesday subscription update %s/%s --paid-once", billing.MovedTo(d.Moved), d.Account, d.ID)
		})
	case key.SK == billing.AccountSK:
		a.accounts[a.hash(billing.AccountOf(key.PK))] = account{mixed: true} // an unreadable one is there
		gather(a, "account", it, billing.DecodeAccount, a.addAccount)
	case strings.HasPrefix(key.SK, billing.RecPrefix):
		gather(a, "receipt", it, billing.DecodeReceipt, a.addReceipt)
	case billing.IsReversal(it):
		gather(a, "refund", it, billing.DecodeReversal, a.addReversal)
	case strings.HasPrefix(key.SK, billing.PerPrefix):
		gather(a, "period", it, billing.DecodePeriod, a.addEnded)
	case strings.HasPrefix(key.SK, billing.KeyPrefix), strings.HasPrefix(key.PK, billing.KeyPrefix) && it.Has(schema.Kind):
		gather(a, "request", it, billing.DecodeKeyed, a.addKeyed)
	case strings.HasPrefix(key.SK, history.Prefix):
		gather(a, "history", it, history.Decode, func(*history.Entry) {})
	case strings.HasPrefix(key.PK, billing.RunPK("")) && key.SK != billing.WatermarkSK:
		a.addRun(key, it)
	case strings.HasPrefix(key.PK, billing.RunPK("")):
		gather(a, "low watermark", it, billing.DecodeWatermark, func(*billing.Watermark) {})
	}
}

// addSettings checks the settings, or gathers a change of them. The shortest time by any settings
// after which a receipt expired counts for subscriptions that do not tell.
func (a *auditor) addSettings(key store.Key, it store.Item) {
	if key == settings.Key {
		if _, err := settings.Decode(it); err != nil {
			a.problem("unreadable settings", billing.Name{}, 0, "%v", err)
		}
		return
	}
	months, err := strconv.Atoi(it.Get(schema.Before).Map().Str("receipt-months"))
	if err == nil && months > 0 && (a.o.ReceiptMonths == 0 || months < a.o.ReceiptMonths) {
		a.o.ReceiptMonths = months
	}
}

// gather adds a readable item.
func gather[T any](a *auditor, noun string, it store.Item, decode func(store.Item) (*T, error), add func(*T)) {
	v, err := decode(it)
	if err != nil {
		a.unreadable(noun, billing.KeyOf(it), err)
		return
	}
	add(v)
}

func (a *auditor) addAccount(acc *billing.Account) {
	a.toggle(lookup.OfAccount(acc, a.Opened.Shards)...)
	a.accounts[a.hash(acc.ID)] = account{uint32(a.hash(acc.Email)), a.zone(acc.TimeZone), acc.Mixed}
	if acc.Copying {
		a.problem("unfinished address change", billing.Name{Account: acc.ID}, 0, "set the address again to finish it")
	}
}

// zone returns a hash of the time zone's name that is not 0.
func (a *auditor) zone(name string) uint16 { return uint16(a.hash(cmp.Or(name, "UTC"))) | 1 }

func (a *auditor) addSubscription(s *billing.Subscription) {
	a.toggle(lookup.OfSubscription(s, a.Opened.Shards)...)
	a.addTakeover(s)
	k := a.sub(s.Name)
	if same := a.find(s.Name); same != nil && a.texts[same.sku] == s.Name.SKU {
		a.problem("two subscriptions with one ID", s.Name, s.Period, "other tools wrote it under two keys: %s is charged, and "+
			"%s is not; delete one of them", s.Name.Key().SK, s.Name.TextKey().SK)
		if s.Key() != s.Name.Key() {
			return
		}
		k, same.rows = same, [indexes]uint32{} // an SKU such as !9 sorts before #, so the twin came first
	} else if a.result.Subscriptions++; k.next >= 0 {
		a.problem("two subscriptions with one ID", s.Name, s.Period, "other tools may write it under two SKUs, here %s and %s; "+
			"commands only find one of them", a.texts[k.sku], s.Name.SKU)
		twin := &audited{name: k.name}
		a.twins[twin], a.twins[k] = a.twins[k], twin
		k = twin
	}
	k.next, k.email, k.created = int32(max(0, s.Period)), uint32(a.hash(s.Email)), civil.Of(s.Created)
	k.status, k.sku, k.kept = a.once(string(s.Status)), a.once(s.Name.SKU), a.once(s.Kept)
	k.anchor, k.from, k.day = s.Anchor, int32(s.AnchorPeriod), uint8(s.PaymentDay)
	if months := kept.Least(s.Kept); months > 0 && (a.kept == 0 || months < a.kept) {
		a.kept = months
	}
	k.pastDue = s.Status == billing.PastDue && s.Requested != billing.RequestCancel
	if s.Ours() {
		k.zone = a.zone(s.TimeZone)
	}
	k.interval, k.unit = uint16(s.Interval.N), s.Interval.Unit
	a.noteRows(k, s.Raw)
	a.checkState(s)
	a.checkEnd(k, s)
	a.checkAgenda(s)
	if s.Moved && a.Opened.Moved == "" {
		a.problem("unreadable subscription", s.Name, s.Period, "%v", billing.ErrStrayMark)
	}
	if moved := s.Altered(); moved != "" {
		a.problem("changed by another tool", s.Name, s.Period, "%s; the run of that day parks it", moved)
	}
	if s.Redone != "" {
		a.problem("invalid schedule", s.Name, s.Period, "%s", s.Redone)
	}
	if s.Open != nil {
		a.result.Open++
		a.explain(s.Name, s.Open.Period, s.Open.Price, s.Open.Amount)
		a.opens[k] = opening{strings.Clone(s.Open.Ref), s.Open.Period}
		a.sums.addText(s.Open.Declined)
	} else if s.Collect > 0 {
		a.opens[k] = opening{"", s.AtHand()}
	}
	if s.Status == billing.ParkedState {
		a.result.Parked++
	}
}

// explain checks that the amount is what its price says.
func (a *auditor) explain(n billing.Name, period int, p *price.Price, amount money.Amount) {
	if err := p.Explain(period, amount); err != nil {
		a.problem("price differs", n, period, "%v", err)
	}
}

func (a *auditor) addReceipt(r *billing.Receipt) {
	a.explain(r.Name, r.Period, r.Price, r.Amount)
	a.sums.add(report.OfReceipt(r)...)
	a.sums.add(report.BeforeReceipt(r)...)
	m := mark{ref: a.hash(r.Charge), minor: r.Amount.Minor(), currency: r.Amount.Currency(), sku: a.once(r.Name.SKU),
		price: uint32(a.hash(r.Price.Text())), period: int32(r.Period), due: r.Due, taken: civil.Of(r.Processed.UTC()),
		failed: r.Recovered != "" && r.Recovered != billing.RecoveredDecline}
	switch r.Kind {
	case billing.Imported:
		a.result.Imported++
		return
	case billing.Overpayment:
		a.overpaid = append(a.overpaid, Problem{Kind: "overpaid", Account: r.Account, Subscription: r.ID,
			Period: r.Period, Detail: fmt.Sprintf("a manual payment of %s was recorded on %s, and the period was also charged; "+
				"return one of the payments", r.Amount, r.Processed.Format(time.DateOnly))})
		return
	case billing.External:
		a.result.External++
		m.kind = receiptOfPerson
	default:
		a.result.Receipts++
	}
	if place, _, connected := strings.Cut(r.Charge, "/"); connected && m.kind == receiptOfCharge {
		at := a.texts[a.once(place)]
		a.charged[at], a.placed[m.ref] = true, at
	}
	s := a.sub(r.Name)
	s.marks = append(s.marks, m)
}

func (a *auditor) addEnded(p *billing.EndedPeriod) {
	a.explain(p.Name, p.Period, p.Price, p.Amount)
	a.sums.add(report.OfPeriod(p)...)
	a.sums.addText(p.Declined)
	m := mark{kind: recordOfEnd, sku: a.once(p.Name.SKU), period: int32(p.Period), due: p.Due,
		failed: p.Ending == billing.EndFailed}
	switch p.Ending {
	case billing.EndParked:
		m.kind = recordOfParking
	case billing.EndFailed, billing.EndVoid, billing.EndSkipped:
	default:
		a.problem("unknown period ending", p.Name, p.Period, "must be %s, %s, %s or %s (got %q)", billing.EndFailed,
			billing.EndVoid, billing.EndSkipped, billing.EndParked, p.Ending)
	}
	s := a.sub(p.Name)
	s.marks = append(s.marks, m)
}

// addKeyed checks a request with a key. It may outlive its receipts, and decides nothing.
func (a *auditor) addKeyed(k *billing.KeyedRequest) {
	switch k.Kind {
	case billing.KeyedReceipt, billing.KeyedCharge, billing.KeyedRefund, billing.KeyedUpgrade:
	default:
		a.problem("unknown request kind", k.Name, k.Period, "must be %s, %s, %s or %s (got %q)", billing.KeyedReceipt,
			billing.KeyedCharge, billing.KeyedRefund, billing.KeyedUpgrade, k.Kind)
	}
}

// addRun checks the balance of a run.
func (a *auditor) addRun(key store.Key, it store.Item) {
	counts := it.Get(schema.Counts).Map()
	sum := int64(0)
	for _, c := range counts {
		if c.Name != "due" {
			n, _ := c.Value.Int64()
			sum += n
		}
	}
	if due := counts.Int("due"); due != sum {
		a.problem("run does not balance", billing.Name{}, 0, "%s %s: due %d, outcomes %d", key.PK, key.SK, due, sum)
	}
}
