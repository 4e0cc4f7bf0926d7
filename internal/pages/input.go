package pages

import (
	"strconv"

	"github.com/duesday/duesday/internal/money"
)

// An input is a field of a form, and of the API's body.
type input struct {
	Name, Label string
	Kind        string   // "" for a text, or number, money, date or check
	Choices     []string // for a choice
	Hint        string
	Required    bool
	Flag        string // of the command; "": the name with -; "-": none
}

// read sets the field in the body, unless the form leaves it out, and says what is wrong with it. An amount is
// in the currency of the object before.
func (f input) read(text string, before, in object) (wrong string) {
	switch {
	case text == "":
	case f.Kind == "check":
		in[f.Name] = true
	case f.Kind == "number":
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return "must be a whole number"
		}
		in[f.Name] = n
	case f.Kind == "money":
		code, _ := before["currency"].(string)
		c, err := money.ParseCurrency(code)
		if err != nil {
			return err.Error()
		}
		amount, err := money.Parse(text, c)
		if err != nil {
			return err.Error()
		}
		in[f.Name], in["currency"] = amount.Minor(), c.Code()
	default:
		in[f.Name] = text
	}
	return ""
}
