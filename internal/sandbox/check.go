package sandbox

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/processor"
)

func invalid(why string) error { return fmt.Errorf("%w: %s", processor.ErrInvalid, why) }

const (
	maxKey  = 255 // bytes, Stripe's limit
	maxText = 500 // bytes, Stripe's limit for metadata
)

func checkOpen(r processor.OpenRequest) error {
	t := r.Tag
	switch {
	case !r.Amount.IsPositive() || r.Amount.Currency().IsZero():
		return invalid("the amount must be more than zero")
	case r.Payer.At != "":
		return errNoAccounts
	case !fits(t.Period) || !fits(t.Generation):
		return invalid("period and generation must be whole numbers from 0 to 2147483647")
	}
	return checkTexts(r.Key, t.Installation, t.Account, t.Subscription, t.SKU, r.Method, r.Price)
}

var errNoAccounts = invalid("the sandbox has no connected accounts")

func checkList(r processor.ListRequest) error {
	if r.At != "" {
		return errNoAccounts
	}
	return nil
}

func checkConfirm(r processor.ConfirmRequest) error {
	switch {
	case r.Method == "":
		return invalid("the payment method is missing")
	case !fits(r.Attempt):
		return invalid("the attempt must be a whole number from 0 to 2147483647")
	}
	return checkTexts(r.Key, r.Method)
}

func fits(n int) bool { return n >= 0 && n <= math.MaxInt32 }

// checkTexts refuses texts that a line of the ledger cannot return unchanged.
func checkTexts(key string, texts ...string) error {
	if key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		return invalid("the idempotency key must be 1 to 255 bytes of UTF-8")
	}
	for _, t := range texts {
		if len(t) > maxText || !utf8.ValidString(t) {
			return invalid("texts must be at most 500 bytes of UTF-8")
		}
	}
	return nil
}
