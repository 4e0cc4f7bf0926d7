package stripefake

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Options say how a Fake behaves. The zero value is a fake without faults.
type Options struct {
	Now  func() time.Time // the clock it starts from; nil: time.Now
	Keys []Key            // that it knows; nil: DefaultKeys
	Log  *slog.Logger     // nil discards
	Faults
}

// A Key is an API key of the fake.
type Key struct {
	Secret  string // sk_test_…, rk_test_…, sk_live_…, rk_live_…: the mode is in the prefix
	Account string // acct_… whose key it is
}

// DefaultAccount is whose keys DefaultKeys are.
const DefaultAccount = "acct_duesday"

// DefaultKeys are the keys of a fake that was told none.
func DefaultKeys() []Key {
	return []Key{{"sk_test_duesday", DefaultAccount}, {"sk_live_duesday", DefaultAccount}, {"rk_test_duesday", DefaultAccount}}
}

// A Fake is Stripe's API. It is safe for concurrent use: requests are carried out one at a
// time, under one lock, but for the time that they wait.
type Fake struct {
	o      Options
	routes []route
	mux    *http.ServeMux

	mu       sync.Mutex
	spaces   map[spaceKey]*space // guarded by mu
	revoked  map[string]bool     // guarded by mu; keys that are answered 401
	gone     map[string]bool     // guarded by mu; connected accounts that have disconnected
	offset   time.Duration       // guarded by mu; of its clock to Options.Now
	numbered uint64              // guarded by mu; ids so far
}

// A space is the objects of one account in one mode.
type space struct {
	account string
	live    bool
	kinds   map[string]*kind // by the name of the kind: payment_intent
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

// New returns a Fake.
func New(o Options) *Fake {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Keys == nil {
		o.Keys = DefaultKeys()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fake{o: o, spaces: map[spaceKey]*space{}, revoked: map[string]bool{}, gone: map[string]bool{}}
	return f
}

// now is the fake's clock. mu is held.
func (f *Fake) now() time.Time { return f.o.Now().Add(f.offset) }

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
