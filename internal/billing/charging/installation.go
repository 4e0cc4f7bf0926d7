package charging

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// ErrOtherInstallation is returned when another installation has charged subscriptions of this
// store. The store may have been lost and created again, and would then charge every customer a
// second time.
var ErrOtherInstallation = errors.New("another installation has charged subscriptions of this store")

// otherDays is how many days back an installation's first runs look for charges of other
// installations. It covers more than a month.
const otherDays = 40

// checkInstallations looks for a recent successful charge that belongs to another installation and
// names a subscription of this store. If it finds one that no operator has accepted, it switches
// charging off and returns ErrOtherInstallation. With the built-in processor, which moves no money,
// it only logs a warning. ended is the end of the last run.
//
// checkInstallations looks before the first run that handles a period. If the processor shows any
// charges of other installations, it also looks before every run in the first otherDays after the
// store was created, because an operator may import a lost book in parts.
func (c *Control) checkInstallations(ctx context.Context, scope []processor.ListRequest, ended time.Time) error {
	young := c.Now().Before(c.Opened.Created.AddDate(0, 0, otherDays))
	dealt, err := c.HasDealt(ctx)
	if dealt = dealt && !ended.IsZero(); err != nil || c.Processor == nil || dealt && !young {
		return err
	}
	meta, err := c.Meta(ctx)
	if err != nil || dealt && !meta.OthersSeen {
		return err
	}
	_, real := c.Processor.(processor.Identified)
	for _, r := range scope {
		r.Since = c.Now().AddDate(0, 0, -otherDays)
		var seen bool
		in, err := processor.Ask(ctx, func() (in *processor.Intent, err error) {
			in, seen, err = c.otherAt(ctx, r, &meta)
			return in, err
		})
		refused := processor.Refuses(r.At, err)
		if err != nil && !refused {
			return err
		}
		if real && (seen || refused) && !meta.OthersSeen {
			meta.OthersSeen = true
			note := store.NewItem(store.Attribute{Name: schema.OthersSeen, Value: store.Bool(true)})
			if err := c.Store.Commit(ctx, store.Update(c.Table, billing.MetaKey, note, nil)); err != nil {
				return err
			}
		}
		if in != nil {
			return c.refuseOther(ctx, in, real)
		}
	}
	return nil
}

// refuseOther switches charging off because of another installation's charge. If the processor
// moves no real money, it only logs a warning.
func (c *Control) refuseOther(ctx context.Context, in *processor.Intent, real bool) error {
	id := in.Tag.Installation
	err := fmt.Errorf("%w: installation %s, with %s for %s/%s at %s", ErrOtherInstallation, id, in.Ref, in.Tag.Account,
		in.Tag.Subscription, billing.Stamp(in.Changed))
	accept := "duesday charging on --accept-other-installation " + id
	if !real {
		c.Log.WarnContext(ctx, err.Error()+"; the built-in processor moves no money, so Duesday continues. "+
			"To start over, name another file with --processor; to keep both, run "+accept)
		return nil
	}
	if err := c.Turn(ctx, false, err.Error()); err != nil {
		return err
	}
	return fmt.Errorf("%w; charging is now off. If this store was lost and created again, restore its backup; if no one "+
		"would be charged twice, run %s", err, accept)
}

// otherAt returns another installation's successful charge for a subscription of this store, or
// nil. seen reports whether any charge at this place belongs to an installation that no operator
// has accepted.
func (c *Control) otherAt(ctx context.Context, r processor.ListRequest,
	meta *billing.Meta) (other *processor.Intent, seen bool, err error) {
	absent := map[billing.Name]bool{}
	for in, err := range c.Processor.List(ctx, r) {
		if err != nil {
			return nil, seen, fmt.Errorf("listing the processor's payment intents: %w", err)
		}
		id, n := in.Tag.Installation, billing.Name{Account: in.Tag.Account, ID: in.Tag.Subscription}
		if in.State != processor.Succeeded || id == "" || meta.Accepts(id) {
			continue
		}
		seen = true
		if absent[n] || billing.CheckID("account", n.Account) != nil || billing.CheckID("subscription", n.ID) != nil {
			continue
		}
		there, err := billing.AnyItem(c.Store.Query(ctx, store.Query{Table: c.Table, Limit: 1,
			Partition: billing.AccountPK(n.Account), Prefix: billing.SubPrefix + n.ID + "#"}))
		if err != nil || there {
			return &in, seen, err
		}
		absent[n] = true
	}
	return nil, seen, nil
}

// Accept records that an operator accepts the other installation's charges.
func (c *Control) Accept(ctx context.Context, id string) error {
	if err := billing.CheckID("installation", id); err != nil {
		return err
	}
	return store.Retry(ctx, "accepting an installation", func() error {
		meta, err := c.Meta(ctx)
		switch {
		case err != nil:
			return err
		case id == meta.Installation:
			return billing.Invalid("installation", id+" is this store itself")
		case meta.Accepts(id):
			return nil
		}
		set := store.NewItem(store.Attribute{Name: schema.OtherInstallations,
			Value: store.S(strings.TrimSpace(meta.Accepted + " " + id))})
		still := store.AttributeAbsent(schema.OtherInstallations)
		if meta.Accepted != "" {
			still = store.AttributeEquals(schema.OtherInstallations, store.S(meta.Accepted))
		}
		return c.Store.Commit(ctx, store.Update(c.Table, billing.MetaKey, set, nil, still))
	})
}
