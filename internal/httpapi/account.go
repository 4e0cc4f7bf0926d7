package httpapi

import (
	"net/http"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

func (s *server) listAccounts(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	return stream(s, w, r, s.o.Registry.ConnectedAccounts(r.Context()), 0, asIs)
}

func (s *server) registerAccount(w http.ResponseWriter, r *http.Request) error {
	var form registerForm
	if err := readForm(w, r, &form); err != nil {
		return err
	}
	account, err := s.o.Registry.Register(r.Context(), form.Account, form.StripeAccount)
	if err != nil {
		return err
	}
	send(w, http.StatusOK, account)
	return nil
}

func (s *server) savePoll(w http.ResponseWriter, r *http.Request) error {
	at, err := named(r, "stripe_account")
	if err != nil {
		return err
	}
	var state tracking.PollState
	if err := readForm(w, r, &state); err != nil {
		return err
	}
	state.Error = secret.Clean(state.Error)
	if err := s.o.Registry.SavePoll(r.Context(), at, state); err != nil {
		return err
	}
	send(w, http.StatusOK, doneForm{true})
	return nil
}

func (s *server) applyObject(w http.ResponseWriter, r *http.Request) error {
	var form applyForm
	if err := readForm(w, r, &form); err != nil {
		return err
	}
	changed, err := s.o.Registry.Apply(r.Context(), form.At, form.Object.object())
	if err != nil {
		return err
	}
	send(w, http.StatusOK, appliedForm{changed})
	return nil
}
