package stripe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// A conversation is one call and the answers to its requests, by method and path.
type conversation struct {
	answers map[string]apitest.Reply
	call    func(t *testing.T, p *Processor) ([]string, error) // what it says of refs and amounts
}

func ofIntent(in processor.Intent, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("%s is over %s, succeeded %t", in.Ref, in.Amount, in.State == processor.Succeeded)}, nil
}

func ofReturn(r processor.Reversal, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("%s %s of %s is %s", r.Kind, r.ID, r.Ref, r.Amount)}, nil
}

func ofText(text string, err error) ([]string, error) { return []string{text}, err }

// ofAll collects what is said, of what is ours.
func ofAll[T any](all iter.Seq2[T, error], ours func(T) bool, say func(T, error) ([]string, error)) (said []string,
	err error) {
	for x, err := range all {
		text, err := say(x, err)
		if err != nil {
			return nil, err
		}
		if ours(x) {
			said = append(said, text...)
		}
	}
	return said, nil
}

func conversations(t *testing.T) map[string]conversation {
	charge := apitest.ChargeFields("ch_1",
		apitest.Fields{"outcome": apitest.Fields{"advice_code": "try_again_later"}, "failure_code": nil})
	paid := apitest.OKIntent(apitest.Fields{"status": "succeeded", "latest_charge": charge})
	waits := apitest.OKIntent(apitest.Fields{"status": "requires_action",
		"next_action": apitest.Fields{"type": "redirect_to_url", "redirect_to_url": apitest.Fields{"url": actionPage}}})
	refusal := apitest.Fails(402, cardError("card_declined", "insufficient_funds", "try_again_later", "ch_1",
		apitest.Fields{"latest_charge": charge}))
	refused := apitest.OK(apitest.Object(cardError("card_declined", "insufficient_funds", "", "ch_1",
		apitest.Fields{"latest_charge": charge})["payment_intent"].(apitest.Fields)))
	card := apitest.OK(cardFields("pm_1", "cus_1"))
	setup := func(id string) string {
		return apitest.Object(apitest.Fields{"id": id, "object": "setup_intent", "status": "succeeded", "livemode": false,
			"customer": "cus_1", "payment_method": json.RawMessage(card.Body),
			"metadata": apitest.Fields{"duesday_installation": "inst", "duesday_account": "acme"}})
	}
	confirm := func(t *testing.T, p *Processor) ([]string, error) {
		return ofIntent(p.Confirm(t.Context(), confirmRequest))
	}
	tagged := func(tag processor.Tag) bool { return tag != processor.Tag{} }
	ofList := func(t *testing.T, p *Processor) ([]string, error) {
		return ofAll(p.List(t.Context(), processor.ListRequest{}), func(in processor.Intent) bool { return tagged(in.Tag) },
			ofIntent)
	}
	payer := processor.Payer{Customer: "cus_1"}
	attach := func(method string) func(t *testing.T, p *Processor) ([]string, error) {
		return func(t *testing.T, p *Processor) ([]string, error) {
			c, err := p.Attach(t.Context(), payer, method)
			return ofText(c.Method, err)
		}
	}
	const intent, intents = "/v1/payment_intents/pi_1", "/v1/payment_intents"
	const refunds, disputes, method, customer = "/v1/refunds", "/v1/disputes", "/v1/payment_methods/pm_1",
		"/v1/customers/cus_1"
	return map[string]conversation{
		"Open": {map[string]apitest.Reply{"POST " + intents: apitest.OKIntent()},
			func(t *testing.T, p *Processor) ([]string, error) {
				in, err := p.Open(t.Context(), openRequest(t))
				return ofIntent(in, err)
			}},
		"Lookup": {map[string]apitest.Reply{"GET " + intent: paid},
			func(t *testing.T, p *Processor) ([]string, error) { return ofIntent(p.Lookup(t.Context(), "pi_1")) }},
		"Cancel": {map[string]apitest.Reply{"POST " + intent +
			"/cancel": apitest.OKIntent(apitest.Fields{"status": "canceled", "canceled_at": 9, "latest_charge": charge})},
			func(t *testing.T, p *Processor) ([]string, error) { return ofIntent(p.Cancel(t.Context(), "pi_1")) }},
		"Confirm":       {map[string]apitest.Reply{"POST " + intent + "/confirm": paid}, confirm},
		"Confirm waits": {map[string]apitest.Reply{"POST " + intent + "/confirm": waits}, confirm},
		"Confirm declined": {map[string]apitest.Reply{"POST " + intent + "/confirm": refusal, "GET " + intent: refused,
			"POST " + intent: refused},
			confirm},
		"Confirm without a method": {map[string]apitest.Reply{"POST " + intent + "/confirm": noMethod(),
			"GET " + intent: refused, "POST " + intent: refused}, confirm},
		"Confirm to authenticate": {map[string]apitest.Reply{"POST " + intent + "/confirm": needsAction(),
			"GET " + intent: waits, "POST " + intent: waits}, confirm},
		"List": {map[string]apitest.Reply{"GET " + intents: apitest.List(false, paid.Body, waits.Body)}, ofList},
		"Refund": {map[string]apitest.Reply{"POST " + refunds: apitest.OK(refundFields())},
			func(t *testing.T, p *Processor) ([]string, error) {
				return ofReturn(p.Refund(t.Context(),
					processor.RefundRequest{Key: "k", ID: "r1", Ref: "pi_1", Amount: apitest.USD(t, 500), Tag: testTag}))
			}},
		"ReversalsOf": {map[string]apitest.Reply{"GET " + refunds: apitest.List(false, refundFields()),
			"GET " + disputes: apitest.List(false, disputeFields())},
			func(t *testing.T, p *Processor) (said []string, err error) {
				all, err := p.ReversalsOf(t.Context(), "pi_1")
				for _, r := range all {
					text, _ := ofReturn(r, nil)
					said = append(said, text...)
				}
				return said, err
			}},
		"Returns": {map[string]apitest.Reply{"GET " + refunds: apitest.List(false, refundFields()),
			"GET " + disputes: apitest.List(false, disputeFields())},
			func(t *testing.T, p *Processor) ([]string, error) {
				return ofAll(p.Reversals(t.Context(), processor.ListRequest{}),
					func(r processor.Reversal) bool { return tagged(r.Tag) }, ofReturn)
			}},
		"MakeCustomer": {map[string]apitest.Reply{"POST /v1/customers": customerFields()},
			func(t *testing.T, p *Processor) ([]string, error) {
				return ofText(p.MakeCustomer(t.Context(), processor.CustomerRequest{Key: "k"}))
			}},
		"Attach": {map[string]apitest.Reply{"GET " + customer: customerFields(),
			"GET " + method: apitest.OK(cardFields("pm_1", "")), "POST " + method + "/attach": card}, attach("pm_1")},
		"Attach the default": {map[string]apitest.Reply{"GET " +
			customer: customerFields(apitest.Fields{"invoice_settings": apitest.Fields{"default_payment_method": "pm_1"}}),
			"GET " + method:           card,
			"GET /v1/payment_methods": apitest.List(false, card.Body)}, attach("")},
		"Attach the newest": {map[string]apitest.Reply{"GET " + customer: customerFields(),
			"GET /v1/payment_methods": apitest.List(false, card.Body)}, attach("")},
		"Card": {map[string]apitest.Reply{"GET " + method: card}, func(t *testing.T, p *Processor) ([]string, error) {
			c, err := p.Card(t.Context(), "", "pm_1")
			return ofText(c.Method, err)
		}},
		"CardLink": {map[string]apitest.Reply{"POST /v1/checkout/sessions": apitest.OK(`{"id":"cs_1","object":"checkout.session","livemode":false,"url":"https://checkout.example/c","expires_at":8000}`)},
			func(t *testing.T, p *Processor) ([]string, error) {
				l, err := p.CardLink(t.Context(), processor.LinkRequest{Key: "k", Payer: payer, Currency: "USD"})
				return ofText(l.URL, err)
			}},
		"Setups": {map[string]apitest.Reply{"GET /v1/setup_intents": apitest.List(false, setup("seti_1"), setup("seti_2"))},
			func(t *testing.T, p *Processor) ([]string, error) {
				return ofAll(p.Setups(t.Context(), processor.ListRequest{}), func(processor.Setup) bool { return true },
					func(s processor.Setup, err error) ([]string, error) { return ofText(s.ID+" "+s.Card.Method, err) })
			}},
		"Identity": {map[string]apitest.Reply{"GET /v1/account": accountReply("acct_1")},
			func(t *testing.T, p *Processor) ([]string, error) {
				return ofText(p.Identity(t.Context()))
			}},
		"CheckConnected": {map[string]apitest.Reply{"GET /v1/account": accountReply("acct_1")},
			func(t *testing.T, p *Processor) ([]string, error) {
				if err := p.CheckConnected(t.Context(), "acct_1"); err == nil {
					return []string{"connected"}, nil // which it is not: it is our own
				}
				return nil, nil
			}},
		"Connected": {map[string]apitest.Reply{"GET /v1/accounts": apitest.List(false, accountReply("acct_1").Body,
			accountReply("acct_2").Body)}, func(t *testing.T, p *Processor) ([]string, error) {
			return ofAll(p.Connected(t.Context()), func(string) bool { return true }, ofText)
		}},
	}
}

// have is what the conversation comes to when the one request is answered like that.
func (c conversation) have(t *testing.T, request, body string) (said []string, err error) {
	s := apitest.NewScript(t)
	s.Always = func(r apitest.Seen) apitest.Reply {
		a, known := c.answers[r.Method+" "+r.Path]
		if !known {
			return apitest.Fails(400, apitest.Fields{"type": "invalid_request_error", "message": "nobody expected " + r.Path})
		}
		if r.Method+" "+r.Path == request {
			a.Body = body
		}
		if n := r.Form.Get("metadata[" + metaAttempt + "]"); n != "" { // the note is written
			a.Body = strings.Replace(a.Body, `"metadata":{`, `"metadata":{"`+metaAttempt+`":`+strconv.Quote(n)+`,`, 1)
		}
		a.Header = map[string]string{"Stripe-Should-Retry": "false"}
		return a
	}
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		said, err = c.call(t, scripted(t, s, withPage))
	})
	return said, err
}

// Whatever one place of an answer holds: nobody panics, and no success is told with another
// ref or amount than the right ones.
func TestMalformedAnswers(t *testing.T) {
	t.Parallel()
	wrong := []string{`null`, `true`, `""`, `"x"`, `-1`, `0`, `123456789012345678901234567890`, `{}`, `[null]`,
		`{"data":[null]}`}
	wrong = wrong[:soaktest.Cases(t, 2, len(wrong), len(wrong))]
	for name, c := range conversations(t) {
		t.Run(name, func(t *testing.T) {
			right, err := c.have(t, "", "")
			if err != nil {
				t.Fatalf("nothing is wrong: got %v", err)
			}
			for request, answer := range c.answers {
				tree := decode(t, answer.Body)
				for _, path := range pathsOf(tree) {
					check := func(how, body string) {
						said, err := c.have(t, request, body)
						if i := slices.IndexFunc(said, func(s string) bool { return !slices.Contains(right, s) }); err == nil && i >= 0 {
							t.Errorf("%s with %s at %v: said %q\nwhich is right of %q", request, how, path, said[i], right)
						}
						if err != nil {
							apitest.Hush(t, err.Error())
						}
					}
					for _, w := range wrong {
						check(w, encode(t, replaced(tree, path, json.RawMessage(w))))
					}
					check("a list of it", encode(t, replaced(tree, path, aListOfIt{})))
					check("nothing", encode(t, replaced(tree, path, nil)))
				}
			}
		})
	}
}

// What is no whole list is an error, and not a short one.
func TestMalformedLists(t *testing.T) {
	for name, c := range conversations(t) {
		for request, answer := range c.answers {
			if tree, isObject := decode(t, answer.Body).(apitest.Fields); !isObject || tree["object"] != "list" ||
				name == "Attach the default" {
				continue
			}
			for _, body := range []string{`{"object":"list","has_more":false,"data":[null]}`,
				`{"object":"list","has_more":false,"data":null}`, `{"object":"list","has_more":false}`,
				`{"object":"list","data":[]}`, `{"object":"list","has_more":null,"data":[]}`, `{"data":[],"has_more":false}`,
				`null`, `[]`,
				strings.Replace(answer.Body, `"data":[`, `"data":[null,`, 1)} {
				if said, err := c.have(t, request, body); err == nil {
					t.Errorf("%s, %s: got %q of %.80s", name, request, said, body)
				}
			}
		}
	}
}

func decode(t *testing.T, body string) (tree any) {
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func encode(t *testing.T, tree any) string {
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pathsOf returns the paths of the tree and of all that is in it.
func pathsOf(tree any) [][]any {
	paths := [][]any{{}}
	under := func(key, x any) {
		for _, p := range pathsOf(x) {
			paths = append(paths, append([]any{key}, p...))
		}
	}
	switch x := tree.(type) {
	case apitest.Fields:
		for _, name := range slices.Sorted(maps.Keys(x)) {
			under(name, x[name])
		}
	case []any:
		for i := range x {
			under(i, x[i])
		}
	}
	return paths
}

// aListOfIt stands for a list of what was there.
type aListOfIt struct{}

// replaced returns the tree with something else in one place; nil takes the place out.
func replaced(tree any, path []any, to any) any {
	if len(path) == 0 {
		if to == (aListOfIt{}) {
			return []any{tree}
		}
		return to
	}
	switch x := tree.(type) {
	case apitest.Fields:
		x = maps.Clone(x)
		name := path[0].(string)
		if x[name] = replaced(x[name], path[1:], to); x[name] == nil && to == nil && len(path) == 1 {
			delete(x, name)
		}
		return x
	case []any:
		i := path[0].(int)
		with := replaced(x[i], path[1:], to)
		if x = slices.Clone(x); with == nil && to == nil && len(path) == 1 {
			return slices.Delete(x, i, i+1)
		}
		x[i] = with
		return x
	}
	return tree
}
