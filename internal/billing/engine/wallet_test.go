package engine_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/processor"
)

// A purse is a processor's customers and cards, beside the world's ledger, and survives the
// processes. A card behaves as one of the sandbox's payment methods.
type purse struct {
	w *world

	mu        sync.Mutex
	customers map[string]processor.CustomerRequest // by id; guarded by mu, as are the others
	keys      map[string]string                    // idempotency key -> customer
	cards     map[string]held                      // by token
	defaults  map[string]string                    // customer -> token
	setups    []processor.Setup
	links     []processor.LinkRequest
	payers    map[string]processor.Payer // of intents, by ref
	refused   map[string]bool            // connected accounts that refuse us
	fails     []error                    // of the next calls of the wallet
	asked     int                        // Card calls

	meet *sync.WaitGroup // as many as ask for a customer at once, and get one each; nil: none
}

type held struct {
	processor.Card
	at, customer, acts string
}

// newPurse returns a world whose processor keeps customers and cards.
func newPurse(at string) (*world, *purse) {
	p := &purse{customers: map[string]processor.CustomerRequest{}, keys: map[string]string{}, cards: map[string]held{},
		defaults: map[string]string{}, payers: map[string]processor.Payer{}, refused: map[string]bool{}}
	p.w = newWorld(at, planted{proc: func(_ *world, inner processor.Charger) processor.Charger {
		return &wallet{wire: inner.(*wire), purse: p}
	}})
	return p.w, p
}

// give makes a card of the customer's, now.
func (p *purse) give(at, customer, token, acts string) processor.Card {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := processor.Card{Method: token, Brand: "visa", Last4: "4242", Expires: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		Made: p.w.now()}
	p.cards[token] = held{c, at, customer, acts}
	if p.defaults[customer] == "" {
		p.defaults[customer] = token
	}
	return c
}

// use is a customer who gives a card by the link that was made last.
func (p *purse) use(token, acts string) {
	p.mu.Lock()
	r := p.links[len(p.links)-1]
	p.mu.Unlock()
	c := p.give(r.Payer.At, r.Payer.Customer, token, acts)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setups = append(p.setups, processor.Setup{ID: fmt.Sprint("seti_", len(p.setups)), At: r.Payer.At,
		Customer:     r.Payer.Customer,
		Installation: r.Installation, Account: r.Account, Subscription: r.Subscription, Card: c})
}

// wallet is a process's way to the purse.
type wallet struct {
	*wire
	purse *purse
}

var _ processor.Wallet = (*wallet)(nil)

// point passes the faults before a call, and after it.
func (x *wallet) point(do func() error) error {
	if err := x.p.faults.at(processor.ErrUnknown); err != nil {
		return err
	}
	x.purse.mu.Lock()
	var err error
	if len(x.purse.fails) > 0 {
		err, x.purse.fails = x.purse.fails[0], x.purse.fails[1:]
	} else {
		err = do()
	}
	x.purse.mu.Unlock()
	if hit := x.p.faults.at(processor.ErrUnknown); hit != nil {
		return hit
	}
	return err
}

func (x *wallet) MakeCustomer(_ context.Context, r processor.CustomerRequest) (id string, err error) {
	err = x.point(func() error {
		if id = x.purse.keys[r.Key]; id == "" || x.purse.meet != nil {
			id = fmt.Sprint("cus_", len(x.purse.customers))
			x.purse.keys[r.Key], x.purse.customers[id] = id, r
		}
		return nil
	})
	if x.purse.meet != nil {
		x.purse.meet.Done()
		x.purse.meet.Wait()
	}
	return id, err
}

func (x *wallet) Attach(_ context.Context, p processor.Payer, method string) (card processor.Card, err error) {
	err = x.point(func() error {
		if method == "" {
			method = x.purse.defaults[p.Customer]
		}
		h, ok := x.purse.cards[method]
		if !ok || h.at != p.At || (h.customer != "" && h.customer != p.Customer) {
			return processor.ErrInvalid
		}
		h.customer = p.Customer
		x.purse.cards[method], card = h, h.Card
		return nil
	})
	return card, err
}

func (x *wallet) Card(_ context.Context, at, method string) (card processor.Card, err error) {
	err = x.point(func() error {
		x.purse.asked++
		h, ok := x.purse.cards[method]
		if !ok || h.at != at {
			return processor.ErrInvalid
		}
		card = h.Card
		return nil
	})
	return card, err
}

func (x *wallet) CardLink(_ context.Context, r processor.LinkRequest) (l processor.CardLink, err error) {
	err = x.point(func() error {
		if r.Payer.Customer == "" {
			return processor.ErrInvalid
		}
		x.purse.links = append(x.purse.links, r)
		l = processor.CardLink{URL: fmt.Sprint("https://pay.example/secret_", len(x.purse.links)),
			Expires: x.purse.w.now().Add(24 * time.Hour)}
		return nil
	})
	return l, err
}

func (x *wallet) Setups(_ context.Context, r processor.ListRequest) iter.Seq2[processor.Setup, error] {
	return func(yield func(processor.Setup, error) bool) {
		var found []processor.Setup
		err := x.point(func() error {
			if x.purse.refused[r.At] {
				return processor.ErrAccountRefused
			}
			for _, s := range x.purse.setups {
				if s.At == r.At && !s.Card.Made.Before(r.Since) {
					found = append(found, s)
				}
			}
			return nil
		})
		for _, s := range found {
			if !yield(s, nil) {
				return
			}
		}
		if err != nil {
			yield(processor.Setup{}, err)
		}
	}
}

// acts is the sandbox's method that the card behaves as.
func (p *purse) acts(method string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h, ok := p.cards[method]; ok {
		return h.acts
	}
	return method
}

func (x *wallet) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	payer := r.Payer
	r.Payer, r.Method = processor.Payer{}, x.purse.acts(r.Method)
	in, err := x.wire.Open(ctx, r)
	if err == nil {
		x.purse.mu.Lock()
		x.purse.payers[in.Ref] = payer
		x.purse.mu.Unlock()
	}
	return in, err
}

// Confirm takes a customer's card for that customer's intents alone, as Stripe does.
func (x *wallet) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	x.purse.mu.Lock()
	h, known := x.purse.cards[r.Method]
	payer := x.purse.payers[r.Ref]
	x.purse.mu.Unlock()
	if known && (h.at != payer.At || h.customer != payer.Customer) {
		x.purse.w.violate("%s of %q at %q was sent with the card %s of %q at %q", r.Ref, payer.Customer, payer.At, r.Method,
			h.customer, h.at)
		return processor.Intent{}, processor.ErrInvalid
	}
	r.Method = x.purse.acts(r.Method)
	return x.wire.Confirm(ctx, r)
}

func (x *wallet) List(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Intent, error] {
	return func(yield func(processor.Intent, error) bool) {
		if x.purse.refused[r.At] {
			yield(processor.Intent{}, processor.ErrAccountRefused)
			return
		}
		at, customer := r.At, r.Customer
		r.At, r.Customer = "", ""
		for in, err := range x.wire.List(ctx, r) {
			x.purse.mu.Lock()
			p := x.purse.payers[in.Ref]
			x.purse.mu.Unlock()
			if err == nil && (p.At != at || (customer != "" && p.Customer != customer)) {
				continue
			}
			if !yield(in, err) {
				return
			}
		}
	}
}
