package tracking

import (
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A ConnectedAccount is a Stripe account whose events are followed. Its merchant never changes.
type ConnectedAccount struct {
	StripeAccount string        `json:"stripe_account"`
	Merchant      string        `json:"account"`       // UUID
	Own           bool          `json:"own,omitempty"` // the account of our key, which is connected to nobody
	Created       time.Time     `json:"created"`
	Updated       time.Time     `json:"last_updated"`
	Status        AccountStatus `json:"status"`
	Polled        PollState     `json:"polled"`

	version int64
}

// An AccountStatus says whether a Stripe account gives us access.
type AccountStatus string

// The statuses of a connected account.
const (
	Connected    AccountStatus = "connected"
	Disconnected AccountStatus = "disconnected"
)

// A PollState is how far the poller is with an account.
type PollState struct {
	Through time.Time `json:"verified_through,omitzero"` // every event before it is stored here; exclusive
	Checked time.Time `json:"checked,omitzero"`          // the last round; a failed round moves it within its day only; zero: none yet
	Next    time.Time `json:"next,omitzero"`             // the next round, unless a person asks sooner
	Quiet   int       `json:"quiet,omitempty"`           // rounds in a row without a new event
	Swept   time.Time `json:"swept,omitzero"`            // the last comparison of the objects
	Error   string    `json:"error,omitempty"`           // why the last round failed
	Thin    bool      `json:"thin,omitempty"`            // it has sent a thin event, before Checked; never taken back
}

func (a *ConnectedAccount) fields(c *codec) {
	if !c.reads {
		c.it.Set(schema.PK, store.S(accountRows))
	}
	text(c, schema.SK, &a.StripeAccount)
	text(c, schema.TrackedAccount, &a.Merchant)
	c.time(schema.TrackedCreated, &a.Created)
	c.time(schema.TrackedUpdated, &a.Updated)
	text(c, schema.TrackedStatus, &a.Status)
	c.version(&a.version)
	c.part(schema.TrackedPolled, func(c *codec) {
		c.time(schema.PollThrough, &a.Polled.Through)
		c.time(schema.PollChecked, &a.Polled.Checked)
		c.time(schema.PollNext, &a.Polled.Next)
		number(c, schema.PollQuiet, &a.Polled.Quiet)
		c.time(schema.PollSwept, &a.Polled.Swept)
		text(c, schema.PollError, &a.Polled.Error)
		c.flag(schema.PollThin, &a.Polled.Thin)
	})
}
