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

// A Service ingests events, applies them and delivers their effects. Its embedded parts provide the
// methods. The rows and registry parts read, intake ingests events, shop creates purchases, and
// inbox and actions process waiting work. A Service is safe for concurrent use, and several
// processes may use the same store.
type Service struct {
	*rows
	*registry
	*intake
	*shop
	*inbox
	*actions
}

// Open returns a Service on a store. A store belongs to the Stripe account and mode with which it
// was first opened, so test and live data never mix.
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
