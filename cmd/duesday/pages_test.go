package main

import (
	"maps"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A pageTest is how a page is played.
type pageTest struct {
	page    string
	after   string              // section of README.md that the page continues
	start   string              // command that each terminal begins with, after the first one
	skipped map[string]string   // first words of a block that is not played, and why
	without map[string]string   // first words of a line that is left out of its block, and why
	prints  map[string][]string // first words of a block, and forms of its output; the first one ends a pause
	then    map[string]func(p *player, out string)
}

var pageTests = []pageTest{
	{page: "README.md",
		skipped: map[string]string{
			"CGO_ENABLED=0 go run":       "compiles the program, and runs all tests",
			"MONTH    REMINDED  CHARGED": "figures of a demo that ends today; TestDemo plays one",
		},
		prints: map[string][]string{
			"mkdir billing": {`receipts +7\n +charges +7\n +periods open +1\n`},
			"cd tracking":   {`order-1 +product +\S+ +yes`, `"key":"order-1"`},
		}},
	{page: "docs/stripe.md",
		skipped: map[string]string{"duesday demo --processor stripe": "needs a fake without charges; TestStripeDemo plays it"},
		then: map[string]func(p *player, out string){
			"duesday account card-link": func(p *player, out string) {
				p.visit(out, "Save this card", url.Values{"card": {"pm_card_visa"}})
			},
			"duesday run payments": func(p *player, _ string) {
				out, _ := p.run("duesday subscription show 1003/1")
				p.visit(out, "Complete authentication", nil)
			},
		}},
	{page: "docs/api.md",
		prints: map[string][]string{
			`send accounts join/ada/account`:     {`"id":"ada"|Idempotent-Replayed: true`},
			`TODAY=`:                             {`"sku":"GYM".*"due_date":"2026-11-28"`},
			`send runs`:                          {`"kind":"payments"`},
			`sleep 1`:                            {`"state":"completed"`},
			`api accounts/ada/subscriptions/gym`: {`"due_date":"2026-12-28"|"state":"paid"`},
			`api 'receipts`:                      {`"amount":3900,"currency":"GBP"`},
			`send accounts/ada/subscriptions/gym/plan order-7`: {`"sku":"GYM-PLUS".*"amount":4900`},
			`send accounts/ada/subscriptions/gym/cancel`:       {`"cancel_at_period_end":true`},
			`send accounts/bob`:                                {`"status":422.*"code":"field".*"#/payment_day"`},
		},
		then: map[string]func(p *player, out string){
			"send accounts/ada/card_links": func(p *player, out string) {
				p.visit(out, "Save this card", url.Values{"card": {"pm_card_visa"}})
			},
		}},
	{page: "docs/billing.md", after: "Charge something", start: "cd billing",
		skipped: map[string]string{"$ duesday report": "figures of a shop with fifty members"},
		then: map[string]func(p *player, out string){
			"duesday settings set 'pay-to": func(p *player, _ string) {
				p.run("export " + envAhead + "=" + (p.ahead + 3*24*time.Hour).String())
				p.run("duesday run payments")
			},
		}},
	{page: "docs/tracking.md", after: "Follow a sale",
		prints: map[string][]string{
			"curl":                                   {`"kind":"legacy".*"client_secret":`},
			"at_shop() {":                            {`(?s)( paid +\$9\.00 .*){2}`},
			"at_shop test_helpers/":                  {`order-3 +split +\S+ +yes +- +\S+ terminated: completed`},
			"INTENT=$(duesday payment l":             {`order-2 +legacy +\S+ +yes`},
			"BUYER=$(at_shop customers -d email=eve": {`(?s)sub_\S+ +cus_\S+ +active +price_\S+ +import .*nothing was written.*imported +1`},
		}},
	{page: "docs/start-stripe.md", start: "[ -d gym ] && cd gym && set -a && . ./rehearsal.env && set +a",
		without: map[string]string{
			"git clone":                "fetches the repository",
			"CGO_ENABLED=0 go install": "compiles the program",
			"export PATH":              "finds the installed program",
		},
		skipped: map[string]string{
			"both jobs run daily at":     "serve prints its line as JSON here",
			"fake_speed() {":             "runs until it is stopped; TestStripeFake_FastClock plays it",
			"mkdir gym-test":             "reads secrets of Stripe and a mail server",
			"duesday mail test":          "sends mail",
			"duesday serve":              "needs those secrets",
			"duesday: Stripe's webhooks": "needs those secrets",
		},
		then: map[string]func(p *player, out string){
			"duesday account card-link 1010": func(p *player, out string) {
				p.visit(out, "Save this card", url.Values{"card": {"pm_card_visa"}})
			},
			"fake_clock 2026-03-01": func(p *player, _ string) {
				p.await("duesday verify", `receipts +20\n`)
				p.await("duesday receipt list 1010", `(?s)(R-2026-.*){2}`) // mailed
			},
		}},
}

// visit opens the fake's page that the output links to, and presses the button.
func (p *player) visit(out, button string, fields url.Values) {
	p.t.Helper()
	link := regexp.MustCompile(`http://127\.0\.0\.1:12111(/[^\s"]+)`).FindStringSubmatch(out)
	if link == nil {
		p.t.Fatalf("no link in\n%s", out)
	}
	(&stripeCLI{cli: &cli{t: p.t}}).visit(p.control.Base+link[1], button, fields)
}

// TestPages plays the sh blocks of each page in shells, and compares what they print with the block
// after them.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, test := range pageTests {
		t.Run(test.page, func(t *testing.T) {
			t.Parallel()
			text := readPage(t, test.page)
			if _, err := exec.LookPath("curl"); err != nil && strings.Contains(text, "curl ") && os.Getenv("CI") != "true" {
				t.Skip("not tested: the page's commands need curl")
			}
			p := newPlayer(t)
			if test.after != "" {
				_, section, _ := strings.Cut(readPage(t, "README.md"), "\n## "+test.after+"\n")
				section, _, _ = strings.Cut(section, "\n## ")
				p.play(section, pageTests[0])
			}
			p.start = test.start
			met := p.play(text, test)
			for _, words := range slices.Concat(slices.Collect(maps.Keys(test.skipped)), slices.Collect(maps.Keys(test.without)),
				slices.Collect(maps.Keys(test.prints)), slices.Collect(maps.Keys(test.then))) {
				if !met[words] {
					t.Errorf("no block begins with %q", words)
				}
			}
		})
	}
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// play plays the page. Only an exit code that the page names may differ from 0.
func (p *player) play(text string, test pageTest) (met map[string]bool) {
	p.t.Helper()
	var printed *string // by the last sh block
	parts := strings.Split(text, "\n```")
	met = map[string]bool{}
	begins := func(block, words string) bool {
		found := strings.HasPrefix(block, words)
		met[words] = met[words] || found
		return found
	}
	for i := 1; i < len(parts); i += 2 {
		kind, block, _ := strings.Cut(parts[i], "\n")
		skip := false
		for words := range test.skipped {
			skip = begins(block, words) || skip
		}
		switch {
		case skip:
			printed = nil
		case kind == "sh":
			for words := range test.without {
				line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(words) + `.*\n`)
				met[words] = met[words] || line.MatchString(block)
				block = line.ReplaceAllString(block, "")
			}
			var forms []string
			for words, f := range test.prints {
				if begins(block, words) {
					forms = f
				}
			}
			around := block + parts[i+1]
			if i+3 < len(parts) {
				around += parts[i+3]
			}
			out := p.plays(block, around, forms)
			for words, do := range test.then {
				if !met[words] && begins(block, words) {
					do(p, out)
				}
			}
			printed = &out
		case printed == nil:
			p.t.Errorf("no command prints\n%s", block)
		default:
			if got, want := unvaried(*printed), unvaried(block+"\n"); got != want {
				p.t.Errorf("the page has\n%s\nand the commands print\n%s", block, *printed)
			}
			printed = nil
		}
	}
	return met
}

// plays runs a block and checks what it prints. The text around it names each exit code other than 0.
func (p *player) plays(block, around string, forms []string) string {
	p.t.Helper()
	out, codes := p.playBlock(block, forms)
	for code := range strings.FieldsSeq(codes) {
		if !regexp.MustCompile(`exits (with )?` + code).MatchString(around) {
			p.t.Errorf("exit code %s, which the page does not name:\n%s\n%s", code, block, out)
		}
	}
	for _, form := range forms {
		if !regexp.MustCompile(form).MatchString(out) {
			p.t.Errorf("%q is not printed by\n%s\n%s", form, block, out)
		}
	}
	return out
}

// varied are further parts of an output that differ with each play.
var varied = regexp.MustCompile(`http://127\.0\.0\.1:\d+|_(test_)?fake[0-9a-z]+|\d{4}-\d\d-\d\dT[0-9:.]+Z|receipt-[0-9a-f]+|R-2026-\d+`)

func unvaried(text string) string {
	for _, v := range varying {
		text = v.form.ReplaceAllString(text, v.text)
	}
	return varied.ReplaceAllString(text, "*")
}

// playBlock runs a block. In the place of a pause it repeats the next command until that prints the form.
func (p *player) playBlock(block string, forms []string) (out, codes string) {
	p.t.Helper()
	for i, part := range regexp.MustCompile(`(?m)^sleep .*\n`).Split(block, -1) {
		if i > 0 {
			if len(forms) == 0 {
				p.t.Fatalf("say what ends the pause of\n%s", block)
			}
			command, _, _ := strings.Cut(part, "\n")
			p.await(command, forms[0])
		}
		more, failed := p.run(part)
		out, codes = out+more, codes+" "+failed
	}
	return out, codes
}

// await repeats a command until it prints the form.
func (p *player) await(command, form string) {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		out, _ := p.run(command)
		if regexp.MustCompile(form).MatchString(out) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s never printed %q:\n%s", command, form, out)
		}
	}
}
