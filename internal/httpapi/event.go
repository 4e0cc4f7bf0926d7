package httpapi

import (
	"net/http"

	"github.com/duesday/duesday/internal/tracking"
)

func (s *server) listEvents(w http.ResponseWriter, r *http.Request) error {
	values, err := params(r, "stripe_account", "subscription", "from", "to", "limit", "whole")
	if err != nil {
		return err
	}
	var q tracking.EventQuery
	if q.StripeAccount, err = ident(values, "stripe_account"); err != nil {
		return err
	}
	if q.Subscription, err = ident(values, "subscription"); err != nil {
		return err
	}
	if q.From, err = instant(values, "from"); err != nil {
		return err
	}
	if q.To, err = instant(values, "to"); err != nil {
		return err
	}
	switch text := values.Get("whole"); text {
	case "", "false":
	case "true":
		q.Whole = true
	default:
		return &tracking.FieldError{Field: "whole", Problem: "want true or false"}
	}
	if q.Limit, err = count(values, "limit", 0, maxStreamed); err != nil {
		return err
	}
	return stream(s, w, r, s.o.Ledger.Events(r.Context(), q), q.Limit, asIs)
}

func (s *server) listWaiting(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	return stream(s, w, r, s.o.Ledger.Waiting(r.Context()), 0, formOfWaiting)
}

func (s *server) showEvent(w http.ResponseWriter, r *http.Request) error {
	id, err := named(r, "id")
	if err != nil {
		return err
	}
	event, err := s.o.Ledger.Event(r.Context(), id)
	if err != nil {
		return err
	}
	send(w, http.StatusOK, formOfEvent(event))
	return nil
}

// rebuild may take longer than an answer is waited for: then the connection ends, and nothing
// has changed.
func (s *server) rebuild(w http.ResponseWriter, r *http.Request) error {
	account, err := named(r, "stripe_account")
	if err != nil {
		return err
	}
	rebuilt, err := s.o.Ledger.Rebuild(r.Context(), account)
	if err != nil {
		return err
	}
	send(w, http.StatusOK, rebuilt)
	return nil
}

func (s *server) replayEvent(w http.ResponseWriter, r *http.Request) error {
	id, err := named(r, "id")
	if err != nil {
		return err
	}
	verdict, err := s.o.Ledger.Replay(r.Context(), id)
	if err != nil {
		return err
	}
	send(w, http.StatusOK, verdict)
	return nil
}
