package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
)

// The paths of a served ledger.
const (
	pathOpen        = "/v1/open"
	pathConfirm     = "/v1/confirm"
	pathCancel      = "/v1/cancel"
	pathIntents     = "/v1/intents/" // and the ref
	pathSuccesses   = "/v1/successes"
	pathRefund      = "/v1/refund"
	pathReversals   = "/v1/returns"
	pathReversalsOf = "/v1/returns/" // and the ref
)

const (
	jsonType  = "application/json"
	linesType = "application/jsonl"
	maxBody   = 64 << 10 // bytes of a request
	maxReply  = 1 << 20  // bytes of an answer, or of one line of it: lines by hand may be long
)

// An openForm is a billing.OpenRequest on the wire, in the words of the ledger.
type openForm struct {
	Key          string `json:"key"`
	Install      string `json:"install"`
	Account      string `json:"account"`
	Subscription string `json:"subscription"`
	SKU          string `json:"sku"`
	Period       int    `json:"period"`
	Generation   int    `json:"generation"`
	Amount       string `json:"amount"` // decimal, at the currency's exponent
	Currency     string `json:"currency"`
	Method       string `json:"method"`
}

type confirmForm struct {
	Key     string `json:"key"`
	Ref     string `json:"ref"`
	Method  string `json:"method"`
	Attempt int    `json:"attempt"`
}

type cancelForm struct {
	Ref string `json:"ref"`
}

// A refundForm is a billing.RefundRequest on the wire. The tag is the intent's own.
type refundForm struct {
	Key      string `json:"key"`
	ID       string `json:"id"`
	Ref      string `json:"ref"`
	Amount   string `json:"amount"` // decimal, at the currency's exponent
	Currency string `json:"currency"`
	Reason   string `json:"reason"`
}

// A reply has one member. It is an answer, or a line of a list, whose last line is an end or an error.
type reply struct {
	Intent *record    `json:"intent,omitempty"` // without the ledger's own attempt, method and key
	Return *record    `json:"return,omitempty"` // at is the time of creation
	Error  *errorForm `json:"error,omitempty"`
	End    bool       `json:"end,omitempty"`
}

type errorForm struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// codes gives every error of a processor a code and a status. The first one that fits counts.
var codes = [...]struct {
	err    error
	code   string
	status int
}{
	{billing.ErrUnknown, "unknown", http.StatusGatewayTimeout},
	{billing.ErrNotExecuted, "not_executed", http.StatusServiceUnavailable},
	{billing.ErrInvalid, "invalid", http.StatusBadRequest},
	{billing.ErrRefused, "refused", http.StatusUnauthorized},
	{billing.ErrAccountRefused, "account_refused", http.StatusForbidden},
	{billing.ErrNoIntent, "no_intent", http.StatusNotFound},
}

// formOfError gives every other error the code "failed", after which the outcome is unknown.
func formOfError(err error) (*errorForm, int) {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return &errorForm{Code: c.code, Message: err.Error()}, c.status
		}
	}
	return &errorForm{Code: "failed", Message: err.Error()}, http.StatusInternalServerError
}

// err returns the error of the code, nil for no form. An unknown code is ErrUnknown.
func (f *errorForm) err() error {
	if f == nil {
		return nil
	}
	is := billing.ErrUnknown
	for _, c := range codes {
		if f.Code == c.code {
			is = c.err
		}
	}
	message := strings.TrimPrefix(strings.TrimPrefix(f.Message, is.Error()), ": ")
	if message == "" {
		return is
	}
	return fmt.Errorf("%w: %s", is, message)
}

func formOfOpen(r billing.OpenRequest) openForm {
	return openForm{Key: r.Key, Install: r.Tag.Installation, Account: r.Tag.Account, Subscription: r.Tag.Subscription,
		SKU: r.Tag.SKU, Period: r.Tag.Period, Generation: r.Tag.Generation, Amount: r.Amount.Decimal(),
		Currency: r.Amount.Currency().Code(), Method: r.Method}
}

func (f *openForm) request() (billing.OpenRequest, error) {
	amount, err := parseAmount(f.Amount, f.Currency)
	if err != nil {
		return billing.OpenRequest{}, invalid(err.Error())
	}
	tag := billing.Tag{Installation: f.Install, Account: f.Account, Subscription: f.Subscription, SKU: f.SKU,
		Period: f.Period, Generation: f.Generation}
	return billing.OpenRequest{Key: f.Key, Tag: tag, Amount: amount, Method: f.Method}, nil
}

func (f *confirmForm) request() (billing.ConfirmRequest, error) {
	return billing.ConfirmRequest(*f), nil
}

func (f *cancelForm) request() (ref string, err error) { return f.Ref, nil }

func (f *refundForm) request() (billing.RefundRequest, error) {
	amount, err := parseAmount(f.Amount, f.Currency)
	if err != nil {
		return billing.RefundRequest{}, invalid(err.Error())
	}
	return billing.RefundRequest{Key: f.Key, ID: f.ID, Ref: f.Ref, Amount: amount,
		Reason: billing.RefundReason(f.Reason)}, nil
}

func parseAmount(decimal, code string) (money.Amount, error) {
	c, err := money.ParseCurrency(code)
	if err != nil {
		return money.Amount{}, err
	}
	return money.Parse(decimal, c)
}

// decodeForm reads one JSON object with the form's members alone.
func decodeForm(text []byte, form any) error {
	if !utf8.Valid(text) { // the decoder would replace it
		return invalid("the body must be UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(form); err != nil {
		return invalid("the body must be one JSON object: " + err.Error())
	}
	if _, err := dec.Token(); err != io.EOF {
		return invalid("the body must be one JSON object, and more follows it")
	}
	return nil
}

func (r *record) readIntent() (billing.Intent, error) {
	n, tag, amount, err := r.parse()
	if err != nil {
		return billing.Intent{}, err
	}
	return billing.Intent{Ref: r.Ref, State: states[n.state], Tag: tag, Amount: amount, Latest: r.Charge, Code: r.Code,
		Hard: r.Hard, Changed: time.UnixMilli(n.at).UTC()}, nil
}

// querySince writes the instant for the wire, rounded to the ledger's years, 0 to 9999.
func querySince(since time.Time) string {
	since = since.UTC()
	switch y := since.Year(); {
	case y < 0:
		since = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	case y > 9999:
		since = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	}
	return "?since=" + url.QueryEscape(since.Format(time.RFC3339Nano))
}
