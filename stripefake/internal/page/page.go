// Package page serves the customer pages: checkout and the bank's authentication. It does not ask for card
// numbers.
package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/payment"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// style is the style of all pages, allowed by its hash in their Content-Security-Policy.
const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:3rem auto;padding:0 1rem;
color:#1a1f36;background:#f7f8fa}
main{background:#fff;border:1px solid #d5dbe1;border-radius:8px;padding:1.5rem}
label{display:block;padding:.4rem 0}button{font:inherit;padding:.5rem 1rem;margin:.5rem .5rem 0 0;cursor:pointer}
.error{color:#a41c4e}.fine{color:#5f6b7a;font-size:.85rem}`

// pageText is the one page there is: a title, a sentence, and perhaps a form.
const pageText = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}}</title><style>{{.Style}}</style></head>
<body><main>
<h1>{{.Title}}</h1>
{{with .Error}}<p class="error" role="alert">{{.}}</p>{{end}}
<p>{{.Text}}</p>
{{if or .Cards .Buttons}}<form method="post">
{{range $i, $card := .Cards -}}
<label><input type="radio" name="card" value="{{.ID}}"{{if not $i}} checked{{end}}> {{.Name}}</label>
{{end}}{{range .Buttons}}<button name="{{.Name}}" value="{{.Value}}">{{.Text}}</button>
{{end}}</form>{{end}}
{{with .Back}}<p><a href="{{.}}" rel="noreferrer">Back</a></p>{{end}}
<p class="fine">This is stripefake. No card is asked for, and no money is moved.</p>
</main></body></html>
`

type page struct {
	Title, Text, Error, Back string
	Style                    template.CSS
	Cards                    []choice
	Buttons                  []button
	status                   int    // 0: 200
	leads                    string // where a post may lead to, beside this page: an address
}

type choice struct{ ID, Name string }

type button struct{ Name, Value, Text string }

func cardChoices() []choice {
	return []choice{
		{"pm_card_visa", "Visa ending in 4242: pays"},
		{"pm_card_mastercard", "Mastercard ending in 4444: pays"},
		{"pm_card_amex", "American Express ending in 0005: pays"},
		{"pm_card_authenticationRequired", "Visa ending in 3184: asks the customer every time"},
		{"pm_card_authenticationRequiredOnSetup", "Visa ending in 3155: asks the customer now, and then no more"},
		{"pm_card_chargeCustomerFail", "Visa ending in 0341: is taken, and declined when it is charged"},
		{payment.SandboxDecline + "insufficient_funds", "Visa: is taken, and has insufficient funds when it is charged"},
		{"pm_card_visa_chargeDeclined", "Visa ending in 0002: is declined now"},
	}
}

// A pageServer serves the pages for customers.
type pageServer struct {
	f        *api.Fake
	template *template.Template
	hash     string // of the style, as a Content-Security-Policy has it
}

// Handler serves /checkout/ID, where a customer chooses a card, and /redirect/authenticate/ID, where a
// bank asks for authentication. Everybody with the address can use it. It refuses other sites' forms.
func Handler(f *api.Fake) http.Handler {
	sum := sha256.Sum256([]byte(style))
	s := &pageServer{f: f, template: template.Must(template.New("page").Parse(pageText)), hash: "'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		s.show(w, page{Title: "stripefake", Text: "Stripe's API is under /v1, and the fake's control API is under " +
			"/_fake/."})
	})
	checkout := s.visited("card", func(string) string { return "checkout.session" }, visit.checkout)
	mux.HandleFunc("GET /checkout/{id}", checkout)
	mux.HandleFunc("POST /checkout/{id}", checkout)
	authenticate := s.visited("answer", payment.IntentKind, visit.authenticate)
	mux.HandleFunc("GET /redirect/authenticate/{id}", authenticate)
	mux.HandleFunc("POST /redirect/authenticate/{id}", authenticate)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { s.show(w, nothingHere()) })
	return http.NewCrossOriginProtection().Handler(mux)
}

func nothingHere() page {
	return page{Title: "Page not found", Text: "Check the link. Links from an earlier run of the fake do not work.",
		status: http.StatusNotFound}
}

func (s *pageServer) show(w http.ResponseWriter, p page) {
	p.Style = style
	var b bytes.Buffer
	if err := s.template.Execute(&b, p); err != nil {
		s.f.Options.Log.Error("stripefake: a page failed", "error", err)
		http.Error(w, "The page failed.", http.StatusInternalServerError)
		return
	}
	forms := "'self'"
	// browsers hold redirects after a post against form-action
	if u, err := url.Parse(p.leads); err == nil && u.Host != "" {
		forms += " " + u.Scheme + "://" + u.Host
	}
	h := w.Header()
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; style-src " + s.hash + "; form-action " + forms +
			"; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
	} {
		h.Set(name, value)
	}
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	_, _ = w.Write(b.Bytes()) // the caller may be gone
}

// A visit is a customer at the page of an object, while the fake is locked.
type visit struct {
	payment.Call
	o      shape.Object
	chosen string // what the customer posted; "": nothing yet
}

// visited serves the page of an object, or leads the customer on. field is that of its form.
func (s *pageServer) visited(field string, kindOf func(id string) string, at func(visit) (to string, p page),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, chosen, to, p := r.PathValue("id"), "", "", nothingHere()
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(w, r.Body, api.MaxBody)
			chosen = r.PostFormValue(field)
		}
		_ = s.f.Act(kindOf(id), id, func(c *api.Call, o shape.Object) error { // nothing is there without the object
			c.Base = api.BaseOf(r)
			to, p = at(visit{payment.Call{Call: c}, o, chosen})
			return nil
		})
		if to == "" {
			s.show(w, p)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
}

// checkout returns the customer's next address, or the page.
func (v visit) checkout() (string, page) {
	session := v.o
	setup := v.Space.Get("setup_intent", session.Str("setup_intent"))
	form := page{Title: "Your card", Text: "Choose the card for future payments.", Cards: cardChoices(),
		Back:    session.Str("cancel_url"),
		Buttons: []button{{"save", "yes", "Save this card"}}, leads: session.Str("success_url")}
	switch status := session.Str("status"); {
	case status == "complete":
		return payment.SuccessURL(session), page{}
	case status != "open":
		return "", page{Title: "This link has expired", Text: "Ask for a new one.", status: http.StatusGone}
	case v.chosen == "":
		form.Error = setup.Sub("last_setup_error").Str("message")
		return "", form
	}
	if !slices.ContainsFunc(form.Cards, func(c choice) bool { return c.ID == v.chosen }) {
		form.Error, form.status = "Choose one of these cards.", http.StatusBadRequest
		return "", form
	}
	setup["_return_url"] = v.Base + "/checkout/" + session.ID()
	if err := v.ConfirmSetup(setup, v.chosen); err != nil {
		form.Error = err.Error()
		return "", form
	}
	if next := setup.Sub("next_action").Sub("redirect_to_url").Str("url"); next != "" {
		return next, page{}
	}
	return payment.SuccessURL(session), page{}
}

// authenticate is checkout for the page of a bank. The customer chooses complete or fail.
func (v visit) authenticate() (string, page) {
	o, kindName := v.o, v.o.Str("object")
	form := page{Title: "Is this you?", Text: "Your bank asks whether you agree to keep this card on file.",
		leads:   o.Str("_return_url"),
		Buttons: []button{{"answer", "complete", "Complete authentication"}, {"answer", "fail", "Fail authentication"}}}
	if session := v.Space.Get("checkout.session", o.Str("_session")); session != nil {
		form.leads = session.Str("success_url") // by way of the checkout page
	}
	if kindName == "payment_intent" {
		form.Text = "Your bank asks whether you agree to pay " + payment.ShowMoney(o.Num("amount"), o.Str("currency")) +
			" " + strings.ToUpper(o.Str("currency")) + "."
	}
	switch {
	case o.Str("status") != payment.NeedsAction:
		return "", page{Title: "You don't need to do anything", Text: "This was already done, or is no longer needed."}
	case v.chosen != "complete" && v.chosen != "fail":
		return "", form
	}
	if err := v.Authenticate(o, v.chosen == "complete"); err != nil {
		return "", page{Title: "That did not work", Text: err.Error(), status: http.StatusConflict}
	}
	back := o.Str("_return_url")
	if back == "" {
		return "", page{Title: "Thank you", Text: "You can close this page."}
	}
	if o.Str("_session") != "" {
		return back, page{}
	}
	return withOutcome(back, kindName, o), page{}
}

// withOutcome adds Stripe's parameters to a return_url.
func withOutcome(back, kindName string, o shape.Object) string {
	u, err := url.Parse(back)
	if err != nil {
		return back
	}
	outcome := "failed"
	if slices.Contains([]string{payment.Succeeded, payment.Processing, payment.NeedsCapture}, o.Str("status")) {
		outcome = "succeeded"
	}
	q := u.Query()
	q.Set(kindName, o.ID())
	q.Set(kindName+"_client_secret", o.Str("client_secret"))
	q.Set("redirect_status", outcome)
	u.RawQuery = q.Encode()
	return u.String()
}
