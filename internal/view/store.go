package view

import (
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/status"
)

// Settings returns the store's settings.
func Settings(s *settings.Settings) Object {
	return Object{"version", s.Version, "receipt_months", s.ReceiptMonths, "retry_days", s.RetryDays, "debit_retry_days", s.DebitRetries,
		"catch_up", s.CatchUp, "action_days", s.ActionDays, "after_failure", s.AfterFailure, "after_reversal", s.AfterReversal, "collect_days", s.CollectDays,
		"pay_days", s.PayDays, "pay_to?", s.PayTo,
		"merchant_name?", s.MerchantName, "postal_address?", s.PostalAddress,
		"seller?", s.Seller, "seller_address?", s.SellerAddress, "seller_country?", s.SellerCountry, "seller_tax_id?", s.SellerTaxID,
		"document", s.Document, "public_url?", s.PublicURL, "receipt_links", s.ReceiptLinks,
		"portal", s.Portal, "portal_cancel", s.PortalCancel, "portal_mail", s.PortalMail, "link_days", s.LinkDays, "sender?", s.Sender, "reply_to?", s.ReplyTo,
		"daily?", s.Daily, "time_zone", s.TimeZone, "alarm_at?", s.AlarmAt, "operator?", s.Operator, "ended_by?", s.EndedBy,
		"unsubscribe_minutes", s.UnsubscribeMinutes, "delivery_days", s.DeliveryDays, "history_months", s.HistoryMonths, "receipt_prefix", s.ReceiptPrefix,
		"tax", s.Tax, "tax_mode", s.TaxMode, "tax_rates?", s.TaxRates, "products?", s.Products}
}

// SettingChange returns one change of one setting.
func SettingChange(c settings.Changed) Object {
	return Object{"at", c.At, "version", c.Version, "setting", c.Name, "before?", c.Before, "after", c.After, "actor?", c.Actor}
}

// Charging returns the charging switch. reason says why charging is off. accepted is the installation
// whose charges were accepted with the change, if any. actor turned the switch, if known.
func Charging(on bool, reason, accepted, actor string) Object {
	return Object{"charging", on, "reason?", reason, "accepted_installation?", accepted, "actor?", actor}
}

// Key returns the API key without its secret.
func Key(k *key.Key) Object {
	return Object{"id", k.ID, "name", k.Name, "scope", k.Scope, "merchant?", k.Merchant, "created_at", k.Created,
		"expires_at?", k.Expires, "revoked_at?", k.Revoked, "last_used_at?", k.Used}
}

// Check returns the result of one health check.
func Check(c status.Check) Object {
	return Object{"check", c.Name, "ok", c.State == status.OK || c.State == status.Warning, "state", c.State, "found", c.Text,
		"next?", c.Next, "values?", List(c.Values, func(v status.Value) Object {
			return Object{"metric", v.Metric, "labels?", v.Labels, "value", v.Number}
		})}
}
