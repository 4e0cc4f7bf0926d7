package tracking

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"time"

	"github.com/duesday/duesday/internal/field"
)

// A Service ingests events, applies them and delivers their effects. Its parts have the methods:
// rows and registry read, intake ingests, shop sells, inbox and actions do the work that waits. A
// Service is safe for concurrent use, and any number of processes may use one store.
type Service struct {
	*rows
	*registry
	*intake
	*shop
	*inbox
	*actions
}

// Open returns a Service on a store. A store follows the connected accounts of one Stripe
// account in one mode, those it was opened with first: test and live data never mix.
func Open(ctx context.Context, o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	for _, status := range o.EndedBy {
		if status != "unpaid" && status != "paused" && status != "past_due" {
			return nil, field.Wrong("ended_by", "must contain only unpaid, paused or past_due")
		}
	}
	if !isID(o.Own, "acct_") || o.Installation == "" {
		return nil, fmt.Errorf("tracking: the key's Stripe account and the store's installation must be set "+
			"(got %q and %q)", o.Own, o.Installation)
	}
	r := &rows{&base{o: o, events: o.Tables.Tracking.Events.Name, accounts: o.Tables.Tracking.Registry.Name,
		wake: make(chan struct{}, 1)}}
	in := &intake{registry: &registry{rows: r}, seed: maphash.MakeSeed()}
	for i := range in.asking {
		in.asking[i] = make(chan struct{}, 1)
	}
	s := &shop{in}
	return &Service{r, in.registry, in, s, &inbox{in, s}, &actions{r}}, r.pin(ctx)
}
