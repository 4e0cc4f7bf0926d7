package main

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/stripefake"
)

// What must never be seen. The keys are the fake's; the card is what people type by mistake.
const (
	soughtKey    = "sk_test_51Qx7SoughtEverywhereAndNeverFound9"
	soughtOther  = "rk_test_51Qx7RestrictedAndNeverFoundEither"
	soughtLive   = "sk_live_51Qx7LiveOneThatIsRefused"
	soughtWrong  = "sk_test_51Qx7NobodyKnowsThisOne"
	soughtHook   = "whsec_Qx7WebhookSecretNeverFound"
	soughtClient = "pi_3Qx7_secret_ClientSecretNeverFound"
	soughtCard   = "4242424242424242"
)

// secretForms are secrets that are not masked: *** is what may stand in their place.
var secretForms = regexp.MustCompile(`((?:sk|rk)_(?:test|live)_|whsec_|_secret_)[A-Za-z0-9]+`)

// linkForms are the addresses of the pages that a customer is sent to.
var linkForms = regexp.MustCompile(`/(?:checkout|redirect/authenticate)/\w+`)

// leaks returns what is in a text and must not be.
func leaks(text string, links bool) (found []string) {
	for _, x := range []string{soughtKey, soughtOther, soughtLive, soughtWrong, soughtHook, soughtClient, soughtCard,
		"4242 4242"} {
		if strings.Contains(text, x) {
			found = append(found, x)
		}
	}
	found = append(found, secretForms.FindAllString(text, -1)...)
	if !links {
		found = append(found, linkForms.FindAllString(text, -1)...)
	}
	return found
}

// cardsIn returns a text that has what looks like a card number.
func cardsIn(text string) []string {
	if secret.HasCardNumber(text) {
		return []string{"a card number: " + secret.MaskCards(text)}
	}
	return nil
}

// A search is what was said by commands, to be searched with the files and the store.
type search struct {
	*stripeCLI
	said map[string]string // by command line and stream
}

// do runs a command with all that the log has, and keeps what it says.
func (s *search) do(args ...string) result {
	s.t.Helper()
	r := s.run(append(args, "--log-level", "debug")...)
	name := fmt.Sprintf("%d: duesday %s", len(s.said), strings.Join(args[:min(len(args), 2)], " "))
	s.said[name+", stdout"], s.said[name+", stderr"] = r.out, r.errors
	return r
}

// under runs commands with other settings.
func (s *search) under(env map[string]string, lines ...string) {
	s.t.Helper()
	old := map[string]string{}
	for name, value := range env {
		old[name] = s.env[name]
		s.env[name] = value
	}
	for _, line := range lines {
		if r := s.do(strings.Fields(line)...); r.code != exitFailed && r.code != exitUsage {
			s.t.Errorf("%s with %d other settings: exit %d, %s%s", line, len(env), r.code, r.out, r.errors)
		}
	}
	maps.Copy(s.env, old)
}

// found searches all that was said, every file and every item.
func (s *search) found() (all []string) {
	s.t.Helper()
	note := func(where string, found []string) {
		for _, x := range found {
			all = append(all, where+" has "+x)
		}
	}
	for name, text := range s.said {
		shows := strings.Contains(name, "card-link") || strings.Contains(name, "subscription show")
		note(name, leaks(text, shows && strings.HasSuffix(name, "stdout")))
		note(name, cardsIn(text))
	}
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name := s.seen(path)
		mail := strings.HasPrefix(name, "duesday-mail")
		note(name, leaks(string(text), mail))
		if mail {
			note(name, cardsIn(string(text)))
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.Contains(strings.Join(slices.Collect(maps.Values(s.said)), "\n"), "level=DEBUG") {
		s.t.Error("the log has not all that it may have")
	}
	items := 0
	for text := range s.items() {
		items++
		note("an item", leaks(text, false))
		note("an item", cardsIn(text))
	}
	if items < 20 || len(s.said) < 60 {
		s.t.Errorf("%d items and %d texts are too few to search", items, len(s.said))
	}
	slices.Sort(all)
	return all
}

// TestStripeSecrets runs the commands, with and without all kinds of errors, and searches
// for secrets, links and card numbers in all that they say, write and store.
func TestStripeSecrets(t *testing.T) {
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer sink.Close()
	c := newStripeCLI(t, stripefake.Options{
		Keys: []stripefake.Key{{Secret: soughtKey, Account: stripefake.DefaultAccount},
			{Secret: soughtLive, Account: stripefake.DefaultAccount},
			{Secret: soughtOther, Account: stripefake.DefaultAccount, Refused: []string{"/v1/payment_intents"}}},
		Webhooks: []stripefake.Webhook{{URL: sink.URL, Secret: soughtHook}},
	})
	s := &search{c, map[string]string{}}
	outside := t.TempDir() // what people have lying about
	s.life()
	s.mistakes(outside)
	s.faults()
	for _, x := range s.found() {
		t.Error(x)
	}
	s.plant()
}

// life is what commands do when all is well, and customers do not pay.
func (s *search) life() {
	t := s.t
	book := s.file("book.csv", header+
		"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n1,a@example.com,2,gym,8,USD,15,pm_card_authenticationRequired\n"+
		"2,b@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclined\n3,c@example.com,1,news,12.99,USD,15,"+
		"pm_card_visa_chargeDeclinedLostCard\n"+
		"4,d@example.com,1,news,12.99,USD,15,pm_sandbox_timeout\n5,e@example.com,1,news,12.99,USD,15,"+soughtCard+
		"\n6,f@example.com,1,news,12.99,USD,15,pm_card_createDispute\n"+
		"7,g@example.com,1,news,12.99,USD,15,pm_card_radarBlock\n")
	s.do("import", book)
	s.do("import", book, "--skip-bad")
	if err := os.Remove(s.path(book)); err != nil { // it has secrets; book.csv.rejected must not
		t.Fatal(err)
	}
	s.do("account", "create", "9", "--email", "i@example.com")
	s.do("account", "card-link", "9")
	s.do("run", "payments")
	link := s.pageOf("1/2")
	s.do("subscription", "show", "1/2")
	s.do("subscription", "show", "1/2", "--json")
	s.visit(link, "Complete authentication", nil)
	texts, _ := s.mailsTo("declined", "b@example.com")
	if len(texts) == 0 {
		t.Fatal("no mail says that a payment was declined")
	}
	s.giveCard(s.linkIn(texts[0]), "pm_card_visa")
	s.clock.Set(s.clock.Now().Add(time.Hour))
	customer := s.ask("POST", "/v1/customers", "")["id"].(string)
	s.ask("POST", "/v1/payment_methods/pm_card_visa/attach", "customer="+customer)
	for _, line := range []string{
		"run payments --json", "run reminders", "due payments --date 2026-04-15", "subscription list", "account list",
		"account show 1 --card",
		"account attach 9 --customer " + customer, "receipt list 1", "receipt refund 1/1 --period 0 --amount 5",
		"receipt refund 1/1 --period 0",
		"verify", "reconcile", "outbox list", "outbox send", "export receipts", "export refunds", "export accounts",
		"export subscriptions --all",
		"store describe", "store backup --to backup", "charging off --reason because", "run payments", "charging on",
		"version",
	} {
		if r := s.do(strings.Fields(line)...); r.code != exitDone && r.code != exitPerson {
			t.Errorf("%s: exit %d, %s%s", line, r.code, r.out, r.errors)
		}
	}
}

// mistakes are secrets where they do not belong, and settings that are wrong.
func (s *search) mistakes(outside string) {
	open := filepath.Join(outside, "open")
	s.file(open, soughtKey+"\n")
	if err := os.Chmod(open, 0o644); err != nil {
		s.t.Fatal(err)
	}
	two := s.file(filepath.Join(outside, "two"), soughtKey+"\n"+soughtLive+"\n")
	const run = "run payments"
	s.under(map[string]string{"DUESDAY_STRIPE_KEY": soughtWrong}, run, "verify", "account card-link 1",
		"receipt refund 1/1 --period 0")
	s.under(map[string]string{"DUESDAY_STRIPE_KEY": soughtLive}, run, "verify")
	s.under(map[string]string{"DUESDAY_STRIPE_KEY": soughtOther}, run)
	s.under(map[string]string{"DUESDAY_STRIPE_KEY": soughtClient}, run)
	s.under(map[string]string{"DUESDAY_STRIPE_KEY": soughtKey + " " + soughtHook}, run)
	s.under(map[string]string{"DUESDAY_STRIPE_KEY_FILE": open}, run)
	s.under(map[string]string{"DUESDAY_STRIPE_KEY": "", "DUESDAY_STRIPE_KEY_FILE": open}, run)
	s.under(map[string]string{"DUESDAY_STRIPE_KEY": "", "DUESDAY_STRIPE_KEY_FILE": two}, run)
	s.under(map[string]string{"DUESDAY_STRIPE_KEY": "", "DUESDAY_STRIPE_KEY_FILE": soughtKey}, run)
	s.under(map[string]string{"DUESDAY_STRIPE_API_BASE": "http://" + soughtKey + "@127.0.0.1:1"}, run)
	s.under(map[string]string{"DUESDAY_STRIPE_API_BASE": "http://127.0.0.1:1/" + soughtKey}, run)
	s.under(map[string]string{"DUESDAY_PROCESSOR": "stripe:" + soughtKey}, run)
	s.under(map[string]string{"DUESDAY_PROCESSOR": "stripe:?key=" + soughtKey}, run)
	s.under(map[string]string{"DUESDAY_PROCESSOR": "stripe:?rate=" + soughtKey}, run)
	s.under(map[string]string{"DUESDAY_PROCESSOR": soughtKey}, run)
	s.under(nil, "account attach 1 --payment-method "+soughtCard, "account attach 1 --customer "+soughtCard,
		"receipt refund 1/1 --period 0 --key "+soughtCard,
		"account attach 1 --customer "+soughtClient, "account show "+soughtKey, soughtKey, "run "+soughtKey,
		"--store "+soughtKey+" verify", "import "+soughtKey,
		"run payments --date "+soughtKey, "receipt refund 1/1 --period 0 --charge "+soughtClient, "run payments --"+soughtKey,
		"stripe-fake --webhook-url http://127.0.0.1:1 --webhook-secret-file "+soughtHook)
}

// faults are Stripe's, the network's, and those of what stands in between.
func (s *search) faults() {
	s.clock.Set(s.clock.Now().AddDate(0, 1, 0))
	if err := s.fake.SetFaults(stripefake.Faults{LostReplies: 0.1, Errors: 0.05, LateErrors: 0.1}); err != nil {
		s.t.Fatal(err)
	}
	s.do("run", "payments") // whatever comes of it
	if err := s.fake.SetFaults(stripefake.Faults{}); err != nil {
		s.t.Fatal(err)
	}
	for _, answer := range []struct {
		status int
		text   string
	}{
		{http.StatusBadGateway, "<html>" + soughtKey + " " + soughtClient},
		{http.StatusOK, `{"object":"account","id":"` + soughtClient + `","client_secret":"` + soughtClient + `"}`},
		{http.StatusOK, soughtClient},
		{http.StatusUnauthorized, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided: ` +
			soughtKey + `"}}`},
		{http.StatusBadRequest, `{"error":{"type":"invalid_request_error","code":"` + soughtHook + `","message":"` +
			soughtClient + ` ` + soughtCard + `","payment_intent":{"id":"pi_3Qx7","client_secret":"` + soughtClient + `"}}}`},
		{http.StatusPaymentRequired, `{"error":{"type":"card_error","code":"card_declined","decline_code":"` + soughtCard +
			`","message":"` + soughtKey + `"}}`},
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Stripe-Should-Retry", "false")
			w.WriteHeader(answer.status)
			_, _ = w.Write([]byte(answer.text))
		}))
		s.under(map[string]string{"DUESDAY_STRIPE_API_BASE": proxy.URL}, "run payments")
		proxy.Close()
	}
	s.under(map[string]string{"DUESDAY_STRIPE_API_BASE": "http://127.0.0.1:1"}, "run payments") // nobody is there
	if err := s.fake.Revoke(soughtKey); err != nil {
		s.t.Fatal(err)
	}
	s.under(nil, "run payments", "verify", "account show 1 --card")
	s.do("subscription", "show", "1/2")
}

// plant leaves one leak after another, and sees each found.
func (s *search) plant() {
	s.t.Helper()
	leak := func(name, want string, make, mend func()) {
		make()
		found := s.found()
		mend()
		if len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), want) {
			s.t.Errorf("%s was not found, but %q", name, found)
		}
	}
	file := func(name, text string) (make, mend func()) {
		return func() { s.file(name, text) }, func() { os.Remove(s.path(name)) }
	}
	make, mend := file("duesday-data/planted", "\x00\x01"+soughtKey+"\x00")
	leak("a key in a file of the store", "planted has "+soughtKey, make, mend)
	make, mend = file("duesday-mail/planted.eml", "Your card "+soughtCard)
	leak("a card in a mail", "a card number", make, mend)
	said := func(name, text string) (make, mend func()) {
		return func() { s.said[name] = text }, func() { delete(s.said, name) }
	}
	make, mend = said("0: duesday subscription show, stderr", "see "+s.base+"/checkout/cs_test_1")
	leak("a link in a log", "/checkout/cs_test_1", make, mend)
	make, mend = said("0: duesday verify, stdout", "pi_1_secret_x")
	leak("a client secret", "_secret_x", make, mend)
	item := store.NewItem(store.Attribute{Name: schema.PK, Value: store.S("ACC#planted")},
		store.Attribute{Name: schema.SK, Value: store.S("planted")},
		store.Attribute{Name: "Extra",
			Value: store.L(store.M(store.NewItem(store.Attribute{Name: "Link",
				Value: store.S(s.base + "/redirect/authenticate/pi_1")})))})
	leak("a link in an item", "an item has /redirect/authenticate/pi_1", func() {
		s.commit(func(table string) store.Write { return store.Put(table, item, store.Absent()) })
	}, func() {})
}
