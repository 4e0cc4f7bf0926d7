// Package party checks what a receipt says of the one who pays: company, address and tax id. It checks
// their form, and does not look anything up.
package party

import (
	"regexp"
	"strings"

	"github.com/duesday/duesday/internal/field"
)

// Of has a party's details as texts, or as pointers for a change.
type Of[T any] struct {
	Company T `json:"company"`
	Address struct {
		Line1      T `json:"line1" field:"address_line1"`
		Line2      T `json:"line2" field:"address_line2"`
		City       T `json:"city"`
		Country    T `json:"country"` // ISO 3166-1 alpha-2
		PostalCode T `json:"postal_code"`
		State      T `json:"state"`
	} `json:"address"`
	TaxID T `json:"tax_id"`
}

// Details are a party's details. A text is empty if it is not known.
type Details = Of[string]

// A Change contains new details. A nil one stays, and an empty text removes it.
type Change = Of[*string]

// Names are the names of the Fields in errors, files and stored items, in alphabetical order.
var Names = [...]string{"address_line1", "address_line2", "city", "company", "country", "postal_code", "state", "tax_id"}

// limits are the longest texts, in bytes.
var limits = [len(Names)]int{200, 200, 100, 200, 2, 20, 100, 32}

// Fields returns the details in the order of Names.
func (d *Of[T]) Fields() [len(Names)]*T {
	a := &d.Address
	return [...]*T{&a.Line1, &a.Line2, &a.City, &d.Company, &a.Country, &a.PostalCode, &a.State, &d.TaxID}
}

// Apply makes the changes.
func Apply(d *Details, c Change) {
	now := d.Fields()
	for i, text := range c.Fields() {
		if *text != nil {
			*now[i] = **text
		}
	}
}

// Check returns an error for each wrong field. It checks the characters and length of each text with text.
func Check(d Details, text func(field, text string, limit int) error) (all []error) {
	wrong := map[string]bool{}
	add := func(name string, err error) {
		if err != nil && !wrong[name] {
			wrong[name] = true
			all = append(all, err)
		}
	}
	for i, f := range d.Fields() {
		add(Names[i], text(Names[i], *f, limits[i]))
	}
	if !IsCountry(d.Address.Country) {
		add("country", field.Wrong("country", "must be an ISO 3166-1 code in upper case such as DE"))
	}
	if why := taxProblem(d.TaxID, d.Address.Country); why != "" {
		add("tax_id", field.Wrong("tax_id", why))
	}
	return all
}

// IsCountry reports whether the text is empty or a country's ISO 3166-1 alpha-2 code. Kosovo has XK.
func IsCountry(code string) bool {
	return code == "" || len(code) == 2 && strings.Contains(countries, " "+code+" ")
}

const countries = " AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW " +
	"BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR " +
	"GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE " +
	"KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV " +
	"MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC " +
	"SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ " +
	"VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW "

// vat are the forms of the EU countries' VAT ids, which begin with the country's code, except for EL (Greece).
var vat = map[string]string{"AT": `ATU\d{8}`, "BE": `BE[01]\d{9}`, "BG": `BG\d{9,10}`, "CY": `CY\d{8}[A-Z]`, "CZ": `CZ\d{8,10}`,
	"DE": `DE\d{9}`, "DK": `DK\d{8}`, "EE": `EE\d{9}`, "ES": `ES[A-Z0-9]\d{7}[A-Z0-9]`, "FI": `FI\d{8}`, "FR": `FR[A-Z0-9]{2}\d{9}`,
	"GR": `EL\d{9}`, "HR": `HR\d{11}`, "HU": `HU\d{8}`, "IE": `IE\d[A-Z0-9]\d{5}[A-Z]{1,2}`, "IT": `IT\d{11}`,
	"LT": `LT(\d{9}|\d{12})`, "LU": `LU\d{8}`, "LV": `LV\d{11}`, "MT": `MT\d{8}`, "NL": `NL\d{9}B\d{2}`, "PL": `PL\d{10}`,
	"PT": `PT\d{9}`, "RO": `RO\d{2,10}`, "SE": `SE\d{12}`, "SI": `SI\d{8}`, "SK": `SK\d{10}`}

// taxForm is the form of any country's id.
var taxForm = regexp.MustCompile(`^[ .\-/]*([0-9A-Za-z][ .\-/]*)+$`)

// taxProblem returns what is wrong with the tax id, or "". In an EU country, an id that begins with its
// prefix must have the form of its VAT ids, and it must not be another country's VAT id. Each other id can be
// the country's own number.
func taxProblem(id, country string) string {
	if id == "" {
		return ""
	}
	if !taxForm.MatchString(id) {
		return "must have letters, digits, spaces, dots, slashes and dashes only"
	}
	own, eu := vat[country]
	if !eu {
		return ""
	}
	plain := strings.ToUpper(strings.NewReplacer(" ", "", ".", "", "-", "", "/", "").Replace(id))
	is := func(form string) bool { return regexp.MustCompile("^" + form + "$").MatchString(plain) }
	if strings.HasPrefix(plain, own[:2]) && !is(own) {
		return "must have the form of " + country + "'s VAT ids"
	}
	for other, form := range vat {
		if other != country && is(form) {
			return "must be an id of " + country + ", which is the country (got one of " + other + ")"
		}
	}
	return ""
}
