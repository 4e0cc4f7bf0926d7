package adoption

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/cardless"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A scan is an adoption scan. It keeps a summary of every account and eight bytes a subscription.
type scan struct {
	*billing.Records
	catchUp  int
	report   Report
	accounts map[string]*scannedAccount
	seed     maphash.Seed
	names    map[uint64]struct{} // of subscriptions, without their SKU

	unfinished []*scannedAccount // to be written, in order
}

// A scannedAccount is the summary of one account.
type scannedAccount struct {
	id         string
	account    *billing.Account // its item; nil: none
	method     string           // from the options
	email      string           // of the youngest subscription, or of a receipt
	from       source           // of email
	mixed      bool             // subscriptions have different addresses
	created    time.Time
	unreadable bool     // its item; it stays as it is
	bare       []string // sort keys of subscriptions to be charged, but without a method
}

// A source is the item of an address. The order of sources does not depend on the scan's.
type source struct {
	subscription bool
	created      time.Time
	sk           string
}

func (a source) before(b source) bool {
	switch {
	case a.subscription != b.subscription:
		return b.subscription
	case !a.created.Equal(b.created):
		return a.created.Before(b.created)
	}
	return a.sk < b.sk
}

// scanTable checks the options, scans the table, and sums up.
func scanTable(ctx context.Context, e *billing.Records, o Options) (*scan, error) {
	v := &scan{Records: e, catchUp: cmp.Or(o.CatchUp, billing.DefaultCatchUp), accounts: map[string]*scannedAccount{},
		seed: maphash.MakeSeed(), names: map[uint64]struct{}{}}
	switch now, err := settings.Read(ctx, e); {
	case err != nil && !errors.Is(err, store.ErrMissing): // a table that is to be adopted may be there alone
		return v, err
	case err == nil && now.Version > 0:
		v.catchUp = now.CatchUp
	}
	for account, token := range o.Methods {
		if err := cmp.Or(billing.CheckID("account", account), billing.CheckMethod(token)); err != nil {
			return v, err
		}
	}
	for it, err := range e.Store.Scan(ctx, store.Scan{Table: e.Table}) {
		if err != nil {
			return v, err
		}
		v.add(it)
		if v.report.Items++; o.Progress != nil {
			o.Progress(v.report.Items)
		}
	}
	for account, token := range o.Methods {
		if s := v.accounts[account]; s != nil {
			s.method = token
		} else {
			v.report.Unknown.add(account, "has nothing in the table")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.accounts)) {
		v.sum(v.accounts[id])
	}
	return v, nil
}

func (v *scan) add(it store.Item) {
	key := billing.KeyOf(it)
	stray := billing.StrayRow(it)
	if stray != nil {
		v.report.Unreadable.add(label(key), "%s", billing.UnreadableReason(stray))
		v.oldest(it)
	}
	id, inAccount := strings.CutPrefix(key.PK, billing.AccountPK(""))
	if !inAccount {
		run, lease := strings.HasPrefix(key.PK, billing.RunPK("")), strings.HasPrefix(key.PK, billing.LeasePK(""))
		if key == billing.MetaKey || key.PK == settings.Key.PK || run || lease || report.IsSum(key) ||
			strings.HasPrefix(key.PK, billing.KeyPrefix) || strings.HasPrefix(key.PK, lookup.Prefix) {
			v.report.Own++
			return
		}
		v.report.Others++
		v.report.CardsLeft += cardsIn(it)
		return
	}
	s := v.accounts[id]
	if s == nil {
		v.report.Accounts++
		s = &scannedAccount{id: id}
		v.accounts[id] = s
	}
	if _, ok := billing.NameOf(key); ok {
		v.addSubscription(s, key, it)
		return
	}
	v.report.CardsLeft += cardsIn(it)
	switch {
	case key.SK == billing.AccountSK:
		var err error
		if s.account, err = billing.DecodeAccount(it); err != nil {
			v.report.Unreadable.add(label(key), "%s", billing.UnreadableReason(err))
			s.unreadable = true
		}
	case strings.HasPrefix(key.SK, billing.RecPrefix):
		v.addReceipt(s, key, it)
	case strings.HasPrefix(key.SK, billing.PerPrefix), strings.HasPrefix(key.SK, billing.KeyPrefix),
		strings.HasPrefix(key.SK, history.Prefix):
		v.report.Own++
	case stray == nil:
		v.report.Others++
	}
}

func (v *scan) addReceipt(s *scannedAccount, key store.Key, it store.Item) {
	r, err := billing.DecodeReceipt(it)
	if err != nil {
		v.report.Unreadable.add(label(key), "%s", billing.UnreadableReason(err))
		return
	}
	v.report.Receipts++
	s.address(r.Email, source{false, r.Processed, key.SK})
}

func (v *scan) addSubscription(s *scannedAccount, key store.Key, it store.Item) {
	r := &v.report
	r.Cards += cardsIn(it)
	v.oldest(it)
	sub, err := billing.DecodeSubscription(it)
	if err != nil {
		r.Unreadable.add(label(key), "%s", billing.UnreadableReason(err))
		return
	}
	r.Subscriptions++
	if sub.Version > 0 {
		r.Upgraded++
	}
	s.address(sub.Email, source{true, sub.Created, key.SK})
	if !sub.Created.IsZero() && (s.created.IsZero() || sub.Created.Before(s.created)) {
		s.created = sub.Created
	}
	name := maphash.Comparable(v.seed, billing.Name{Account: sub.Account, ID: sub.ID})
	if _, twice := v.names[name]; twice {
		r.Duplicates.add(label(key), "the account has another subscription with this ID")
	}
	v.names[name] = struct{}{}
	v.noteHidden(key, it, sub)
	if sub.Moved && v.Opened.Moved == "" {
		r.Unreadable.add(label(key), "%s", billing.UnreadableReason(billing.ErrStrayMark))
	}
	if sub.Status != billing.Active && sub.Status != billing.ParkedState || sub.Moved {
		if sub.Status == billing.Paused && !it.Has(schema.Status) {
			r.OffAgenda++
		}
		return
	}
	if sub.Method == "" {
		s.bare = append(s.bare, key.SK)
	}
	today := sub.Today(civil.Date{}, v.Now())
	if due, err := sub.Due(); err == nil && !due.After(today) {
		r.Due++
		if sub.Arrears(v.catchUp, today) {
			r.Arrears++
		}
	}
}

// oldest notes the dates at which the jobs must find the item, also if it cannot be read yet.
func (v *scan) oldest(it store.Item) {
	for _, f := range [...]struct {
		name   string
		oldest *civil.Date
	}{{schema.NextPaymentDate, &v.report.OldestPayment}, {schema.NextReminderDate, &v.report.OldestReminder}} {
		d, err := civil.Parse(billing.IndexDate(it.Str(f.name)))
		if err == nil && d.Before(v.Today()) && !d.Before(billing.OldestDate()) {
			*f.oldest = civil.Earlier(*f.oldest, d)
		}
	}
}

// noteHidden notes a row hidden from the jobs: an index's sort key or its shard does not exist.
func (v *scan) noteHidden(key store.Key, it store.Item, sub *billing.Subscription) {
	var missing []string
	if !sub.NextPayment.IsZero() && it.Str(schema.LastPaymentDate) == "" {
		missing = append(missing, "never charged: it has no "+schema.LastPaymentDate)
	}
	if !sub.NextReminder.IsZero() && it.Str(schema.LastReminderDate) == "" {
		missing = append(missing, "never reminded: it has no "+schema.LastReminderDate)
	}
	for _, name := range [...]string{schema.NextPaymentDate, schema.NextReminderDate} {
		if !v.Walks(it.Str(name)) {
			missing = append(missing, "never found, because its "+name+" is in a shard that this store does not have")
		}
	}
	if len(missing) > 0 {
		v.report.NotIndexed.add(label(key), "%s", strings.Join(missing, "; "))
	}
}

func (s *scannedAccount) address(email string, from source) {
	if s.from.subscription && from.subscription && email != s.email {
		s.mixed = true
	}
	if s.from == (source{}) || s.from.before(from) {
		s.email, s.from = email, from
	}
}

// sum counts the findings of an account after the scan.
func (v *scan) sum(s *scannedAccount) {
	r := &v.report
	if s.account != nil && s.account.Email != "" && s.from.subscription && s.email != s.account.Email {
		s.mixed = true
	}
	if s.mixed {
		r.Addresses.add(s.id, "its subscriptions have different addresses; to set one for all, use account update")
	}
	if s.method == "" && !s.unreadable && (s.account == nil || s.account.Method == "") {
		for _, sk := range s.bare {
			r.WithoutMethod.add(label(store.Key{PK: billing.AccountPK(s.id), SK: sk}),
				"neither the subscription nor the account has a payment method")
		}
	}
	switch {
	case billing.CheckID("account", s.id) != nil, s.unreadable: // or the items under it are
		return
	case s.account == nil:
		r.AccountsMade++
	case len(s.completion("").Set) > 0:
		r.AccountsSet++
	default:
		return
	}
	v.unfinished = append(v.unfinished, s)
}

// completion returns the update to give the account its method and, if other tools have made it,
// its address. It sets nothing if nothing is missing, or there is no account.
func (s *scannedAccount) completion(table string) store.Write {
	now := s.account
	if now == nil {
		return store.Write{}
	}
	var set store.Item
	if s.method != "" && s.method != now.Method {
		set.Set(schema.PaymentMethod, store.S(s.method))
	}
	if now.Version == 0 && now.Email == "" && s.email != "" {
		set.Set(schema.Email, store.S(s.email))
	}
	if now.Version == 0 && s.mixed && !now.Mixed {
		set.Set(schema.FanOut, store.S(billing.MixedAddresses))
	}
	if len(set) > 0 {
		set.Set(schema.Version, store.Int(now.Version+1))
	}
	return store.Update(table, billing.AccountKey(s.id), set, nil, now.Unchanged())
}

func cardsIn(it store.Item) int {
	n := 0
	for _, a := range it {
		if a.Name != schema.PK && a.Name != schema.SK { // a key with one makes the item unreadable
			_, found := cardless.Of(store.M(store.NewItem(a)))
			n += found
		}
	}
	return n
}

func label(k store.Key) string { return k.PK + " " + k.SK }
