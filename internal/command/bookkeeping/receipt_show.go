package bookkeeping

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing/document"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) receiptShow() *cobra.Command {
	var account string
	html := false
	c := p.StoreLeaf("show NUMBER", session.Need{Read: true}, func(ctx context.Context, s *session.Session, args []string) error {
		r, err := document.Find(ctx, s.Engine.Records, account, args[0])
		if err != nil {
			return session.NotFound(err, "receipt "+args[0]+screen.Prefixed(" in account ", account))
		}
		d, err := document.Of(ctx, s.Engine.Records, r)
		if err != nil {
			return err
		}
		installation := s.Engine.Opened.Installation
		v := append(view.Receipt(r, installation, d.Reversals...),
			"link?", document.NewLinks(&d.Settings, s.Engine.Opened.Salt).To(r.Account, r.Number(installation)))
		if !html {
			p.showReceipt(d, v)
			return p.JSON(v)
		}
		page, err := d.HTML()
		if err != nil {
			return err
		}
		p.Say("%s", strings.TrimSuffix(string(page), "\n"))
		return p.JSON(append(v, "html", string(page)))
	})
	c.Flags().StringVar(&account, "account", "", "`ACCOUNT` that the receipt belongs to; only needed for a receipt's id")
	c.Flags().BoolVar(&html, "html", false, "print the receipt as an HTML page for the customer")
	return c
}

func (p *program) showReceipt(d *document.Document, v view.Object) {
	r, all := d.Receipt, accountReversals{d.Receipt.Charge: d.Reversals}
	p.Fields("receipt", r.InSeries, "id", r.Number(d.Installation), "account", r.Account, "subscription", r.ID, "sku", r.SKU, "period", view.PeriodOf(r),
		"due", r.Due, "processed", r.Processed, "amount", r.Amount, "refunded", all.text(r), "kind", r.Kind, "charge", r.Charge,
		"email", r.Email, "expires", r.Expires, "link", screen.Text(v, "link"))
}
