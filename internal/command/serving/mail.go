package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/maillog"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) mailCommand() *cobra.Command {
	export := session.Leaf("export DIR", func(_ context.Context, args []string) error {
		names, err := mail.Export(p.Path(args[0]))
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w; export does not replace files, so use another folder", err)
		}
		if err != nil {
			return err
		}
		p.Say("%s written to %s; use them with --templates %s", screen.Plural(len(names), "template"), args[0], session.Quoted(args[0]))
		return p.JSON(view.Object{"folder", args[0], "templates", names})
	})
	return session.Group("mail", p.mailList(), p.mailPreview(), p.mailTest(), session.Group("templates", export))
}

func (p *program) mailList() *cobra.Command {
	var f maillog.Filter
	c := p.StoreLeaf("list", session.Need{Read: true}, func(ctx context.Context, s *session.Session, _ []string) error {
		mails := sequence.Filter(s.Mails().List(ctx, f, ""), f.Keeps)
		_, err := screen.List(p.Screen, mails, view.Mail, []string{"CREATED", "KIND", "STATE", "TO", "ACCOUNT", "ANSWER"}, func(m *maillog.Mail) []any {
			return []any{view.Stamp(m.Created), m.Kind, m.State, m.Data[outbox.DataEmail], m.Data[outbox.DataAccount], m.Answer}
		})
		return err
	})
	c.Flags().StringVar(&f.Account, "account", "", "only mail of this `ID`")
	c.Flags().StringVar(&f.State, "state", "", "only mail in this `STATE`: "+strings.Join(maillog.States(), ", "))
	return session.Checked(c, func([]string) error {
		if f.State != "" && !maillog.IsState(f.State) {
			return screen.Usagef("--state must be one of %s (got %q)", strings.Join(maillog.States(), ", "), f.State)
		}
		return nil
	})
}

func (p *program) mailPreview() *cobra.Command {
	var locale string
	html := false
	c := session.Leaf("preview KIND", func(ctx context.Context, args []string) error {
		out, rules, err := p.postBesideStore(ctx)
		if err != nil {
			return err
		}
		w, err := mail.NewWriter(out.Templates, rules)
		if err != nil {
			return err
		}
		sample := mail.Sample(kindOf(args[0]), locale, "ada@example.com", p.Now())
		if rules.AfterFailure == settings.Collect && sample.Kind == outbox.KindFailed {
			sample.Data[outbox.DataCollect] = "2026-07-28"
		}
		subject, body, err := w.Preview(sample, html)
		if err != nil {
			return err
		}
		if !html {
			p.Say("Subject: %s\n", subject)
		}
		p.Say("%s", strings.TrimSuffix(body, "\n"))
		return p.JSON(view.Object{"kind", kindOf(args[0]), "subject", subject, "body", body})
	})
	c.ValidArgs = mail.Kinds()
	session.LocaleFlag(c, &locale)
	c.Flags().BoolVar(&html, "html", false, "print the HTML instead of the text")
	return session.Checked(c, func(args []string) error {
		if !slices.Contains(mail.Kinds(), kindOf(args[0])) {
			return screen.Usagef("KIND must be one of %s (got %q)", strings.Join(mail.Kinds(), ", "), args[0])
		}
		return session.CheckLocale(locale)
	})
}

func kindOf(text string) string { return strings.ReplaceAll(text, "-", "_") }

// postBesideStore returns the Post and the store's settings. If there is no store, it returns the
// default settings.
func (p *program) postBesideStore(ctx context.Context) (out *session.Post, rules settings.Settings, err error) {
	if out, err = p.NewPost(); err != nil {
		return nil, rules, err
	}
	err = p.With(ctx, session.Need{Read: true}, func(s *session.Session) error {
		rules, err = settings.Read(ctx, s.Engine.Records)
		return err
	})
	if errors.Is(err, store.ErrMissing) {
		rules, err = settings.Default(), nil
	}
	return out, rules, err
}

func (p *program) mailTest() *cobra.Command {
	var locale string
	c := session.Leaf("test ADDRESS", func(ctx context.Context, args []string) error {
		out, settings, err := p.postBesideStore(ctx)
		if err != nil {
			return err
		}
		d, done, err := out.Open(settings)
		if err != nil {
			return err
		}
		defer done()
		if err := d.Deliver(ctx, mail.Sample(outbox.KindReceipt, locale, args[0], p.Now())); err != nil {
			return err
		}
		p.Say("a sample receipt for %s was accepted by %s", args[0], out)
		return p.JSON(view.Object{"sent", args[0], "through", out.String()})
	})
	session.LocaleFlag(c, &locale)
	return session.Checked(c, func(args []string) error { return cmp.Or(billing.CheckEmail(args[0]), session.CheckLocale(locale)) })
}
