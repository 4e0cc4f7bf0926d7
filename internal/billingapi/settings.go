package billingapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/view"
	"github.com/duesday/duesday/internal/web"
)

func (s *server) settings(w http.ResponseWriter, r *web.Request) error {
	now, err := settings.Read(r.Context(), s.Engine.Records)
	tag(w, now.Version)
	return show(w, view.Settings(&now), err)
}

// A settingsForm contains new settings, in the same form as getSettings. An absent setting stays unchanged.
type settingsForm struct {
	ReceiptMonths      *int               `json:"receipt_months"`
	RetryDays          *[]int             `json:"retry_days"`
	DebitRetryDays     *[]int             `json:"debit_retry_days"`
	CatchUp            *int               `json:"catch_up"`
	ActionDays         *int               `json:"action_days"`
	AfterFailure       *string            `json:"after_failure"`
	AfterReversal      *string            `json:"after_reversal"`
	CollectDays        *int               `json:"collect_days"`
	PayDays            *int               `json:"pay_days"`
	PayTo              *string            `json:"pay_to"`
	MerchantName       *string            `json:"merchant_name"`
	PostalAddress      *string            `json:"postal_address"`
	Seller             *string            `json:"seller"`
	SellerAddress      *string            `json:"seller_address"`
	SellerCountry      *string            `json:"seller_country"`
	SellerTaxID        *string            `json:"seller_tax_id" field:"seller-tax-id"`
	Document           *string            `json:"document"`
	PublicURL          *string            `json:"public_url"`
	ReceiptLinks       *int               `json:"receipt_links"`
	Portal             *string            `json:"portal"`
	PortalCancel       *string            `json:"portal_cancel"`
	PortalMail         *string            `json:"portal_mail"`
	LinkDays           *int               `json:"link_days"`
	Sender             *string            `json:"sender"`
	ReplyTo            *string            `json:"reply_to"`
	Daily              *[]string          `json:"daily"`
	TimeZone           *string            `json:"time_zone"`
	AlarmAt            *string            `json:"alarm_at"`
	Operator           *string            `json:"operator"`
	EndedBy            *[]string          `json:"ended_by"`
	UnsubscribeMinutes *int               `json:"unsubscribe_minutes"`
	DeliveryDays       *int               `json:"delivery_days"`
	HistoryMonths      *int               `json:"history_months"`
	ReceiptPrefix      *string            `json:"receipt_prefix"`
	Tax                *string            `json:"tax"`
	TaxMode            *string            `json:"tax_mode"`
	TaxRates           *[]string          `json:"tax_rates"`
	Products           map[string]*string `json:"products"` // names by SKU; "" removes one
}

func (s *server) setSettings(w http.ResponseWriter, r *web.Request) error {
	var f settingsForm
	read := r.Read(&f)
	if read == nil && reflect.ValueOf(f).IsZero() {
		return errNothing
	}
	now, err := settings.Change(r.Context(), s.Engine.Records, func(now *settings.Settings) error {
		return errors.Join(read, f.apply(now))
	})
	tag(w, now.Version)
	return show(w, view.Settings(&now), err)
}

// apply changes the settings. Its errors use the request's field names.
func (f *settingsForm) apply(to *settings.Settings) error {
	var x form
	for t, v := range reflect.ValueOf(f).Elem().Fields() {
		name, err := t.Tag.Get("json"), error(nil)
		setting := strings.ReplaceAll(name, "_", "-")
		if v.IsNil() {
			continue
		}
		switch given := v.Interface().(type) {
		case map[string]*string:
			for _, sku := range slices.Sorted(maps.Keys(given)) {
				if given[sku] == nil {
					given[sku], err = new(string), billing.Invalid(name, "must not contain null")
				}
				err = errors.Join(err, to.NameProduct(sku, *given[sku]))
			}
		case *[]string:
			err = to.Set(setting, strings.Join(*given, ","))
		case *[]int:
			err = to.Set(setting, cmp.Or(strings.Trim(strings.ReplaceAll(fmt.Sprint(*given), " ", ","), "[]"), "none"))
		default:
			err = to.Set(setting, fmt.Sprint(v.Elem()))
		}
		if e, ok := errors.AsType[*field.Error](err); ok {
			err = billing.Invalid(name, e.Problem)
		}
		x.add(err)
	}
	if e, ok := errors.AsType[*field.Error](to.Check()); ok && x.err() == nil {
		x.add(billing.Invalid(strings.ReplaceAll(e.Field, "-", "_"), e.Problem))
	}
	return x.err()
}
