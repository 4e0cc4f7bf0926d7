package stripefake

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Options say how a Fake behaves. The zero value is a fake without faults.
type Options struct {
	Now      func() time.Time // the clock it starts from; nil: time.Now
	Real     func() time.Time // the clock that Rate is measured by, which nobody moves; nil: time.Now
	Keys     []Key            // that it knows; nil: DefaultKeys
	Webhooks []Webhook        // endpoints of DefaultAccount that are there from the start, for events of both modes and all types
	// Connected are the accounts, by id, that are connected to DefaultAccount from the start.
	// There is no event of that. The ids have to pass CheckAccount.
	Connected []string
	Log       *slog.Logger // nil discards
	Faults
}

// A Key is an API key of the fake.
type Key struct {
	Secret  string   // sk_test_…, rk_test_…, sk_live_…, rk_live_…: the mode is in the prefix
	Account string   // acct_… whose key it is
	Refused []string // beginnings of what a restricted key may not do: "/v1/refunds", or "POST /v1/customers" for the method alone
}

// A Webhook is an endpoint that events are sent to.
type Webhook struct {
	URL     string // http or https
	Secret  string // whsec_…, that it is signed with
	Connect bool   // for the events of connected accounts, and not for those of the account itself
}

// DefaultAccount is whose keys DefaultKeys are.
const DefaultAccount = "acct_duesday"

// DefaultKeys are the keys of a fake that was told none. They are no secrets.
func DefaultKeys() []Key {
	return []Key{
		{Secret: "sk_test_duesday", Account: DefaultAccount},
		{Secret: "sk_live_duesday", Account: DefaultAccount},
		{Secret: "rk_test_duesday", Account: DefaultAccount},
	}
}

// A Fake is Stripe's API. It is safe for concurrent use: requests are carried out one at a
// time, under one lock, but for the time that they wait.
type Fake struct {
	o       Options
	router  *router
	control http.Handler
	pages   http.Handler
	post    *postOffice

	scheduled map[string]timed               // by kind
	followers map[string]func(*call, object) // by the name of the step

	mu       sync.Mutex
	faults   Faults              // guarded by mu
	dice     *rand.Rand          // guarded by mu
	spaces   map[spaceKey]*space // guarded by mu
	accounts map[string]*account // guarded by mu; all that there ever were, by id
	revoked  map[string]bool     // guarded by mu; keys that are answered 401
	offset   time.Duration       // guarded by mu; of its clock to Options.Now
	own      *agenda             // guarded by mu; of its clock, for all accounts
	numbered uint64              // guarded by mu; ids so far
	windows  map[string]*window  // guarded by mu; of the rate limit, by account, mode and endpoint
	counts   map[countKey]*tally // guarded by mu
}

// A space is the objects of one account in one mode.
type space struct {
	account string
	live    bool
	kinds   map[string]*kind // by the name of the kind: payment_intent
	keys    idempotency
}

type spaceKey struct {
	account string
	live    bool
}

// A kind is the objects of one kind, in the order in which they were made.
type kind struct {
	byID  map[string]object
	order []string
}

// New returns a Fake. Its faults have to pass their Check. Close it when it has sent webhooks.
func New(o Options) *Fake {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Real == nil {
		o.Real = time.Now
	}
	if o.Keys == nil {
		o.Keys = DefaultKeys()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fake{
		o: o, router: newRouter(allRoutes()), faults: o.Faults, dice: newDice(o.Seed),
		spaces: map[spaceKey]*space{}, accounts: map[string]*account{}, revoked: map[string]bool{},
		own: newAgenda(), windows: map[string]*window{}, counts: map[countKey]*tally{},
	}
	f.scheduled = map[string]timed{
		"subscription_schedule": {0, scheduleDue, (*call).scheduleHappens}, // a phase of it ends before its subscription would renew
		"invoice":               {1, invoiceDue, (*call).invoiceHappens},
		"subscription":          {2, subscriptionDue, (*call).subscriptionHappens},
		"checkout.session":      {3, sessionDue, (*call).expireSession},
	}
	f.followers = map[string]func(*call, object){intentMoved: (*call).followIntent, customerLeaves: (*call).customerGone}
	f.control = f.controls()
	f.pages = f.pageHandler()
	f.post = newPostOffice(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range o.Keys {
		if f.accounts[k.Account] == nil {
			f.addAccount(k.Account, "", nil)
		}
	}
	for _, id := range o.Connected {
		if f.accounts[id] == nil {
			f.addAccount(id, DefaultAccount, nil)
		}
	}
	for _, hook := range o.Webhooks {
		f.addWebhook(hook)
	}
	return f
}

// addWebhook adds the endpoint in both modes. A Connect endpoint is added in live mode alone,
// where it gets the events of both. mu is held.
func (f *Fake) addWebhook(hook Webhook) {
	for _, live := range []bool{false, true} {
		if live || !hook.Connect {
			f.system(f.in(DefaultAccount, live)).addEndpoint(hook)
		}
	}
}

// time is that of the fake's clock. mu is held.
func (f *Fake) time() time.Time { return f.o.Now().Add(f.offset) }

// in returns the objects of the account. mu is held.
func (f *Fake) in(account string, live bool) *space {
	k := spaceKey{account, live}
	s := f.spaces[k]
	if s == nil {
		s = &space{account: account, live: live, kinds: map[string]*kind{}}
		f.spaces[k] = s
	}
	return s
}

// system is a call by nobody: what happens at Stripe by itself, or is asked for by the
// control API or a page. mu is held.
func (f *Fake) system(s *space) *call {
	return &call{Fake: f, space: s, now: f.time().Unix(), version: f.defaultVersion(s.account), form: form{}, path: map[string]string{}}
}

// holder returns the space that has the object, or nil. mu is held.
func (f *Fake) holder(kindName, id string) *space {
	for _, s := range f.spaces {
		if s.get(kindName, id) != nil {
			return s
		}
	}
	return nil
}
