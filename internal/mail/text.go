package mail

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/outbox"
)

// A letter is what the customer reads.
type letter struct {
	subject string // one line
	body    string // lines that end in \n
}

// data is an effect's data as people may read it: every value in one line, dates
// written out.
type data map[string]string

// write returns the letter for an effect.
func write(e outbox.Effect) (letter, error) {
	d := make(data, len(e.Data))
	for key, value := range e.Data {
		d[key] = clean(value)
	}
	for _, key := range []string{outbox.DataDueDate, outbox.DataProcessed, outbox.DataRetryDate} {
		d[key] = day(d[key])
	}
	for _, key := range []string{outbox.DataSubscription, outbox.DataAmountText} {
		if d[key] == "" {
			return letter{}, fmt.Errorf("%w: a %s without %s", outbox.ErrPermanent, clean(e.Kind), key)
		}
	}
	l := linkOf(e)
	switch e.Kind {
	case outbox.KindReceipt:
		return d.receipt(), nil
	case outbox.KindReminder:
		return d.reminder(l), nil
	case outbox.KindDeclined:
		return d.declined(l), nil
	case outbox.KindFailed:
		return d.failed(l), nil
	case outbox.KindActionRequired:
		return d.actionRequired(l), nil
	}
	return letter{}, fmt.Errorf("%w: unknown kind %q", outbox.ErrPermanent, clean(e.Kind))
}

func (d data) receipt() letter {
	return letter{
		subject: "Receipt: " + d.what(),
		body: d.body("We have received your payment of "+d[outbox.DataAmountText]+". Thank you!",
			[2]string{"Paid on", d[outbox.DataProcessed]},
			[2]string{"Due on", d[outbox.DataDueDate]},
			[2]string{"Reference", d[outbox.DataCharge]},
		) + "Please keep this message for your records.\n" + d.foot(),
	}
}

func (d data) reminder(l link) letter {
	next := "We will charge your saved payment method on that day: there is nothing that\nyou need to do.\n"
	if d[outbox.DataCardExpired] != "" {
		next = "Your card will have expired by then.\n" + l.or("Please give us a new one here:", "Please give us a new one before that day.")
	}
	if d[outbox.DataNoMethod] != "" {
		next = "There is no payment method that we could charge.\n" + l.or("Please give us one here:", "Please give us one before that day.")
	}
	return letter{
		subject: "Reminder: " + d.what() + after(" is due on ", d[outbox.DataDueDate]),
		body: d.body("Your next payment of "+d[outbox.DataAmountText]+" is due "+cmp.Or(after("on ", d[outbox.DataDueDate]), "soon")+".",
			[2]string{"Due on", d[outbox.DataDueDate]},
			[2]string{"Card", d[outbox.DataCard] + after(", good until ", month(d[outbox.DataCardExpires]))},
		) + next + d.foot(),
	}
}

func (d data) declined(l link) letter {
	next := "We will try again" + after(" on ", d[outbox.DataRetryDate]) + ". If your payment details have changed,\n" +
		l.or("please give us the new ones here:", "please give us the new ones before then.")
	return letter{
		subject: "Payment declined: " + d.what(),
		body: d.body("Your payment of "+d[outbox.DataAmountText]+after(" due on ", d[outbox.DataDueDate])+" was declined.",
			[2]string{"Due on", d[outbox.DataDueDate]},
			[2]string{"Reason", reason(d[outbox.DataCode])},
			[2]string{"Next try on", d[outbox.DataRetryDate]},
		) + next + d.foot(),
	}
}

func (d data) failed(l link) letter {
	next := "We will not try again by ourselves. To keep your subscription, please give\n" +
		l.or("us a new payment method here:", "us a new payment method.")
	return letter{
		subject: "Payment failed: " + d.what(),
		body: d.body("We could not collect your payment of "+d[outbox.DataAmountText]+after(" due on ", d[outbox.DataDueDate])+".",
			[2]string{"Due on", d[outbox.DataDueDate]},
			[2]string{"Reason", reason(d[outbox.DataCode])},
		) + next + d.foot(),
	}
}

func (d data) actionRequired(l link) letter {
	next := l.or("Please confirm it here:", "Please get in touch with us, so that we can complete it together.")
	return letter{
		subject: "Please confirm your payment: " + d.what(),
		body: d.body("Your bank asks you to confirm your payment of "+d[outbox.DataAmountText]+after(" due on ", d[outbox.DataDueDate])+".",
			[2]string{"Due on", d[outbox.DataDueDate]},
		) + next + d.foot(),
	}
}

// what names the payment for a subject: "$12.99 for gold".
func (d data) what() string {
	product := d[outbox.DataSKU]
	if product == "" {
		product = d[outbox.DataSubscription]
	}
	return d[outbox.DataAmountText] + " for " + product
}

// body returns the greeting, the opening and a list of what the message is about:
// subscription, product, amount, then the lines given. Empty ones are left out.
func (d data) body(opening string, lines ...[2]string) string {
	var b strings.Builder
	b.WriteString("Hello,\n\n" + opening + "\n\n")
	about := [][2]string{
		{"Subscription", d[outbox.DataSubscription]},
		{"Product", d[outbox.DataSKU]},
		{"Amount", d[outbox.DataAmountText]},
	}
	for _, l := range append(about, lines...) {
		if l[1] != "" {
			fmt.Fprintf(&b, "  %-14s%s\n", l[0]+":", l[1])
		}
	}
	b.WriteString("\n")
	return b.String()
}

func (d data) foot() string {
	return "\nThis message was written automatically" + after(" for account ", d[outbox.DataAccount]) + ".\n"
}

// after returns the text behind its introduction, or nothing when there is no text.
func after(introduction, text string) string {
	if text == "" {
		return ""
	}
	return introduction + text
}

// day writes out the date that an ISO date or timestamp begins with, so that nobody
// takes the day for the month; any other text stays as it is.
func day(text string) string {
	t, err := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))])
	if err != nil {
		return text
	}
	return t.Format("2 January 2006")
}

// month writes out the month of 2026-12; any other text stays as it is.
func month(text string) string {
	t, err := time.Parse("2006-01", text)
	if err != nil {
		return text
	}
	return t.Format("January 2006")
}

// reason puts a decline code into words. Codes that are not here stay unsaid: some of
// them (a card reported stolen, suspected fraud) are not for whoever reads the mail.
func reason(code string) string {
	switch code {
	case "insufficient_funds":
		return "there was not enough money on the account"
	case "expired_card":
		return "the card has expired"
	case "authentication_required":
		return "the bank wanted the payment to be confirmed"
	case "processing_error":
		return "the bank could not process the payment"
	}
	return ""
}

// A link is where the mail leads; "" when it leads nowhere. It is shown as it came: cleaned,
// it might lead elsewhere.
type link struct {
	url   string
	until string // in words; "" when it is not known
}

func linkOf(e outbox.Effect) link {
	l := link{url: e.Data[outbox.DataLink]}
	if !usable(l.url) {
		return link{}
	}
	if t, err := time.Parse(time.RFC3339, e.Data[outbox.DataLinkExpires]); err == nil {
		l.until = t.UTC().Format("15:04 UTC on 2 January 2006")
	}
	return l
}

// or returns the words that lead to the link, and the link; or, when there is none, others.
func (l link) or(here, without string) string {
	if l.url == "" {
		return without + "\n"
	}
	text := here + "\n\n" + l.url + "\n"
	if l.until != "" {
		text += "\n(The link works until " + l.until + "; ask us for a new one\nafter that.)\n"
	}
	return text
}

// usable reports whether the link is a web address in one line.
func usable(link string) bool {
	u, err := url.Parse(link)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil &&
		!strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' || r > '~' })
}
