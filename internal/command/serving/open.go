package serving

import (
	"context"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/command/sales"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/pages"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

// Pages returns a function that serves nothing but the pages of the program's store at an address, and prints a
// link that signs in, until ctx ends.
func Pages(of *session.Program) func(ctx context.Context, address string) error {
	p := &program{of}
	return func(ctx context.Context, address string) error {
		o := serveFlags{pages: address, noPoll: true, every: sales.PollEvery, signIn: true}
		o.limits.add(pflag.NewFlagSet("", pflag.ContinueOnError)) // sets the defaults
		if err := o.check(pflag.NewFlagSet("", pflag.ContinueOnError)); err != nil {
			return err
		}
		return p.serve(ctx, &o)
	}
}

// openCommand prints a link that signs its bearer in to the operators' pages once. Whoever can run it on the
// store can do everything anyway, so the session has scope admin.
func (p *program) openCommand() *cobra.Command {
	at := ""
	c := p.StoreLeaf("open", session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		u, err := url.Parse(at)
		if err != nil || u.Host == "" {
			return screen.Usagef("--at must be the URL of the pages, such as http://%s", servePages)
		}
		link, err := p.signInLink(ctx, s, u)
		if err != nil {
			return err
		}
		return p.JSON(link)
	})
	c.Flags().StringVar(&at, "at", "http://"+servePages, "`URL` of the pages: the address of serve --pages, or of the proxy")
	return c
}

// signInLink prints a link below the URL of the pages that signs in once, and returns it.
func (p *program) signInLink(ctx context.Context, s *session.Session, at *url.URL) (view.Object, error) {
	text, err := s.Keys(p.Machine()).Link(ctx)
	if err != nil {
		return nil, err
	}
	u := *at
	u.Path, u.RawQuery = pages.SignInPath, url.Values{"link": {text.Reveal()}}.Encode()
	expires := p.Machine()().Add(key.LinkLife).UTC().Truncate(time.Second)
	p.Say("%s\n\nThis link signs you in once, until %s.", &u, expires.Format(time.TimeOnly+" UTC"))
	return view.Object{"url", u.String(), "expires_at", expires}, nil
}
