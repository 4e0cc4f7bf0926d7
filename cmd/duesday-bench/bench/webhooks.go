package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/listen"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
	"github.com/duesday/duesday/stripefake"
)

const (
	installation  = "00000000-0000-4000-8000-00000000beef"
	hookPath      = "/webhooks/connect"
	hookAccounts  = 860 // connected accounts, as many as the published design had
	setUpAtOnce   = 64
	minimalEvents = 1000
)

// Webhooks is the product from the socket on: the endpoint, the signature, the merge and the
// embedded store. Actions of purchases are put into the outbox, and not delivered.
type Webhooks struct {
	store     *pebblestore.Store
	service   *tracking.Service
	key       secret.Text
	templates []template
	address   string
	stop      context.CancelFunc
	served    chan error

	subscriptions []string // the purchase of each
	payments      []string // of those that are not paid yet; the others are ""
	paid          int      // events about payments so far
	made          int      // events so far
	first         int      // number of the first event that is ready
	ready         []mac    // of the events from there on
	signed        time.Time
	base          time.Time
	accounts      int // connected ones
}

// OpenWebhooks opens an empty one in the folder, with connected accounts, and listens. With
// verifyOnly the endpoint verifies an event and answers, without reading or storing it.
func OpenWebhooks(ctx context.Context, dir string, cacheBytes int64, verifyOnly bool) (*Webhooks, error) {
	return openWebhooks(ctx, dir, cacheBytes, hookAccounts, verifyOnly)
}

func openWebhooks(ctx context.Context, dir string, cacheBytes int64, accounts int, verifyOnly bool) (*Webhooks, error) {
	tables := schema.New(schema.DefaultPrefix)
	s, err := pebblestore.Open(dir, pebblestore.Options{Tables: tables.All(), Names: schema.Names(), Create: true,
		CacheBytes: cacheBytes, Holder: "duesday-bench"})
	if err != nil {
		return nil, err
	}
	w := &Webhooks{store: s, key: secret.New("whsec_of_the_benchmark"), stop: func() {}, served: make(chan error, 1),
		base: time.Now(), accounts: accounts}
	if err := w.open(ctx, tables, verifyOnly); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return w, nil
}

func (w *Webhooks) open(ctx context.Context, tables schema.Tables, verifyOnly bool) (err error) {
	if w.templates, err = templates(ctx); err != nil {
		return err
	}
	w.service, err = tracking.Open(ctx, tracking.Options{Store: w.store, Tables: tables, Installation: installation,
		Own: stripefake.DefaultAccount, Decode: event.Decode, Finder: nobody{}, Seller: nobody{templates: w.templates}})
	if err != nil {
		return err
	}
	for n := range w.accounts {
		if _, err := w.service.Register(ctx, fmt.Sprintf("00000000-0000-4000-8000-%012d", n),
			stripeID("acct", n)); err != nil {
			return err
		}
	}
	inbox := httpapi.Inbox(w.service)
	if verifyOnly {
		inbox = answers{}
	}
	h := httpapi.New(httpapi.Options{Inbox: inbox, Shop: w.service,
		Verify: event.Verify,
		Hooks:  []httpapi.Hook{{Path: hookPath, Connect: true, Secrets: []secret.Text{w.key}}}})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.address = l.Addr().String()
	go func() {
		w.served <- web.Serve(ctx, l, h, listen.Limits{Connections: 1024}, slog.New(slog.DiscardHandler))
	}()
	return nil
}

// Close stops the server and closes the store.
func (w *Webhooks) Close() error {
	w.stop()
	return errors.Join(<-w.served, w.store.Close())
}

// Settle waits until no compaction runs, two minutes at most.
func (w *Webhooks) Settle() { settle(w.store.Metrics) }

// BodyBytes is the mean size of the events' bodies.
func (w *Webhooks) BodyBytes() int {
	sum := 0
	for _, t := range w.templates {
		sum += len(t.body)
	}
	return sum / len(w.templates)
}

// Prepare makes purchases until there are that many subscriptions and enough payments for the
// next events, and signs these. They are to be sent within five minutes.
func (w *Webhooks) Prepare(ctx context.Context, subscriptions, events int) error {
	events = max(events, minimalEvents)
	if err := w.sell(ctx, tracking.Subscribe, &w.subscriptions, subscriptions); err != nil {
		return err
	}
	if err := w.sell(ctx, tracking.Legacy, &w.payments, w.paid+events/len(w.templates)+1); err != nil {
		return err
	}
	return w.sign(events)
}

func (w *Webhooks) sell(ctx context.Context, kind tracking.Kind, list *[]string, n int) error {
	first := len(*list)
	for len(*list) < n {
		*list = append(*list, "")
	}
	_, _, err := load(setUpAtOnce, time.Hour, func(_, i int) (bool, error) {
		i += first
		if i >= n || ctx.Err() != nil {
			return false, ctx.Err()
		}
		o := tracking.Order{Merchant: fmt.Sprintf("00000000-0000-4000-8000-%012d", i%w.accounts), Kind: kind,
			Key:      fmt.Sprint(kind, i),
			Customer: stripeID("cus", i), Amount: 4900, Currency: "USD"}
		if kind == tracking.Subscribe {
			o.Amount, o.Currency, o.Price, o.PaymentMethod = 0, "", "price_"+idTail, "pm_"+idTail
		}
		made, err := w.service.CreatePurchase(ctx, o)
		if err != nil {
			return false, err
		}
		(*list)[i] = made.Purchase.ID
		return true, nil
	})
	return err
}

// Run sends the prepared events, one at a time on each connection, for the time given or until all
// are sent. It returns in order how long each took. Every one has to be applied.
func (w *Webhooks) Run(ctx context.Context, connections int, length time.Duration) (units int, took []time.Duration,
	err error) {
	units, took, err = w.send(ctx, w.address, []byte(`"applied"`), connections, length)
	w.made += units // no event was begun after the last one
	w.paid = (w.made + len(w.templates) - 1) / len(w.templates)
	return units, took, err
}

// Beside sends the events that Run was to send to another program, which has to reply with the status 200.
func (w *Webhooks) Beside(ctx context.Context, address string, connections int, length time.Duration) (units int,
	took []time.Duration, err error) {
	return w.send(ctx, address, nil, connections, length)
}

// Secret signs the events.
func (w *Webhooks) Secret() string { return w.key.Reveal() }

func (w *Webhooks) send(ctx context.Context, address string, want []byte, connections int, length time.Duration) (units int,
	took []time.Duration, err error) {
	clients := make([]*hookClient, connections)
	for i := range clients {
		if clients[i], err = newHookClient(ctx, address, w.templates, w.head()); err != nil {
			return 0, nil, err
		}
		clients[i].want = want
		defer clients[i].conn.Close()
		if err = clients[i].conn.SetDeadline(time.Now().Add(length + time.Minute)); err != nil {
			return 0, nil, err
		}
	}
	return load(connections, length, func(worker, i int) (bool, error) {
		if i >= len(w.ready) {
			return false, nil
		}
		e := w.event(w.first + i)
		return true, clients[worker].send(&w.templates[e.template], &e, w.ready[i])
	})
}

// MakeEvents makes a store in the folder with at least so many events of one connected account, about
// a third as many payments, and a tenth as many subscriptions.
func MakeEvents(ctx context.Context, dir string, cacheBytes int64, connections, events int) (err error) {
	w, err := openWebhooks(ctx, dir, cacheBytes, 1, false)
	if err != nil {
		return err
	}
	for err == nil && w.made < events {
		// A part of them at a time: their signatures go out of date.
		if err = w.Prepare(ctx, events/10+1, min(events-w.made, 100_000)); err == nil {
			_, _, err = w.Run(ctx, connections, time.Hour)
		}
	}
	return errors.Join(err, w.Close())
}

// answers is an inbox that says of every event that it is applied.
type answers struct{}

func (answers) Ingest(context.Context, []byte, tracking.Origin) (tracking.Verdict, error) {
	return tracking.Verdict{Event: "evt_" + idTail + "0000000000", Status: tracking.Applied}, nil
}

// nobody is a Finder and a Seller that takes orders alone: purchases are made from their customer's
// number. It panics if it is asked anything else.
type nobody struct {
	tracking.Finder
	tracking.Seller
	templates []template // whose objects are as old as those that it sells
}

func (nobody) Connected(context.Context, string) error { return nil }
func (nobody) Check(tracking.Order) error              { return nil }

func (s nobody) Sell(_ context.Context, o tracking.Order, _ bool) (tracking.Sale, error) {
	n, err := strconv.Atoi(o.Customer[len(o.Customer)-10:])
	if err != nil {
		return tracking.Sale{}, err
	}
	payment := tracking.Object{Kind: tracking.KindPayment, ID: stripeID("pi", n), Status: "requires_payment_method",
		Tag: o.Tag, Fetched: true,
		Created: s.templates[0].made, Amount: 4900, Currency: "USD", Customer: o.Customer, InvoiceTold: true}
	if o.Kind == tracking.Legacy {
		return tracking.Sale{Objects: []tracking.Object{payment}, Customer: o.Customer}, nil
	}
	payment.ID, payment.Status = stripeID("pi", 2*firstInvoice+n), "succeeded"
	payment.Subscription, payment.Invoice = stripeID("sub", n), stripeID("in", n)
	return tracking.Sale{Customer: o.Customer, Objects: []tracking.Object{payment,
		{Kind: tracking.KindSubscription, ID: payment.Subscription, Status: "active", Tag: o.Tag, Fetched: true,
			Created: s.templates[1].made, Customer: o.Customer}}}, nil
}

// firstInvoice is the number of the first invoice that events are about, and of its payment: above
// those of all others. Twice as much is that of the first payment of a subscription.
const firstInvoice = 1_000_000_000
