package party_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/field"
)

// wrong returns the names of the wrong fields, with their problems.
func wrong(d party.Details) (names []string, text string) {
	for _, err := range party.Check(d, billing.CheckText) {
		e, _ := errors.AsType[*field.Error](err)
		names, text = append(names, e.Field), text+e.Problem+"\n"
	}
	return names, text
}

func TestTaxID(t *testing.T) {
	for _, tt := range []struct{ country, id, says string }{
		{"DE", "DE123456789", ""}, {"DE", "de 123 456 789", ""}, {"DE", "12/345/67890", ""}, {"DE", "DE12345678", "form of DE's VAT ids"},
		{"DE", "DE12345678X", "form of DE's"}, {"DE", "FR12345678901", "one of FR"}, {"DE", "EL123456789", "one of GR"},
		{"GR", "EL123456789", ""}, {"GR", "123456789", ""}, {"GR", "EL12", "form of GR's"}, {"GR", "DE123456789", "one of DE"},
		{"NL", "NL123456789B01", ""}, {"NL", "NL.1234.56.789.B01", ""}, {"NL", "NL123456789", "form of NL's"}, {"NL", "NL123456789B012", "form"},
		{"FR", "FRK7399859412", ""}, {"IE", "IE1234567WA", ""}, {"IE", "IE1S23456L", ""}, {"LT", "LT1234567890", "form"}, {"LT", "LT123456789012", ""},
		{"ES", "ESX1234567X", ""}, {"ES", "B12345678", ""}, {"IT", "RSSMRA80A01H501U", ""}, {"AT", "ATU12345678", ""}, {"AT", "AT12345678", "form"},
		{"CH", "CHE-123.456.789 MWST", ""}, {"BR", "12.345.678/0001-95", ""}, {"MX", "ESO1202108R2", ""}, {"GB", "XI123456789", ""},
		{"US", "12-3456789", ""}, {"US", "DE123456789", ""}, {"", "DE1", ""}, // of an unknown country, or a company registered abroad
		{"IN", "22AAAAA0000A1Z5", ""}, {"US", "-", "letters, digits"}, {"US", "1\t2", "control"}, {"US", "1_2", "letters, digits"},
		{"US", "１２３", "letters, digits"}, {"US", strings.Repeat("1", 33), "at most 32"}, {"US", "4242424242424242", "card number"},
	} {
		d := party.Details{TaxID: tt.id}
		d.Address.Country = tt.country
		names, text := wrong(d)
		if tt.says == "" && names != nil || tt.says != "" && (!slices.Equal(names, []string{"tax_id"}) || !strings.Contains(text, tt.says)) {
			t.Errorf("%s %q: %v %q, want %q", tt.country, tt.id, names, text, tt.says)
		}
	}
}

func TestCheck(t *testing.T) {
	var good party.Details
	good.Company, good.Address.City, good.Address.State, good.Address.Line1 = "株式会社ドゥーズデイ", "北九州市", "Île-de-France", `"Zoë" O'Brien & Söhne`
	good.Address.Country, good.Address.PostalCode, good.Address.Line2 = "XK", "SW1A 1AA", "عمارة ٥"
	if names, text := wrong(good); names != nil {
		t.Error(names, text)
	}
	for i, name := range party.Names {
		for _, text := range []string{"4242 4242 4242 4242", "a\nb", strings.Repeat("x", 201)} {
			d := good
			*d.Fields()[i] = text
			if names, said := wrong(d); !slices.Equal(names, []string{name}) || strings.Contains(said, "4242 4242 4242") {
				t.Errorf("%s %q: %v %s", name, text, names, said)
			}
		}
	}
	for _, country := range []string{"de", "UK", "EU", "D", "DEU", " D", "D ", "XX", "A\x00"} {
		d := party.Details{}
		if d.Address.Country = country; len(party.Check(d, billing.CheckText)) != 1 {
			t.Errorf("country %q", country)
		}
	}
}

// TestFields: each text of Details is in Fields once, by its name in JSON.
func TestFields(t *testing.T) {
	var d party.Details
	for i, f := range d.Fields() {
		*f = party.Names[i]
	}
	seen := 0
	var look func(v reflect.Value)
	look = func(v reflect.Value) {
		for i := range v.NumField() {
			if v.Field(i).Kind() == reflect.Struct {
				look(v.Field(i))
				continue
			}
			tag := v.Type().Field(i).Tag
			name := tag.Get("field") + tag.Get("json")
			if name = strings.TrimSuffix(name, strings.TrimPrefix(tag.Get("field"), "address_")); tag.Get("field") == "" {
				name = tag.Get("json")
			}
			if seen++; v.Field(i).String() != name {
				t.Errorf("%s has %q", name, v.Field(i))
			}
		}
	}
	if look(reflect.ValueOf(d)); seen != len(party.Names) || !slices.IsSorted(party.Names[:]) {
		t.Errorf("%d of %v", seen, party.Names)
	}
	if party.Apply(&d, party.Change{Company: new("")}); d.Company != "" || d.TaxID != "tax_id" {
		t.Errorf("%+v", d)
	}
}
