// Package delivery sends webhooks about events to other programs (Standard Webhooks 1.0). A commit writes one
// row for its effect, and a Sender turns the row into messages for the endpoints that receive its events.
//
// It does not know billing or tracking, from whose commits package cause derives the events. It accepts no
// requests.
package delivery

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// Types returns all event types.
func Types() []string {
	return []string{"subscription.created", "subscription.updated", "subscription.paused", "subscription.resumed",
		"subscription.past_due", "subscription.canceled", "subscription.completed",
		"period.paid", "period.failed", "period.action_required", "period.parked", "receipt.created",
		"refund.created", "refund.updated", "refund.succeeded", "refund.failed", "refund.canceled",
		"dispute.created", "dispute.updated", "dispute.lost", "dispute.won", "dispute.canceled",
		"reminder.due", "purchase.fulfilled", "purchase.unsubscribed", "run.finished", "run.late"}
}

// Reasons why an endpoint is paused.
const (
	ReasonRequested  = "requested"  // by a person or program
	ReasonGone       = "gone"       // it responded with 410
	ReasonFailing    = "failing"    // every delivery has failed for five days
	ReasonUnreadable = "unreadable" // another tool has damaged its item
)

// An Endpoint receives messages.
type Endpoint struct {
	ID       string
	URL      string
	Types    []string // such as period.paid or period.*; empty: all
	Created  time.Time
	Secret   secret.Text
	Previous secret.Text // also signs messages until Until
	Until    time.Time
	Paused   time.Time // when it was paused; zero: it is not paused
	Reason   string    // why it is paused
	Failing  time.Time // when deliveries began to fail; zero: the last one succeeded
	GaveUp   time.Time // when the Sender last gave up on a message; zero: never
	Version  int64
	Health   *Health // set by Examine, and not stored
}

const (
	endpointsPK  = "ENDPOINTS"
	mostURL      = 500
	secretPrefix = "whsec_"
	stampLayout  = "2006-01-02T15:04:05.000Z" // texts sort like their times
)

// MostEndpoints is the maximum number of endpoints, because one commit writes a message for each.
const MostEndpoints = 20

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

func endpointKey(id string) store.Key { return store.Key{PK: endpointsPK, SK: id} }

func newSecret() secret.Text {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	return secret.New(secretPrefix + base64.StdEncoding.EncodeToString(random[:]))
}

// signingKey decodes a secret.
func signingKey(s secret.Text) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Reveal(), secretPrefix))
}

// Wants reports whether the endpoint receives events of type kind.
func (e *Endpoint) Wants(kind string) bool {
	return len(e.Types) == 0 || slices.ContainsFunc(e.Types, func(want string) bool { return matches(want, kind) })
}

func matches(want, kind string) bool {
	group, every := strings.CutSuffix(want, "*")
	return want == kind || every && strings.HasPrefix(kind, group)
}

// Check returns an error that joins a field.Error for each invalid field.
func (e *Endpoint) Check() error {
	var wrong []error
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || len(e.URL) > mostURL || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" || u.Fragment != "":
		wrong = append(wrong, field.Wrong("url", fmt.Sprintf("must be an http or https URL of at most %d bytes, without a fragment", mostURL)))
	case u.User != nil:
		wrong = append(wrong, field.Wrong("url", "must not contain a user or password, because messages are signed"))
	}
	for i, want := range e.Types {
		group, every := strings.CutSuffix(want, ".*")
		if !slices.ContainsFunc(Types(), func(kind string) bool {
			return kind == want || every && strings.HasPrefix(kind, group+".")
		}) {
			wrong = append(wrong, field.Wrong("types", fmt.Sprintf("entry %d must be one of %s, or a group such as period.*", i+1,
				strings.Join(Types(), ", "))))
			break
		}
	}
	return errors.Join(wrong...)
}

func (e *Endpoint) item() store.Item {
	key := endpointKey(e.ID)
	it := store.NewItem(store.Attribute{Name: schema.Version, Value: store.Int(e.Version)})
	for name, text := range map[string]string{schema.PK: key.PK, schema.SK: key.SK, schema.URL: e.URL,
		schema.Types: strings.Join(e.Types, " "), schema.Secret: e.Secret.Reveal(), schema.PreviousSecret: e.Previous.Reveal(),
		schema.Reason: e.Reason} {
		if text != "" {
			it.Set(name, store.S(text))
		}
	}
	for name, at := range map[string]time.Time{schema.CreatedDate: e.Created, schema.Until: e.Until, schema.PausedDate: e.Paused,
		schema.FailingDate: e.Failing, schema.DeadDate: e.GaveUp} {
		if !at.IsZero() {
			it.Set(name, store.S(stamp(at)))
		}
	}
	return it
}

func decodeEndpoint(it store.Item) (*Endpoint, error) {
	e := &Endpoint{ID: it.Str(schema.SK), URL: it.Str(schema.URL), Types: strings.Fields(it.Str(schema.Types)),
		Secret: secret.New(it.Str(schema.Secret)), Previous: secret.New(it.Str(schema.PreviousSecret)),
		Reason: it.Str(schema.Reason), Version: it.Int(schema.Version)}
	var wrong error
	for name, at := range map[string]*time.Time{schema.CreatedDate: &e.Created, schema.Until: &e.Until, schema.PausedDate: &e.Paused,
		schema.FailingDate: &e.Failing, schema.DeadDate: &e.GaveUp} {
		if text := it.Str(name); text != "" {
			var err error
			if *at, err = time.Parse(stampLayout, text); err != nil {
				wrong = cmp.Or(wrong, fmt.Errorf("%s is not a timestamp", name))
			}
		}
	}
	if key, err := signingKey(e.Secret); err != nil || len(key) == 0 {
		wrong = cmp.Or(wrong, errors.New("its secret is malformed"))
	}
	if wrong != nil {
		return e, fmt.Errorf("endpoint %s is unreadable: %w", e.ID, wrong)
	}
	return e, nil
}
