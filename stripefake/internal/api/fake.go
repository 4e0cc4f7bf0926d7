package api

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// Options are stripefake.Options, with the resources that the fake serves.
type Options struct {
	Now, Real func() time.Time
	Keys      []Key
	Connected []string
	Transport http.RoundTripper // nil: http.DefaultTransport
	Log       *slog.Logger
	Events    EventForm // guarded by Mu
	Faults
	Resources
}

// Resources are the routes and kinds of the packages above this one.
type Resources struct {
	Routes    []Route
	Timed     map[string]Timed               // by kind: payment_intent
	Followers map[string]func(*Call, object) // by the step they follow
	Decline   func(code string) *shape.Error // the error of a declined card; nil for an unknown code
}

// Routes are the endpoints of this package.
func Routes() []Route {
	return slices.Concat(accountRoutes(), eventRoutes(), thinRoutes(), endpointRoutes())
}

// A Key is an API key of the fake.
type Key struct {
	Secret  string   // sk_test_…, rk_test_…, sk_live_…, rk_live_…: the prefix has the mode
	Account string   // acct_…, the key's account
	Refused []string // forbidden prefixes: "/v1/refunds", "POST /v1/customers"
}

// DefaultAccount is the account of the default keys.
const DefaultAccount = "acct_duesday"

// A Fake is the state of all accounts and the API over it. Requests are carried out under Mu.
type Fake struct {
	Options Options
	router  router
	post    *postOffice

	Mu       sync.Mutex
	faults   Faults                // guarded by mu
	dice     *rand.Rand            // guarded by mu
	spaces   map[spaceKey]*Space   // guarded by mu
	accounts map[string]*account   // guarded by mu; by id, disconnected ones too
	revoked  map[string]bool       // guarded by mu; keys answered with 401
	clock    Clock                 // guarded by mu
	own      *agenda               // guarded by mu; of its clock, for all accounts
	Numbered uint64                // guarded by mu; ids so far
	windows  map[limit][]time.Time // guarded by mu; of the rate limit: the requests of the last second
	counts   []Count               // guarded by mu; by endpoint and status
	requests []Request             // guarded by mu; a ring of the last ones, from oldest on
	oldest   int                   // guarded by mu
	failures []*failure            // guarded by mu; planned by FailNext
}

// A Space has the objects of one account in one mode.
type Space struct {
	Account string
	Live    bool
	kinds   map[string]*kind // by the name of the kind: payment_intent
	keys    idempotency
}

type spaceKey struct {
	account string
	live    bool
}

// A kind has the objects of one kind, in the order of creation.
type kind struct {
	byID  map[string]object
	order []string
}

// New returns a Fake. The caller must fill in every option.
func New(o Options) *Fake {
	f := &Fake{Options: o, router: newRouter(append(Routes(), o.Routes...)), faults: o.Faults, dice: newDice(o.Seed),
		spaces: map[spaceKey]*Space{}, accounts: map[string]*account{}, revoked: map[string]bool{}, own: newAgenda(),
		windows: map[limit][]time.Time{}}
	now := o.Now().Round(0)
	f.clock = Clock{now, now, 1}
	f.post = newPostOffice(f)
	defer f.lock()()
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
	return f
}

// AddWebhook adds the endpoint in both modes; a Connect endpoint, which gets both, in live mode. It
// gets the events of the form, or those there are.
func (f *Fake) AddWebhook(url, secret string, connect bool, form EventForm) {
	defer f.lock()()
	for _, live := range []bool{false, true} {
		if live || !connect {
			f.System(f.In(DefaultAccount, live)).newEndpoint(object{"api_version": nil, "description": nil, "url": url,
				"enabled_events": []any{"*"}, "_events": string(form)}, secret, connect)
		}
	}
}

// lock locks the fake, until the caller unlocks it: defer f.lock()().
func (f *Fake) lock() (unlock func()) {
	f.Mu.Lock()
	return f.Mu.Unlock
}

// time returns the time of the fake's clock. The caller holds Mu.
func (f *Fake) time() time.Time { return f.clock.at(f.Options.Now()) }

// In returns the objects of the account. The caller holds Mu.
func (f *Fake) In(account string, live bool) *Space {
	k := spaceKey{account, live}
	s := f.spaces[k]
	if s == nil {
		s = &Space{account, live, map[string]*kind{}, idempotency{byKey: map[string]*attempt{}}}
		f.spaces[k] = s
	}
	return s
}

// System returns a call without a request. The caller holds Mu.
func (f *Fake) System(s *Space) *Call {
	return &Call{Fake: f, Space: s, Now: f.time().Unix(), Version: f.defaultVersion(s.Account), Path: map[string]string{}}
}

// EachSpace shows the objects of every account, in both modes.
func (f *Fake) EachSpace(show func(*Space)) {
	defer f.lock()()
	for _, s := range f.spaces {
		show(s)
	}
}

// lacks has, by kind, the members of nearly every object that its objects do not have.
var lacks = map[string]string{"event": "metadata", thinKind: "metadata", "invoice_payment": "metadata", "invoiceitem": "created",
	"refund": "livemode", "discount": "created livemode metadata", ClockKind: "metadata"}

// Create stores a new object of the kind (payment_intent, …). It gives it an id with the prefix
// (pi), object, created, livemode and metadata, unless members or lacks say otherwise.
func (c *Call) Create(kindName, prefix string, members object) object {
	o := members.With("object", kindName)
	for name, value := range map[string]any{"created": c.Now, "livemode": c.Space.Live, "metadata": object{}} {
		if _, given := o[name]; !given && !slices.Contains(strings.Fields(lacks[kindName]), name) {
			o[name] = value
		}
	}
	o["_created"] = c.Now
	if o.ID() == "" {
		o["id"] = c.NewID(prefix)
	}
	c.Space.Put(kindName, o)
	return o
}

// Make is Create with an event …created.
func (c *Call) Make(kindName, prefix string, members object) object {
	o := c.Create(kindName, prefix, members)
	c.Emit(kindName+".created", o, nil)
	return o
}

func (s *Space) of(kindName string) *kind {
	k := s.kinds[kindName]
	if k == nil {
		k = &kind{byID: map[string]object{}}
		s.kinds[kindName] = k
	}
	return k
}

func (s *Space) Put(kindName string, o object) {
	k := s.of(kindName)
	if _, there := k.byID[o.ID()]; !there {
		k.order = append(k.order, o.ID())
	}
	k.byID[o.ID()] = o
}

// Get returns the object for a change in place, or nil.
func (s *Space) Get(kindName, id string) object { return s.of(kindName).byID[id] }

// All returns the objects of the kind, oldest first.
func (s *Space) All(kindName string) (list []object) {
	k := s.of(kindName)
	for _, id := range k.order {
		list = append(list, k.byID[id])
	}
	return list
}

// Find is Get, with Stripe's error about the parameter. Deleted objects are found too.
func (c *Call) Find(kindName, id, param string) (object, error) {
	if o := c.Space.Get(kindName, id); o != nil {
		return o, nil
	}
	err := shape.Missing(kindName, id, param)
	if c.In(c.Space.Account, !c.Space.Live).Get(kindName, id) != nil {
		mode := map[bool]string{true: "live", false: "test"}
		err.Message += "; a similar object exists in " + mode[!c.Space.Live] + " mode, but a " + mode[c.Space.Live] +
			" mode key was used to make this request."
	}
	return nil, err
}

// NewID returns a new id: the prefix, and a unique tail.
func (f *Fake) NewID(prefix string) string {
	f.Numbered++
	tail := strconv.FormatUint(f.Numbered, 36)
	return prefix + "_fake" + strings.Repeat("0", max(0, 10-len(tail))) + tail
}

// Drop forgets an object.
func (s *Space) Drop(kindName, id string) {
	k := s.of(kindName)
	delete(k.byID, id)
	k.order = slices.DeleteFunc(slices.Clone(k.order), func(other string) bool { return other == id })
}

// Act does something to the object, in the space that has it.
func (f *Fake) Act(kindName, id string, do func(*Call, object) error) error {
	defer f.lock()()
	f.Tick()
	for _, s := range f.spaces {
		if o := s.Get(kindName, id); o != nil {
			return do(f.System(s), o)
		}
	}
	return shape.Missing(kindName, id, "id")
}
