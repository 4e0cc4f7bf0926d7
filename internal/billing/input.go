package billing

import (
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
)

// DefaultReminderDays is the default number of days from a reminder to its payment.
const DefaultReminderDays = 7

// A NewSubscription is the input of createSubscription. Errors name fields as files and JSON do.
type NewSubscription struct {
	Account      string
	Email        string // of the account; "" for an existing account
	Name         string // of the customer, as Locale, Customer and Fallback for an account that does not exist yet
	Locale       string
	Details      party.Details // likewise
	Customer     string        // the processor's
	Fallback     string        // the account's second payment method
	Product      string        // the SKU's name, for customers: Settings.Products has it
	ID           string        // unique within the account, never used again
	SKU          string
	Amount       money.Amount // of one unit
	Terms        price.Terms
	Taxes        *tax.Defaults // for Terms without a tax; nil: none
	PaymentDay   int           // day of the month 1..31, with days that of the first payment; with weeks the ISO weekday 1..7
	Method       string        // the processor's token; "": the account's
	Collection   Collection    // "": Automatic
	Address      string
	Interval     civil.Interval // zero: every month
	TimeZone     string         // IANA name; "": the account's, else UTC
	ReminderDays int            // days before the due date; 0: none
	Installments int            // paid periods after which it is completed; 0: no end
	Start        civil.Date     // no payment before it; zero: today
	TrialDays    int            // free from Start on; the first due date without a PaymentDay is the day after them
	NextPayment  civil.Date     // the first due date; zero: the first payment day from Start
	NextReminder civil.Date     // zero: ReminderDays before the first due date
	SkipOverdue  bool           // if it is Overdue, the first due date that has not passed is that of period 0
	Takeover     *Takeover      // nil: the processor did not run it before
	Created      time.Time      // zero: now. Only imports of existing records set it
	LastPayment  time.Time      // zero: Created
	LastReminder time.Time      // zero: Created
}

// The longest ids and texts, in bytes.
const (
	MaxID   = 128
	MaxText = 1024
	MaxName = 200 // of a customer or product
)

// Check returns the Problems as one error, or nil.
func (n *NewSubscription) Check() error {
	var all []error
	for _, p := range n.Problems() {
		all = append(all, p)
	}
	return errors.Join(all...)
}

// Problems returns a FieldError for each wrong field.
func (n *NewSubscription) Problems() (all []*FieldError) {
	lastDay := 31 // of a month, or 7 of a week
	if n.Interval.Unit == civil.Week && n.Interval != (civil.Interval{}) {
		lastDay = 7
	}
	firstDay, firstReminder := 1, 0
	if n.TrialDays > 0 {
		firstDay, firstReminder = 0, 1 // the day the trial ends; its end is told of
	} else if n.Interval.Unit == civil.Day {
		firstDay = 0 // Start is the first due date
	}
	none := map[bool]string{true: " (none)"}[firstReminder == 0]
	for _, err := range [...]error{
		CheckID("account", n.Account), CheckID("subscription", n.ID), CheckID("sku", n.SKU),
		CheckGiven(n.Email, CheckEmail),
		price.CheckAmount(n.Amount, n.Amount.Currency()),
		checkRange("payment_day", n.PaymentDay, firstDay, lastDay, ""),
		CheckGiven(n.Method, CheckMethod),
		CheckGiven(string(n.Collection), func(text string) error { return CheckCollection(Collection(text)) }),
		CheckText("address", n.Address, MaxText),
		CheckGiven(n.TimeZone, CheckZone),
		checkRange("reminder_days", n.ReminderDays, firstReminder, 366, none),
		checkTrial(n),
		checkYear("start_date", n.Start), checkYear("next_payment_date", n.NextPayment),
		checkRange("installments", n.Installments, 0, 9999, " (no end)"),
		CheckGiven(n.Customer, func(id string) error { return CheckID("customer", id) }),
		CheckName(n.Name), CheckGiven(n.Locale, CheckLocale), checkFallback(n), CheckText("product", n.Product, MaxName),
	} {
		if e, ok := errors.AsType[*FieldError](err); ok {
			all = append(all, e)
		}
	}
	var terms []error
	if n.Terms != (price.Terms{}) && price.CheckAmount(n.Amount, n.Amount.Currency()) == nil {
		terms = price.Check(n.Amount, n.Terms, CheckText)
	}
	for _, err := range append(party.Check(n.Details, CheckText), terms...) {
		all = append(all, err.(*FieldError))
	}
	return all
}

// CheckGiven checks a text that may be missing.
func CheckGiven(text string, check func(string) error) error {
	if text == "" {
		return nil
	}
	return check(text)
}

// checkRange names the meaning of the least number.
func checkRange(field string, n, least, most int, meaning string) error {
	if n < least || n > most {
		return Invalid(field, fmt.Sprintf("must be %d%s to %d (got %d)", least, meaning, most, n))
	}
	return nil
}

func checkTrial(n *NewSubscription) error {
	if n.TrialDays > 0 && !n.NextPayment.IsZero() {
		return Invalid("trial_days", "cannot be combined with next_payment_date, because each sets the first due date")
	}
	return checkRange("trial_days", n.TrialDays, 0, 3660, " (none)")
}

func checkFallback(n *NewSubscription) error {
	switch err := CheckGiven(n.Fallback, func(token string) error { return checkToken("fallback", token) }); {
	case err != nil:
		return err
	case n.Fallback != "" && n.Fallback == n.Method:
		return Invalid("fallback", "must differ from the payment method")
	}
	return nil
}

// CheckName returns a FieldError unless the text can be a customer's name.
func CheckName(name string) error { return CheckText("name", name, MaxName) }

// CheckZone returns a FieldError unless the text is an IANA time zone.
func CheckZone(name string) error {
	if _, err := civil.Zone(name); err != nil {
		return Invalid("time_zone", "must be an IANA name such as Europe/Berlin (got "+strconv.Quote(secret.MaskCards(name))+")")
	}
	return nil
}

func checkYear(field string, d civil.Date) error {
	if !d.IsZero() && (d.Year() < 1970 || d.Year() > 9000) {
		return Invalid(field, "must be in a year from 1970 to 9000 (got "+d.String()+")")
	}
	return nil
}

// Monthly is the interval of a subscription without one.
var Monthly = civil.Interval{N: 1, Unit: civil.Month}

// CheckID returns a FieldError unless the text can be an id. An id is a part of keys
// (ACC#<account>, SUB#<subscription>#SKU#<sku>) and of the name ACCOUNT/SUBSCRIPTION.
func CheckID(field, id string) error {
	switch {
	case id == "":
		return Invalid(field, "is missing")
	case len(id) > MaxID:
		return Invalid(field, "must be at most "+strconv.Itoa(MaxID)+" bytes")
	case strings.ContainsAny(id, "#/"):
		return Invalid(field, "must not contain # or /")
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\uFFFD' || r == '\u00a0' }):
		return Invalid(field, "must not contain spaces or control characters")
	}
	return CheckText(field, id, MaxID)
}

// CheckEmail returns a FieldError unless the text is a single e-mail address.
func CheckEmail(email string) error {
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > 254 {
		return Invalid("email", "must be an address such as ada@example.com (got "+strconv.Quote(secret.MaskCards(email))+")")
	}
	return CheckText("email", email, 254)
}

// localeForm is a language, perhaps with a script and a region: pt, pt-BR, zh-Hant-TW.
var localeForm = regexp.MustCompile(`^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$`)

// CheckLocale returns a FieldError unless the text names a language, perhaps with a region.
func CheckLocale(locale string) error {
	if !localeForm.MatchString(locale) {
		return Invalid("locale", "must be a language such as en, de, pt-BR, zh or ko (got "+strconv.Quote(locale)+")")
	}
	return nil
}

// FieldError names the wrong field of an input, and its problem.
type FieldError = field.Error

// Invalid returns a FieldError. Card numbers in the problem are masked.
func Invalid(field, problem string) error {
	return &FieldError{Field: field, Problem: secret.MaskCards(problem)}
}

// CheckText returns a FieldError unless the text may be stored in the field. It must not have
// control characters, invalid UTF-8, more than limit bytes, a secret or a card number.
func CheckText(field, text string, limit int) error {
	if err := checkPlain(field, text, limit); err != nil {
		return err
	}
	if secret.HasCardNumber(text) {
		return cardError(field, secret.MaskCards(text))
	}
	return nil
}

// checkPlain is CheckText without the search for a card number.
func checkPlain(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return Invalid(field, "must be at most "+strconv.Itoa(limit)+" bytes")
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return Invalid(field, "must be UTF-8 text without line breaks or other control characters")
	case secret.Redact(text) != text:
		return Invalid(field, "looks like a secret key or token of the processor, which Duesday never stores")
	}
	return nil
}

func cardError(field, masked string) error {
	return Invalid(field, "looks like a card number ("+masked+"), which Duesday never accepts; use the processor's token")
}

// CheckMethod returns a FieldError unless the text can be a payment method's token.
func CheckMethod(token string) error {
	if token == "" {
		return Invalid("payment_method", "must be the processor's token, such as pm_card_visa (got nothing)")
	}
	return checkToken("payment_method", token)
}

func checkToken(field, token string) error {
	if err := checkPlain(field, token, MaxID); err != nil {
		return err
	}
	if secret.HasCardInMethod(token) {
		return cardError(field, secret.MaskMethod(token))
	}
	return nil
}
