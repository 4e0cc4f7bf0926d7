package recipient

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/wallet"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
)

// Link returns the link of the effect's mail, by which the customer authenticates a payment or
// gives a card; zero if the mail has none. It is a secret with a short life: it is made when the
// mail is delivered and never stored. After an error the caller should ask again later.
func (d *Directory) Link(ctx context.Context, f outbox.Effect) (processor.CardLink, error) {
	link, err := d.link(ctx, f)
	if err != nil && wallet.Passing(err) {
		return processor.CardLink{}, fmt.Errorf("the mail has no card link yet: %w", err)
	}
	if err != nil {
		d.Log.WarnContext(ctx, "an email is sent without its card link", "effect", f.ID, "error", err)
		return processor.CardLink{}, nil
	}
	return link, nil
}

// link returns the link for the effect's mail, or the zero CardLink if the mail needs none.
func (d *Directory) link(ctx context.Context, f outbox.Effect) (processor.CardLink, error) {
	switch f.Kind {
	case outbox.KindActionRequired:
		if d.Processor == nil || f.Data[outbox.DataRef] == "" {
			return processor.CardLink{}, nil
		}
		in, err := d.Processor.Lookup(ctx, f.Data[outbox.DataRef])
		return processor.CardLink{URL: in.Link}, err
	case outbox.KindDeclined, outbox.KindFailed, outbox.KindCardExpires:
		if f.Data[outbox.DataPayBy] != "" {
			return processor.CardLink{}, nil
		}
	case outbox.KindReminder:
		if f.Data[outbox.DataCardExpired] == "" && f.Data[outbox.DataNoMethod] == "" {
			return processor.CardLink{}, nil
		}
	default:
		return processor.CardLink{}, nil
	}
	account, subscription := f.Data[outbox.DataAccount], f.Data[outbox.DataSubscription]
	if d.CardURL != "" {
		ids := strings.NewReplacer("{account}", url.QueryEscape(account), "{subscription}", url.QueryEscape(subscription))
		return processor.CardLink{URL: ids.Replace(d.CardURL)}, nil
	}
	if _, ok := d.Processor.(processor.Wallet); !ok || d.NoLinks {
		return processor.CardLink{}, nil
	}
	s, err := d.Load(ctx, nameIn(f))
	if err != nil || s.Over() {
		return processor.CardLink{}, billing.IgnoreNotFound(err)
	}
	if s.Method == "" {
		subscription = "" // the account's card is charged
	}
	return d.CardLink(ctx, account, subscription)
}
