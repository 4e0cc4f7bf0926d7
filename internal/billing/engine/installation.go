package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// ErrOtherInstallation: another installation has charged subscriptions of this store. The store was
// lost and made again, perhaps, and would charge everybody a second time.
var ErrOtherInstallation = errors.New("another installation has charged subscriptions of this store")

// otherDays is how far back the first runs of an installation look for the charges of others: longer
// than a month.
const otherDays = 40

// checkInstallations looks for a success of the last days that belongs to another installation and
// names a subscription of this store. Until a person has accepted that installation, it switches
// charging off and returns ErrOtherInstallation. At the built-in processor no money moves: it warns.
func (e *Engine) checkInstallations(ctx context.Context, scope []billing.ListRequest) error {
	meta, err := e.Meta(ctx)
	if err != nil || e.proc == nil {
		return err
	}
	for _, r := range scope {
		r.Since = e.Now().AddDate(0, 0, -otherDays)
		in, err := billing.Ask(ctx, func() (*billing.Intent, error) { return e.otherAt(ctx, r, &meta) })
		if billing.Refuses(r.At, err) || err == nil && in == nil {
			continue
		} else if err != nil {
			return err
		}
		id := in.Tag.Installation
		err = fmt.Errorf("%w: installation %s, with %s for %s/%s at %s", ErrOtherInstallation, id, in.Ref, in.Tag.Account,
			in.Tag.Subscription, billing.Stamp(in.Changed))
		accept := "duesday charging on --accept-other-installation " + id
		if _, real := e.proc.(billing.Identified); !real {
			e.Log.WarnContext(ctx, err.Error()+"; no money moves at the built-in processor, and the work goes on. "+
				"To begin anew, name another file with --processor; to keep both, say "+accept)
			return nil
		}
		if err := e.SetCharging(ctx, false, err.Error()); err != nil {
			return err
		}
		return fmt.Errorf("%w; charging is now off. If this store was lost and made again, put its backup back; if nobody "+
			"would be charged twice, say %s", err, accept)
	}
	return nil
}

// otherAt returns one such success at the place, or nil.
func (e *Engine) otherAt(ctx context.Context, r billing.ListRequest, meta *billing.Meta) (*billing.Intent, error) {
	absent := map[billing.Name]bool{}
	for in, err := range e.proc.List(ctx, r) {
		if err != nil {
			return nil, fmt.Errorf("listing the processor's payment intents: %w", err)
		}
		id, n := in.Tag.Installation, billing.Name{Account: in.Tag.Account, ID: in.Tag.Subscription}
		if in.State != billing.Succeeded || id == "" || meta.Accepts(id) || absent[n] ||
			billing.CheckID("account", n.Account) != nil || billing.CheckID("subscription", n.ID) != nil {
			continue
		}
		there, err := billing.AnyItem(e.Store.Query(ctx, store.Query{Table: e.Table, Limit: 1,
			Partition: billing.AccountPK(n.Account), Prefix: billing.SubPrefix + n.ID + "#"}))
		if err != nil || there {
			return &in, err
		}
		absent[n] = true
	}
	return nil, nil
}

// AcceptInstallation notes that charges of that other installation are no reason to doubt this store.
func (e *Engine) AcceptInstallation(ctx context.Context, id string) error {
	if err := billing.CheckID("installation", id); err != nil {
		return err
	}
	return store.Retry(ctx, "accepting an installation", func() error {
		meta, err := e.Meta(ctx)
		switch {
		case err != nil:
			return err
		case id == meta.Installation:
			return billing.Invalid("installation", id+" is this store's own")
		case meta.Accepts(id):
			return nil
		}
		set := store.NewItem(store.Attribute{Name: schema.OtherInstallations,
			Value: store.S(strings.TrimSpace(meta.Accepted + " " + id))})
		still := store.AttributeAbsent(schema.OtherInstallations)
		if meta.Accepted != "" {
			still = store.AttributeEquals(schema.OtherInstallations, store.S(meta.Accepted))
		}
		return e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, set, nil, still))
	})
}
