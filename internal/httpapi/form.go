package httpapi

import (
	"errors"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

// An eventForm is a tracking.Event in JSON.
type eventForm struct {
	tracking.Event
	Text   string // its body as it was signed
	Binary []byte // the same, if it is no text
}

func formOfEvent(e *tracking.Event) any {
	f := eventForm{Event: *e}
	if utf8.Valid(e.Body) {
		f.Text = string(e.Body)
	} else {
		f.Binary = e.Body
	}
	return f
}

func formOfWaiting(e *tracking.Event) any {
	short := *e
	short.Body = nil
	return formOfEvent(&short)
}

func (f *eventForm) event() *tracking.Event {
	f.Body = f.Binary
	if f.Text != "" {
		f.Body = []byte(f.Text)
	}
	return &f.Event
}

// A createdForm is a tracking.Created in JSON.
type createdForm struct {
	Purchase               *tracking.Purchase
	Objects                []tracking.Object // the payment, subscription, schedule at Stripe
	Customer, ClientSecret string
	Declined               string
	Action, Repeated       bool
}

func formOfCreated(c *tracking.Created) createdForm {
	return createdForm{Purchase: c.Purchase, Objects: append([]tracking.Object{}, c.Sale.Objects...),
		Customer: c.Sale.Customer, ClientSecret: c.Sale.ClientSecret.Reveal(), Declined: c.Sale.Declined,
		Action: c.Sale.Action, Repeated: c.Repeated}
}

func (f *createdForm) created() (*tracking.Created, error) {
	if f.Purchase == nil {
		return nil, errors.New("the answer has no purchase")
	}
	return &tracking.Created{Purchase: f.Purchase, Repeated: f.Repeated, Sale: tracking.Sale{
		Objects: append([]tracking.Object(nil), f.Objects...), Customer: f.Customer,
		ClientSecret: secret.New(f.ClientSecret), Declined: f.Declined, Action: f.Action}}, nil
}

// The other bodies of the internal API.
type (
	registerForm struct {
		Account       string `json:"account"`
		StripeAccount string `json:"stripe_account"`
	}
	applyForm struct {
		At     string // the connected account, or "" for our own
		Object tracking.Object
	}
	appliedForm struct {
		Changed bool `json:"changed"`
	}
	doneForm struct {
		Done bool `json:"done"`
	}
	jobForm struct {
		ID string `json:"id"` // has a slash in it, and so is in no path
	}
)
