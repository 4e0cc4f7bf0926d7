package session

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/transfer"
)

// missingStore wraps store.ErrMissing and tells the user how to create or restore a store.
type missingStore struct {
	url string
	// If a restore to this place was interrupted, half is its folder and again is the command that
	// repeats it.
	half, again string
}

// Missing returns store.ErrMissing with instructions for the user.
func (p *Program) Missing() error {
	return &missingStore{p.Config.Store, transfer.Interrupted(p.folder()), p.Hint("store restore") + " --from FOLDER"}
}

func (e *missingStore) Error() string {
	if e.half != "" {
		return fmt.Sprintf("there is no store at %s, because a restore to it is running or was interrupted; run it again: %s, or "+
			"delete %s if you do not need it", e.url, e.again, e.half)
	}
	ways := "create one with duesday store create"
	if strings.HasPrefix(e.url, "dynamodb:") {
		ways += ", or with duesday store adopt from a table that other tools filled"
	}
	return fmt.Sprintf("there is no store at %s yet; %s, or set another with --store or %s. If a store was lost, restore its "+
		"backup, because a new store would charge its customers again", e.url, ways, config.EnvStore)
}

func (e *missingStore) Unwrap() error { return store.ErrMissing }

// Hint returns the given command line for the same data. It repeats this command's flags unless
// they have their default value or the environment sets them. A server's hints repeat those flags
// too, because the reader of a hint has another environment.
func (p *Program) Hint(command string) string {
	words := []string{p.Name, command}
	add := func(name, value, usual string) {
		f := config.Flag{Name: name}
		if given := p.Env(f.Variable()); given != "" && !p.Lasting {
			usual = given
		}
		if value != "" && value != usual {
			words = append(words, "--"+name, Quoted(value))
		}
	}
	add("store", p.Config.Store, config.DefaultStore)
	begins := func(families ...string) bool {
		return slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(command+" ", f+" ") })
	}
	charges := begins("run", "verify", "reconcile", "account attach", "account card-link", "receipt refund")
	// Commands for subscriptions may ask Stripe for the customer's page.
	if charges || begins("subscription") && p.Config.UsesStripe() {
		add("processor", p.Config.Processor, config.DefaultProcessor)
	}
	if begins("run", "outbox") {
		add("mail", p.Config.Mail, config.DefaultMail)
		if server, err := url.Parse(p.Config.SMTP.Server); err == nil { // NewPost rejects a password in the URL
			add("smtp", server.Redacted(), "")
		}
	}
	return strings.Join(words, " ")
}

// Quoted returns the text quoted as one word for a shell.
func Quoted(text string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:=@%+,", r)
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// SayKeepOwn names the subscriptions that keep their own payment method instead of the account's
// card.
func (p *Program) SayKeepOwn(own []billing.Name) {
	for _, n := range own {
		p.Say("%s keeps its own payment method and does not use the card; to replace that method, run: %s", n,
			p.Hint("account card-link "+n.String()))
	}
}
