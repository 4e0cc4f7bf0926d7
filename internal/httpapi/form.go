package httpapi

import (
	"errors"
	"time"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

// A tagForm is a tracking.Tag in JSON.
type tagForm struct {
	Installation       string        `json:"installation,omitempty"`
	Purchase           string        `json:"purchase,omitempty"`
	Kind               tracking.Kind `json:"kind,omitempty"`
	Charge             bool          `json:"charge,omitempty"`
	ChargeAccount      string        `json:"charge_account,omitempty"`
	ChargeSubscription string        `json:"charge_subscription,omitempty"`
}

// objectFields are a tracking.Object, field by field: a new field there has to be given
// its name here.
type objectFields struct {
	Kind         string            `json:"kind"`
	ID           string            `json:"id"`
	Status       string            `json:"status,omitempty"`
	Created      time.Time         `json:"created,omitzero"`
	Tag          tracking.Tag      `json:"-"`
	Fetched      bool              `json:"seen,omitempty"`
	Failed       bool              `json:"failed,omitempty"`
	Code         string            `json:"code,omitempty"`
	Amount       int64             `json:"amount,omitempty"`
	Currency     string            `json:"currency,omitempty"`
	Payment      string            `json:"payment,omitempty"`
	Invoice      string            `json:"invoice,omitempty"`
	Subscription string            `json:"subscription,omitempty"`
	Schedule     string            `json:"schedule,omitempty"`
	Customer     string            `json:"customer,omitempty"`
	InvoiceTold  bool              `json:"invoice_told,omitempty"`
	Refunded     int64             `json:"refunded,omitempty"`
	Refunds      []tracking.Refund `json:"refunds,omitempty"`
}

// An objectForm is a tracking.Object in JSON.
type objectForm struct {
	objectFields
	Tag tagForm `json:"tag,omitzero"`
}

func formOfObject(o tracking.Object) objectForm {
	return objectForm{objectFields(o), tagForm(o.Tag)}
}

func (f objectForm) object() tracking.Object {
	o := tracking.Object(f.objectFields)
	o.Tag = tracking.Tag(f.Tag)
	return o
}

// eventFields are a tracking.Event, field by field.
type eventFields struct {
	ID            string               `json:"id"`
	Type          string               `json:"type"`
	StripeAccount string               `json:"stripe_account,omitempty"`
	Created       time.Time            `json:"created,omitzero"`
	Live          bool                 `json:"live,omitempty"` // not of a stored one: its body has it
	APIVersion    string               `json:"api_version,omitempty"`
	Object        tracking.Object      `json:"-"`
	Merchant      string               `json:"account,omitempty"`
	Subscription  string               `json:"subscription,omitempty"`
	Status        tracking.EventStatus `json:"status,omitempty"`
	Reason        string               `json:"reason,omitempty"`
	Source        tracking.Source      `json:"source,omitempty"`
	Received      time.Time            `json:"received,omitzero"`
	Applied       time.Time            `json:"applied,omitzero"`
	Body          []byte               `json:"-"`
}

// An eventForm is a tracking.Event in JSON.
type eventForm struct {
	eventFields
	Object objectForm `json:"object,omitzero"`
	Body   string     `json:"body,omitempty"`        // as it was signed
	Binary []byte     `json:"body_base64,omitempty"` // the same, if it is no text
}

func formOfEvent(e *tracking.Event) any {
	f := eventForm{eventFields: eventFields(*e), Object: formOfObject(e.Object)}
	if utf8.Valid(e.Body) {
		f.Body = string(e.Body)
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
	e := tracking.Event(f.eventFields)
	e.Object, e.Body = f.Object.object(), f.Binary
	if f.Body != "" {
		e.Body = []byte(f.Body)
	}
	return &e
}

// A createdForm is a tracking.Created in JSON.
type createdForm struct {
	Purchase     *tracking.Purchase `json:"purchase"`
	Objects      []objectForm       `json:"objects"` // the payment, subscription, schedule at Stripe
	Customer     string             `json:"customer,omitempty"`
	ClientSecret string             `json:"client_secret,omitempty"`
	Declined     string             `json:"declined,omitempty"`
	Action       bool               `json:"action_required,omitempty"`
	Repeated     bool               `json:"repeated,omitempty"`
}

func formOfCreated(c *tracking.Created) createdForm {
	f := createdForm{Purchase: c.Purchase, Objects: []objectForm{}, Customer: c.Sale.Customer,
		ClientSecret: c.Sale.ClientSecret.Reveal(), Declined: c.Sale.Declined, Action: c.Sale.Action, Repeated: c.Repeated}
	for _, o := range c.Sale.Objects {
		f.Objects = append(f.Objects, formOfObject(o))
	}
	return f
}

func (f *createdForm) created() (*tracking.Created, error) {
	if f.Purchase == nil {
		return nil, errors.New("the answer has no purchase")
	}
	c := &tracking.Created{Purchase: f.Purchase, Repeated: f.Repeated, Sale: tracking.Sale{Customer: f.Customer,
		ClientSecret: secret.New(f.ClientSecret), Declined: f.Declined, Action: f.Action}}
	for _, o := range f.Objects {
		c.Sale.Objects = append(c.Sale.Objects, o.object())
	}
	return c, nil
}

// The other bodies of the internal API.
type (
	registerForm struct {
		Account       string `json:"account"`
		StripeAccount string `json:"stripe_account"`
	}
	applyForm struct {
		At     string     `json:"at"` // the connected account, or "" for our own
		Object objectForm `json:"object"`
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
