package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/processor"
)

// Account returns the account.
func Account(a *billing.Account) Object {
	var bounced Object // an address that a mail server rejected permanently
	if b := a.Bounced; b.Email != "" {
		bounced = Object{"email", b.Email, "code", b.Code, "at", b.At}
	}
	d := &a.Details.Address
	address := Object{"line1?", d.Line1, "line2?", d.Line2, "postal_code?", d.PostalCode, "city?", d.City, "state?", d.State, "country?", d.Country}
	if a.Details.Address == (party.Details{}).Address {
		address = nil
	}
	return Object{"id", a.ID, "version", a.Version, "email", a.Email, "name?", a.Name, "company?", a.Details.Company,
		"address?", address, "tax_id?", a.Details.TaxID, "bounced?", bounced, "time_zone", cmp.Or(a.TimeZone, "UTC"),
		"locale?", a.Locale,
		"payment_method?", a.Method, // for subscriptions without their own payment method
		"payment_method_given_at?", a.Given, "fallback_payment_method?", a.Fallback,
		"customer?", a.Payer.Customer, // the processor's customer ID
		"connected_account?", a.Payer.At, // omitted for the platform's own account
		"application_fee?", a.Payer.Fee, // the platform's share of each charge, in hundredths of a percent
		"created_at", a.Created, "erased_on?", a.Erased(), // when the person's data was erased
		"unfinished?", a.Copying} // not all subscriptions have the last change, so update the account again
}

// Address returns the account's address in one line.
func Address(a *billing.Account) string {
	d := &a.Details.Address
	return strings.Join(slices.DeleteFunc([]string{d.Line1, d.Line2, strings.TrimSpace(d.PostalCode + " " + d.City), d.State, d.Country},
		func(text string) bool { return text == "" }), ", ")
}

// Card returns the card for display, or nil if there is no card.
func Card(c *processor.Card) Object {
	if c == nil {
		return nil
	}
	return Object{"brand?", c.Brand, "last4?", c.Last4, "last_month?", c.LastMonth()} // last valid month: 2026-12
}

// CardLink returns the page where the customer enters a card for the account, or for one of its
// subscriptions. own contains the subscriptions that keep their own payment method.
func CardLink(account, subscription string, l processor.CardLink, own []billing.Name) Object {
	return Object{"account", account, "subscription?", subscription, "url?", l.URL, "expires_at?", l.Expires,
		"keep_own_method?", Names(own)}
}

// PortalLink returns a link to the account's page for customers.
func PortalLink(account string, l processor.CardLink) Object {
	return Object{"account", account, "url", l.URL, "expires_at", l.Expires}
}

// Names returns the subscription names as strings.
func Names(list []billing.Name) (texts []string) {
	for _, n := range list {
		texts = append(texts, n.String())
	}
	return texts
}
