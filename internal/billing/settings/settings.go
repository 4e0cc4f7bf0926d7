package settings

import (
	"cmp"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/schedule"
	"github.com/duesday/duesday/internal/store"
)

// The limits of the settings keep dates within the calendar and retries within the rules of card
// networks.
const (
	maxReceiptMonths = 1200
	maxRetries       = 8
	maxRetryDay      = 60
	maxCatchUp       = 24
	maxActionDays    = 365
	maxCollectDays   = 365
	maxPayDays       = 365
	maxDeliveryDays  = 365
	minHistoryMonths = 24
	maxHistoryMonths = 1200
	maxDaily         = 24
	maxReceiptLinks  = 999_999
	maxLinkDays      = 90
	maxSettingText   = 400 // bytes

	maxUnsubscribeMinutes = 7 * 24 * 60
)

// noRetry is the text for no retry days, because an empty text selects the default.
const noRetry = "none"

// Settings are the rules of a store, which are the same for every process. The item SETTINGS/NOW
// stores them.
type Settings struct {
	ReceiptMonths int      // months until a receipt expires; 0 means never
	RetryDays     []int    // days after the first decline, ascending; empty but not nil means no retry
	DebitRetries  []int    // RetryDays of bank debits
	CatchUp       int      // missed periods that one run charges before it parks a subscription
	ActionDays    int      // days in which a customer can authenticate a payment; 0 means no limit
	AfterFailure  string   // Forgive or Collect
	AfterReversal string   // Nothing or Park
	CollectDays   int      // days after a failure in which a new payment method collects the period
	PayDays       int      // days after the due date in which a customer must pay by wire
	PayTo         string   // where wire customers must pay, in one line; "" if not known
	MerchantName  string   // name that customers see; "" if not known
	PostalAddress string   // merchant's address, in one line; "" if not known
	Sender        string   // mail sender, "Name <a@b>"; may be ""
	ReplyTo       string   // mail address; may be ""
	Daily         []string // times of the daily jobs in TimeZone, such as "06:10", ascending; empty for none
	TimeZone      string   // IANA name of the zone for Daily and AlarmAt
	AlarmAt       string   // time by which the daily jobs must finish, such as "12:00"; "" for no alarm
	Operator      string   // mail address for alarms; may be ""
	DeliveryDays  int      // days for which a message to an endpoint is kept after its last attempt
	HistoryMonths int      // months for which the history of accounts and subscriptions is kept
	ReceiptPrefix string   // first part of receipt numbers, or NoNumbers
	Seller        string   // its legal name on documents; "" for MerchantName
	SellerAddress string   // its address on documents, in one line; "" for PostalAddress
	SellerCountry string   // ISO 3166-1 code; may be ""
	SellerTaxID   string   // may be ""
	Document      string   // Receipt or Invoice: what customers get
	PublicURL     string   // https://HOST of the customers' listener; "" for no links
	ReceiptLinks  int      // another number makes all links to receipts invalid
	Portal        string   // On or Off: the customer's page
	PortalCancel  string   // On or Off: customers can cancel there
	PortalMail    string   // On or Off: mail has links to the customer's page
	LinkDays      int      // days for which these links work
	Tax           string   // On or Off; On parks a period of a subscription without a rate
	TaxMode       string   // Inclusive or Exclusive, for new subscriptions
	TaxRates      []string // rates for new subscriptions, by country, as tax.Table
	EndedBy       []string // statuses of a followed Stripe subscription that end it for the buyer; see package tracking

	// UnsubscribeMinutes is how many minutes an unsubscribe waits for another subscription; see
	// package tracking.
	UnsubscribeMinutes int

	// Products contains the product names that customers see, by SKU. Each name is the setting
	// product.SKU.
	Products map[string]string

	// Version increases with each change. Version 0 means that the store has no settings, and these
	// are the defaults.
	Version int64
	raw     store.Item
}

// NoNumbers is the ReceiptPrefix of a store whose receipts get no numbers.
const NoNumbers = "none"

// The values of AfterFailure decide what a new payment method does about the latest failed period.
const (
	Forgive = "forgive" // the period stays unpaid
	Collect = "collect" // the new payment method collects the period
)

// The values of AfterReversal decide what happens to a subscription whose payment the bank takes back: a
// dispute is lost, or a bank debit is returned.
const (
	Nothing = "nothing" // the subscription continues
	Park    = "park"    // the subscription is charged no more until an operator decides
)

// The values of Portal, PortalCancel, PortalMail, Tax and TaxMode.
const (
	On        = "on"
	Off       = "off"
	Inclusive = string(price.Inclusive)
	Exclusive = string(price.Exclusive)
)

// Default returns the settings of a store that has not stored any.
func Default() Settings {
	return Settings{ReceiptMonths: 6, RetryDays: []int{1, 3, 5, 7}, DebitRetries: []int{7, 14}, CatchUp: billing.DefaultCatchUp, ActionDays: 14,
		AfterFailure: Forgive, AfterReversal: Nothing, CollectDays: 30, PayDays: 14, DeliveryDays: 30, HistoryMonths: minHistoryMonths,
		ReceiptPrefix: "R", Document: Receipt, ReceiptLinks: 1, Portal: Off, PortalCancel: Off, PortalMail: Off, LinkDays: 7, Tax: Off, TaxMode: Inclusive, TimeZone: "UTC"}
}

// A setting describes one field of Settings: how users write the field and how the store keeps it.
type setting struct {
	name string // name on the command line and in the store
	want string // description of a valid value, for errors
	get  func(*Settings) string
	set  func(s *Settings, text string) bool // returns false if the text is invalid
}

// settings returns all settings. It builds them only once, because a run looks up six of them by
// name.
var settings = sync.OnceValue(func() []setting {
	return []setting{
		whole("receipt-months", 0, " (kept for ever)", maxReceiptMonths, func(s *Settings) *int { return &s.ReceiptMonths }),
		retryDays("retry-days", func(s *Settings) *[]int { return &s.RetryDays }),
		retryDays("debit-retry-days", func(s *Settings) *[]int { return &s.DebitRetries }),
		whole("catch-up", 1, "", maxCatchUp, func(s *Settings) *int { return &s.CatchUp }),
		whole("action-days", 0, " (for ever)", maxActionDays, func(s *Settings) *int { return &s.ActionDays }),
		choice("after-failure", Forgive, Collect, func(s *Settings) *string { return &s.AfterFailure }),
		choice("after-reversal", Nothing, Park, func(s *Settings) *string { return &s.AfterReversal }),
		whole("collect-days", 1, "", maxCollectDays, func(s *Settings) *int { return &s.CollectDays }),
		whole("pay-days", 1, "", maxPayDays, func(s *Settings) *int { return &s.PayDays }),
		line("pay-to", "", isText, func(s *Settings) *string { return &s.PayTo }),
		line("merchant-name", "", isText, func(s *Settings) *string { return &s.MerchantName }),
		line("postal-address", "", isText, func(s *Settings) *string { return &s.PostalAddress }),
		line("sender", "an address such as Ada's Gym <billing@example.com>", isMailbox,
			func(s *Settings) *string { return &s.Sender }),
		line("reply-to", "an address such as help@example.com", isAddress, func(s *Settings) *string { return &s.ReplyTo }),
		texts("daily", fmt.Sprintf("at most %d ascending times such as 06:10,18:10", maxDaily), areTimes,
			func(s *Settings) *[]string { return &s.Daily }),
		line("time-zone", "an IANA name such as Europe/Berlin, not an abbreviation", isZone, func(s *Settings) *string { return &s.TimeZone }),
		line("alarm-at", "a time such as 12:00", isTimeOfDay, func(s *Settings) *string { return &s.AlarmAt }),
		line("operator", "an address such as ops@example.com", isAddress, func(s *Settings) *string { return &s.Operator }),
		texts("ended-by", "some of past_due,paused,unpaid", areStatuses,
			func(s *Settings) *[]string { return &s.EndedBy }),
		whole("unsubscribe-minutes", 0, " (at once)", maxUnsubscribeMinutes,
			func(s *Settings) *int { return &s.UnsubscribeMinutes }),
		whole("delivery-days", 1, "", maxDeliveryDays, func(s *Settings) *int { return &s.DeliveryDays }),
		whole("history-months", minHistoryMonths, "", maxHistoryMonths, func(s *Settings) *int { return &s.HistoryMonths }),
		line("receipt-prefix", "1 to 10 capital letters and digits such as R, or "+NoNumbers, isReceiptPrefix,
			func(s *Settings) *string { return &s.ReceiptPrefix }),
		line("seller", "", isText, func(s *Settings) *string { return &s.Seller }),
		line("seller-address", "", isText, func(s *Settings) *string { return &s.SellerAddress }),
		line("seller-country", "an ISO 3166-1 code in upper case such as DE", party.IsCountry, func(s *Settings) *string { return &s.SellerCountry }),
		line("seller-tax-id", "", isText, func(s *Settings) *string { return &s.SellerTaxID }), // see checkDocument
		choice("document", Receipt, Invoice, func(s *Settings) *string { return &s.Document }),
		line("public-url", "https:// and a host, such as https://pay.example.com", isPublic, func(s *Settings) *string { return &s.PublicURL }),
		whole("receipt-links", 1, "", maxReceiptLinks, func(s *Settings) *int { return &s.ReceiptLinks }),
		choice("portal", On, Off, func(s *Settings) *string { return &s.Portal }),
		choice("portal-cancel", On, Off, func(s *Settings) *string { return &s.PortalCancel }),
		choice("portal-mail", On, Off, func(s *Settings) *string { return &s.PortalMail }),
		whole("link-days", 1, "", maxLinkDays, func(s *Settings) *int { return &s.LinkDays }),
		choice("tax", On, Off, func(s *Settings) *string { return &s.Tax }),
		choice("tax-mode", Inclusive, Exclusive, func(s *Settings) *string { return &s.TaxMode }),
		texts("tax-rates", "countries with a rate each such as DE:19,LI:8.1,US:0", func(list []string) bool { return tax.Table(list).Check() },
			func(s *Settings) *[]string { return &s.TaxRates }),
	}
})

// whole returns a setting that is a whole number from least to most. meaning explains the number
// least.
func whole(name string, least int, meaning string, most int, at func(*Settings) *int) setting {
	return setting{name, fmt.Sprintf("%d%s to %d", least, meaning, most),
		func(s *Settings) string { return strconv.Itoa(*at(s)) },
		func(s *Settings, text string) bool { return wholeNumber(at(s), text, least, most) }}
}

func line(name, want string, good func(string) bool, at func(*Settings) *string) setting {
	return setting{name, want, func(s *Settings) string { return *at(s) }, func(s *Settings, text string) bool {
		if text != "" && !good(text) {
			return false
		}
		*at(s) = text
		return true
	}}
}

// choice returns a setting that is one of two words.
func choice(name, one, other string, at func(*Settings) *string) setting {
	return line(name, one+" or "+other, func(text string) bool { return text == one || text == other }, at)
}

// texts returns a setting that is a list of texts. good may sort the list.
func texts(name, want string, good func([]string) bool, at func(*Settings) *[]string) setting {
	return setting{name, want, func(s *Settings) string { return strings.Join(*at(s), ",") },
		func(s *Settings, text string) bool {
			var list []string
			if text = strings.ReplaceAll(text, " ", ""); text != "" {
				list = strings.Split(text, ",")
			}
			if !good(list) {
				return false
			}
			*at(s) = list
			return true
		}}
}

func wholeNumber(into *int, text string, least, most int) bool {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < least || n > most {
		return false
	}
	*into = n
	return true
}

func isReceiptPrefix(text string) bool {
	return text == NoNumbers || len(text) <= 10 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

func isText(string) bool         { return true } // Set checks every text
func isAddress(text string) bool { return billing.CheckEmail(text) == nil }
func isTimeOfDay(s string) bool  { return areTimes([]string{s}) }

func isMailbox(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && isAddress(a.Address)
}

func isZone(text string) bool {
	_, err := schedule.Zone(text)
	return err == nil
}

func areTimes(list []string) bool {
	_, err := schedule.Parse(list, "UTC")
	return err == nil && len(list) <= maxDaily
}

func areStatuses(list []string) bool {
	slices.Sort(list)
	return len(slices.Compact(slices.Clone(list))) == len(list) && !slices.ContainsFunc(list, func(status string) bool {
		return !slices.Contains([]string{"past_due", "paused", "unpaid"}, status)
	})
}

// retryDays returns a setting that is a list of days after the first decline.
func retryDays(name string, at func(*Settings) *[]int) setting {
	want := fmt.Sprintf("at most %d ascending days from 1 to %d such as 1,3,5,7, or %s", maxRetries, maxRetryDay, noRetry)
	return setting{name, want, func(s *Settings) string {
		var days []string
		for _, d := range *at(s) {
			days = append(days, strconv.Itoa(d))
		}
		return cmp.Or(strings.Join(days, ","), noRetry)
	}, func(s *Settings, text string) bool {
		days, last := []int{}, 0
		if strings.TrimSpace(text) != noRetry {
			for part := range strings.SplitSeq(text, ",") {
				if !wholeNumber(&last, part, last+1, maxRetryDay) || len(days) == maxRetries {
					return false
				}
				days = append(days, last)
			}
		}
		*at(s) = days
		return true
	}}
}

// Names returns the names of the settings, in order.
func Names() []string {
	var names []string
	for _, f := range settings() {
		names = append(names, f.name)
	}
	return names
}

// productPrefix is the prefix of the settings that name products. The SKU follows the prefix.
const productPrefix = "product."

// MaxProducts is the largest number of named products. The limit keeps the settings item small.
const MaxProducts = 500

// product returns the setting for a product's name.
func product(sku string) setting {
	return setting{productPrefix + sku, fmt.Sprintf(
		"a name such as Daily news, with at most %d bytes, and a store can have at most %d names", billing.MaxName, MaxProducts),
		func(s *Settings) string { return s.Products[sku] }, func(s *Settings, text string) bool {
			if _, known := s.Products[sku]; len(text) > billing.MaxName || text != "" && !known && len(s.Products) == MaxProducts {
				return false
			}
			all := maps.Clone(s.Products) // copies of s must keep their own names
			if all == nil {
				all = map[string]string{}
			}
			if all[sku] = text; text == "" {
				delete(all, sku)
			}
			s.Products = all
			return true
		}}
}

// NameProduct sets the name that customers see for the SKU.
func (s *Settings) NameProduct(sku, name string) error { return s.Set(productPrefix+sku, name) }

// Names returns the names of all settings of s. The product settings come last.
func (s *Settings) Names() []string {
	names := Names()
	for _, sku := range slices.Sorted(maps.Keys(s.Products)) {
		names = append(names, productPrefix+sku)
	}
	return names
}

// settingOf returns the setting with the name, or a FieldError if there is none.
func settingOf(name string) (setting, error) {
	all := settings()
	if i := slices.IndexFunc(all, func(f setting) bool { return f.name == name }); i >= 0 {
		return all[i], nil
	}
	if sku, ok := strings.CutPrefix(name, productPrefix); ok && billing.CheckID("sku", sku) == nil {
		return product(sku), nil
	}
	return setting{}, billing.Invalid(strconv.Quote(name), "is not a setting; the settings are "+strings.Join(Names(), ", ")+" and "+
		productPrefix+"SKU")
}

// Note returns the settings that decide what a run does, for the run's record.
func (s *Settings) Note() string {
	var note strings.Builder
	note.WriteString(fmt.Sprintf("version=%d", s.Version))
	for _, name := range [...]string{"receipt-months", "retry-days", "debit-retry-days", "catch-up", "action-days", "after-failure", "collect-days", "after-reversal"} {
		note.WriteString(" " + name + "=" + s.Text(name))
	}
	return note.String()
}

// Taxes returns the taxes of new subscriptions, or nil if tax is off.
func (s *Settings) Taxes() *tax.Defaults {
	if s.Tax != On {
		return nil
	}
	return &tax.Defaults{Table: s.TaxRates, Mode: price.Mode(s.TaxMode)}
}

// Check returns a FieldError if settings contradict each other. Receipts with tax must be kept for ten years.
func (s *Settings) Check() error {
	if s.Tax == On && s.ReceiptMonths > 0 && s.ReceiptMonths < tax.Months {
		return billing.Invalid("receipt-months", fmt.Sprintf("must be 0 (kept for ever) or at least %d with tax=on (got %d)", tax.Months, s.ReceiptMonths))
	}
	if s.Portal == On && !s.Links() {
		return billing.Invalid("portal", "must be off, because on needs public-url, seller (or merchant-name) and seller-address (or postal-address)")
	}
	return s.checkDocument()
}

// Text returns the named setting in the form that Set accepts, or "" for an unknown name.
func (s *Settings) Text(name string) string {
	if f, err := settingOf(name); err == nil {
		return f.get(s)
	}
	return ""
}

// Set changes the named setting. An empty text sets the default. If the text is invalid, Set
// returns a FieldError with the valid form and does not change s.
func (s *Settings) Set(name, text string) error {
	f, err := settingOf(name)
	if err != nil {
		return err
	}
	text = cmp.Or(text, f.get(new(Default())))
	if err := billing.CheckText(name, text, maxSettingText); err != nil {
		return err
	}
	if !f.set(s, text) {
		return billing.Invalid(name, fmt.Sprintf("must be %[2]s (got %[1]q)", text, f.want))
	}
	return nil
}
