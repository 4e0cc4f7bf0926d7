package mail

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/outbox"
)

type content struct {
	subject string // one line
	body    string // every line ends in \n
}

// data is an effect's data for people: every value in one line, dates written out.
type data map[string]string

func write(e outbox.Effect) (content, error) {
	d := make(data, len(e.Data))
	for key, value := range e.Data {
		d[key] = clean(value)
	}
	for _, key := range []string{outbox.DataDueDate, outbox.DataProcessed, outbox.DataRetryDate} {
		d[key] = day(d[key])
	}
	for _, key := range []string{outbox.DataSubscription, outbox.DataAmountText} {
		if d[key] == "" {
			return content{}, fmt.Errorf("%w: a %s without %s", outbox.ErrPermanent, clean(e.Kind), key)
		}
	}
	subject, opening, next := d.words(e.Kind, linkOf(e))
	if opening == "" {
		return content{}, fmt.Errorf("%w: unknown kind %q", outbox.ErrPermanent, clean(e.Kind))
	}
	foot := "\nThis message was written automatically" + after(" for account ", d[outbox.DataAccount]) + ".\n"
	return content{subject, d.body(opening) + next + foot}, nil
}

// words returns the subject of a kind of message, its opening, and the next step at its end; "" for
// an unknown kind.
func (d data) words(kind string, l link) (subject, opening, next string) {
	amount, date, due := d[outbox.DataAmountText], d[outbox.DataDueDate], after(" due on ", d[outbox.DataDueDate])
	switch kind {
	case outbox.KindReceipt:
		return "Receipt: " + d.payment(), "We have received your payment of " + amount + ". Thank you!",
			"Please keep this message for your records.\n"
	case outbox.KindReminder:
		return "Reminder: " + d.payment() + after(" is due on ", date),
			"Your next payment of " + amount + " is due " + cmp.Or(after("on ", date), "soon") + ".", d.reminder(l)
	case outbox.KindDeclined:
		return "Payment declined: " + d.payment(), "Your payment of " + amount + due + " was declined.",
			"We will try again" + after(" on ", d[outbox.DataRetryDate]) + ". If your payment details have changed,\n" +
				l.or("please give us the new ones here:", "please give us the new ones before then.")
	case outbox.KindFailed:
		return "Payment failed: " + d.payment(), "We could not collect your payment of " + amount + due + ".",
			"We will not try again by ourselves. To keep your subscription, please give\n" +
				l.or("us a new payment method here:", "us a new payment method.")
	case outbox.KindActionRequired:
		return "Please confirm your payment: " + d.payment(),
			"Your bank asks you to confirm your payment of " + amount + due + ".",
			l.or("Please confirm it here:", "Please get in touch with us, so that we can complete it together.")
	}
	return "", "", ""
}

// reminder returns the next step before a payment: none, unless a card is missing.
func (d data) reminder(l link) string {
	switch {
	case d[outbox.DataNoMethod] != "":
		return "There is no payment method that we could charge.\n" +
			l.or("Please give us one here:", "Please give us one before that day.")
	case d[outbox.DataCardExpired] != "":
		return "Your card will have expired by then.\n" +
			l.or("Please give us a new one here:", "Please give us a new one before that day.")
	}
	return "We will charge your saved payment method on that day: there is nothing that\nyou need to do.\n"
}

// payment names the payment in a subject: "$12.99 for gold".
func (d data) payment() string {
	return d[outbox.DataAmountText] + " for " + cmp.Or(d[outbox.DataSKU], d[outbox.DataSubscription])
}

// body returns the greeting, the opening and the facts. It leaves out facts without a value: each
// kind of effect has its own.
func (d data) body(opening string) string {
	var b strings.Builder
	b.WriteString("Hello,\n\n" + opening + "\n\n")
	for _, fact := range [...][2]string{
		{"Subscription", d[outbox.DataSubscription]},
		{"Product", d[outbox.DataSKU]},
		{"Amount", d[outbox.DataAmountText]},
		{"Paid on", d[outbox.DataProcessed]},
		{"Due on", d[outbox.DataDueDate]},
		{"Reference", d[outbox.DataCharge]},
		{"Card", d[outbox.DataCard] + after(", good until ", month(d[outbox.DataCardExpires]))},
		{"Reason", reason(d[outbox.DataCode])},
		{"Next try on", d[outbox.DataRetryDate]},
	} {
		if fact[1] != "" {
			fmt.Fprintf(&b, "  %-14s%s\n", fact[0]+":", fact[1])
		}
	}
	b.WriteString("\n")
	return b.String()
}

// after returns the introduction and the text, or "" if the text is empty.
func after(introduction, text string) string {
	if text == "" {
		return ""
	}
	return introduction + text
}

// day writes out the date at the beginning of an ISO date or timestamp, so that the day and
// the month cannot be confused. It returns any other text unchanged.
func day(text string) string {
	t, err := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))])
	if err != nil {
		return text
	}
	return t.Format("2 January 2006")
}

// month writes out a month such as 2026-12. It returns any other text unchanged.
func month(text string) string {
	t, err := time.Parse("2006-01", text)
	if err != nil {
		return text
	}
	return t.Format("January 2006")
}

// reason puts a decline code into words. It returns "" for all other codes: a reader of the
// mail must not learn some of them (a card reported stolen, suspected fraud).
func reason(code string) string {
	return map[string]string{
		"insufficient_funds":      "there was not enough money on the account",
		"expired_card":            "the card has expired",
		"authentication_required": "the bank wanted the payment to be confirmed",
		"processing_error":        "the bank could not process the payment",
	}[code]
}

// A link is the address for the customer's next step, unchanged: a cleaned address might lead
// elsewhere.
type link struct {
	url   string // "" for no link
	until string // in words; "" if unknown
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

// or returns the introduction here and the link, or the text without if there is no link.
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
