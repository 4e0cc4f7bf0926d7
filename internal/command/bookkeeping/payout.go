package bookkeeping

import (
	"context"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/billing/payout"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

// payoutColumns are the columns of the CSV, which has a row for each transaction, for each payout's
// unlisted amount, and for each receipt in no payout.
var payoutColumns = strings.Fields("payout stripe_account arrival transaction kind type own created_at currency gross fee net " +
	"charged charged_currency charge account subscription period receipt number problem")

// comparePayouts prints the comparison of payouts with receipts. It exits with ExitPerson if a list
// is not empty, and returns an error if the comparison is incomplete.
func (p *program) comparePayouts(ctx context.Context, s *session.Session, f *reportFlags) error {
	r, err := payout.Make(ctx, s.Engine.Records, s.Processor, payout.Query{From: f.payouts.Value, Until: f.until.Value, Days: f.settled})
	if err != nil {
		return err
	}
	if len(r.Unreceipted)+len(r.Unsettled) > 0 {
		p.Code = screen.ExitPerson
	}
	if f.csv {
		err = exportRows(p.Out, false, new(screen.Progress), payoutColumns, sequence.Of(payoutRows(r)),
			func(v view.Object) view.Object { return row(v, "", "") })
	} else {
		p.showPayouts(r, f.settled)
		err = p.JSON(view.Payouts(r))
	}
	if err != nil || len(r.Gaps) == 0 {
		return err
	}
	g := r.Gaps[0]
	return fmt.Errorf("the comparison is incomplete, and what is missing may contain %s: %s", screen.Plural(r.Untold, "receipt"),
		strings.TrimLeft(g.At+" "+g.ID+": "+g.Hidden, " :"))
}

// payoutRows returns the rows of the CSV.
func payoutRows(r *payout.Report) (rows []view.Object) {
	for _, x := range r.Payouts {
		rows = append(rows, view.List(x.Lines, view.PayoutLine)...)
		if !x.Unlisted.IsZero() {
			rows = append(rows, append(view.Payout(x), "kind", "unlisted", "net", x.Unlisted))
		}
	}
	return append(rows, view.List(r.Unsettled, view.PayoutLine)...)
}

// showPayouts prints the comparison as text for human readers.
func (p *program) showPayouts(r *payout.Report, days int) {
	table := func(title, columns string, rows []view.Object) {
		p.Say("%s: %d", title, len(rows))
		screen.Section(p.Screen, "", strings.Fields(strings.ToUpper(columns)), rows, func(v view.Object) (cells []any) {
			for name := range strings.FieldsSeq(columns) {
				cells = append(cells, screen.Text(row(v, "", ""), name))
			}
			return cells
		})
		p.Say("")
	}
	const charges = "charge payout created_at charged charged_currency account problem"
	table("Payouts", "payout stripe_account arrival state currency receipts refunds disputes other fees unlisted amount",
		view.List(r.Payouts, view.Payout))
	table("Charges without a matching receipt", charges, view.List(r.Unreceipted, view.PayoutLine))
	table("Receipts in no payout after "+screen.Plural(days, "day"), charges, view.List(r.Unsettled, view.PayoutLine))
	table("Incomplete", "stripe_account payout detail", view.List(r.Gaps, view.PayoutGap))
}
