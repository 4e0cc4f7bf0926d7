package settings_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
)

// set changes the settings of the store by texts of the form NAME=VALUE.
func set(t *testing.T, r *billing.Records, texts ...string) error {
	t.Helper()
	_, err := settings.Change(t.Context(), r, func(s *settings.Settings) (err error) {
		for _, text := range texts {
			name, value, _ := strings.Cut(text, "=")
			err = errors.Join(err, s.Set(name, value))
		}
		return err
	})
	return err
}

// TestInvoiceNeeds: the choice of invoices is refused with everything that is missing, whichever change would
// leave it without.
func TestInvoiceNeeds(t *testing.T) {
	_, r := settingsStore(t)
	all := set(t, r, "document=invoice")
	for _, name := range []string{"document: must be receipt", "seller, ", "seller-address", "seller-country", "seller-tax-id", "tax=on", "receipt-months=120 or more, or 0"} {
		if all == nil || !strings.Contains(all.Error(), name) {
			t.Errorf("%v; it must name %s", all, name)
		}
	}
	// merchant-name is a brand, and does not count
	if err := set(t, r, "seller=Ada Fitness GmbH", "seller-address=Berlin", "seller-country=DE", "seller-tax-id=DE123456789",
		"receipt-months=120"); err != nil {
		t.Fatal(err)
	}
	if err := set(t, r, "document=invoice"); err == nil || !strings.HasSuffix(err.Error(), "invoice needs tax=on") {
		t.Error(err)
	}
	if now, err := settings.Read(t.Context(), r); err != nil || now.Document != settings.Receipt {
		t.Errorf("%+v, %v", now, err)
	}
	if err := set(t, r, "document=invoice", "tax=on"); err != nil {
		t.Error(err)
	}
	if err := set(t, r, "tax=off"); err == nil || !strings.HasSuffix(err.Error(), "invoice needs tax=on") {
		t.Errorf("without tax: %v", err)
	}
}

func TestSellerTaxID(t *testing.T) {
	_, r := settingsStore(t)
	for text, good := range map[string]bool{"DE123456789": true, "DE12345678": false, "ATU12345678": false, "12/345/67890": true, "DE 123 456 789": true,
		"<b>": false} {
		if err := set(t, r, "seller-country=DE", "seller-tax-id="+text); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := set(t, r, "seller-country=FR", "seller-tax-id=FR12123456789"); err != nil {
		t.Fatal(err)
	}
	if err := set(t, r, "seller-country=DE"); err == nil || !strings.Contains(err.Error(), "seller-tax-id") {
		t.Errorf("another country: %v", err)
	}
}

// TestPortal: the customer's page needs the same.
func TestPortal(t *testing.T) {
	_, r := settingsStore(t)
	if err := set(t, r, "portal=on", "seller=Gym"); err == nil || !strings.Contains(err.Error(), "portal: must be off, because on needs public-url") {
		t.Error(err)
	}
	if err := set(t, r, "portal=on", "seller=Gym", "seller-address=Here", "public-url=https://a.example"); err != nil {
		t.Fatal(err)
	}
	if err := set(t, r, "public-url="); err == nil {
		t.Error("the page lost its address")
	}
}

// TestLinks: a link needs somewhere to lead to, and a document somebody who stands behind it.
func TestLinks(t *testing.T) {
	for texts, want := range map[string]bool{"": false, "public-url=https://a.example": false, "merchant-name=Gym|postal-address=Here": false,
		"public-url=https://a.example|merchant-name=Gym": false, "public-url=https://a.example|merchant-name=Gym|postal-address=Here": true,
		"public-url=http://localhost:8084|seller=Gym Ltd|seller-address=Here": true, "public-url=http://[::1]:1|seller=Gym|seller-address=Here": true} {
		s := settings.Default()
		for text := range strings.SplitSeq(texts, "|") {
			if name, value, ok := strings.Cut(text, "="); ok {
				if err := s.Set(name, value); err != nil {
					t.Fatal(err)
				}
			}
		}
		if s.Links() != want {
			t.Errorf("%s: %v", texts, s.Links())
		}
	}
}
