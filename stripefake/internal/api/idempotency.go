package api

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

const (
	keyLife   = 24 * time.Hour // after the first answer, by the fake's clock; at Stripe a key may live longer
	maxKeyLen = 255
)

// idempotency has the keys of one account in one mode.
type idempotency struct {
	byKey map[string]*attempt
	order []*attempt // finished ones, oldest first
}

// An attempt is the first request with a key.
type attempt struct {
	key      string
	endpoint string // its method and path
	params   [sha256.Size]byte
	request  string // its id
	running  bool
	done     time.Time // by the fake's clock
	reply    *reply
}

// begin returns the attempt to carry out, or the earlier one whose reply is repeated. It returns
// an error if the earlier one still runs, or was another request.
func (s *idempotency) begin(now time.Time, a attempt, f shape.Form) (first *attempt, err error) {
	if len(a.key) > maxKeyLen {
		return nil, shape.Invalid("", "", "Idempotency keys can have at most 255 characters.")
	}
	text, _ := json.Marshal(f) // texts alone; maps are written in the order of their keys
	a.params, a.running = sha256.Sum256(text), true
	s.forget(now)
	known := s.byKey[a.key]
	switch {
	case known == nil:
		s.byKey[a.key] = &a
		return &a, nil
	case known.endpoint != a.endpoint:
		return nil, reused("Keys for idempotent requests can only be used for the same endpoint they were first used " +
			"for ('" + known.endpoint + "' vs '" + a.endpoint + "'). Try using a key other than '" + a.key + "' if " +
			"you meant to execute a different request.")
	case known.params != a.params:
		return nil, reused("Keys for idempotent requests can only be used with the same parameters they were first " +
			"used with. Try using a key other than '" + a.key + "' if you meant to execute a different request.")
	case known.running:
		return nil, keyInUse(a.key)
	}
	return known, nil
}

func reused(message string) error {
	return &shape.Error{Status: http.StatusBadRequest, Kind: "idempotency_error", Message: message}
}

func keyInUse(key string) error {
	return &shape.Error{Status: http.StatusConflict, Kind: "idempotency_error", Code: "idempotency_key_in_use",
		Message: "There is currently another in-progress request using this Idempotent Key (that probably means you " +
			"submitted twice, and the other request is still going through): " + key + ". Please try again later."}
}

// end keeps the reply for later requests with the key, or frees the key if the reply is nil.
func (s *idempotency) end(a *attempt, now time.Time, r *reply) {
	if a == nil {
		return
	}
	a.running, a.done, a.reply = false, now, r
	if r == nil {
		delete(s.byKey, a.key)
		return
	}
	s.order = append(s.order, a)
}

// forget drops the keys whose first answer is 24 hours old.
func (s *idempotency) forget(now time.Time) {
	for len(s.order) > 0 && !now.Before(s.order[0].done.Add(keyLife)) {
		delete(s.byKey, s.order[0].key)
		s.order = s.order[1:]
	}
}

// Knows reports whether a request with the idempotency key has begun.
func (s *Space) Knows(key string) bool { return s.keys.byKey[key] != nil }
