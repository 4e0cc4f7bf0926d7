package main

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
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/mail/smtp"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/store"
)

// A post is how mail leaves: through a server, or into a folder.
type post struct {
	templates *mail.Templates
	server    *smtp.Server // nil: into the folder
	folder    string
	named     bool // the folder was asked for, and is not the default
}

// newPost checks the settings of mail: a run must not charge and then be unable to tell.
func (p *program) newPost() (*post, error) {
	c := &p.cfg
	templates, err := mail.NewTemplates(p.path(c.Templates))
	if err != nil {
		return nil, screen.Invalid(err)
	}
	out := &post{templates: templates, folder: p.path(c.Mail), named: c.MailGiven}
	if c.SMTP.Server == "" {
		return out, nil
	}
	if out.server, err = smtp.Parse(c.SMTP.Server); err != nil {
		return nil, screen.Usagef("--smtp: %w", err)
	}
	if err := c.SMTP.Password.Read(); err != nil {
		return nil, screen.Invalid(err)
	}
	out.server.Password = c.SMTP.Password.Text
	if err := out.server.CheckPassword(); err != nil {
		return nil, screen.Usagef("%w: set %s, or set %[2]s%s to a file that contains it", err, config.EnvSMTPPassword, config.InFile)
	}
	return out, nil
}

func (p *post) String() string {
	if p.server != nil {
		return p.server.String()
	}
	return p.folder
}

// done tells what has become of so many mails: only a server sends them.
func (p *post) done(mails int) string {
	if p.server != nil {
		return fmt.Sprintf("%s sent through %s", screen.Plural(mails, "mail"), p)
	}
	return fmt.Sprintf("%s written to %s", screen.Plural(mails, "mail"), p)
}

// workers is how many mails leave at once. A server may allow few connections.
func (p *post) workers() int {
	if p.server != nil {
		return 4
	}
	return 16
}

// The errors of mail for which this process has no way out. It stays in the outbox.
var (
	errNoSender = errors.New("mail has no sender; set one with duesday settings set 'sender=Ada Gym <billing@example.com>'")
	errNoServer = errors.New("mail has a sender, but this command has no mail server; add --smtp URL, or --mail FOLDER " +
		"to write mail there instead of sending it")
)

// check returns errNoSender or errNoServer if customers' mail cannot leave by this post.
func (p *post) check(s settings.Settings) error {
	switch {
	case p.server != nil && s.Sender == "":
		return errNoSender
	case p.server == nil && s.Sender != "" && !p.named:
		return errNoServer
	}
	return nil
}

// open returns the way out under the settings. done ends its connections.
func (p *post) open(s settings.Settings) (d outbox.Deliverer, done func(), err error) {
	if p.server != nil && s.Sender == "" {
		return nil, nil, errNoSender
	}
	w, err := mail.NewWriter(p.templates, s)
	if err != nil {
		return nil, nil, err
	}
	if p.server != nil {
		sender := smtp.NewSender(p.server, w)
		return sender, sender.Close, nil
	}
	folder, err := mail.NewFolder(p.folder, w)
	return folder, func() {}, err
}

func (p *program) mailCommand() *cobra.Command {
	export := leaf("export DIR", func(_ context.Context, args []string) error {
		names, err := mail.Export(p.path(args[0]))
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w; export does not replace files, so use another folder", err)
		}
		if err != nil {
			return err
		}
		p.Say("%s written to %s; use them with --templates %s", screen.Plural(len(names), "template"), args[0], quoted(args[0]))
		return p.JSON(screen.Object{"folder", args[0], "templates", names})
	})
	return group("mail", p.mailPreview(), p.mailTest(), group("templates", export))
}

func (p *program) mailPreview() *cobra.Command {
	var locale string
	html := false
	c := leaf("preview KIND", func(ctx context.Context, args []string) error {
		out, rules, err := p.postBesideStore(ctx)
		if err != nil {
			return err
		}
		w, err := mail.NewWriter(out.templates, rules)
		if err != nil {
			return err
		}
		sample := mail.Sample(kindOf(args[0]), locale, "ada@example.com", p.now())
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
		return p.JSON(screen.Object{"kind", kindOf(args[0]), "subject", subject, "body", body})
	})
	c.ValidArgs = mail.Kinds()
	localeFlag(c, &locale)
	c.Flags().BoolVar(&html, "html", false, "print the HTML instead of the text")
	return checked(c, func(args []string) error {
		if !slices.Contains(mail.Kinds(), kindOf(args[0])) {
			return screen.Usagef("KIND must be one of %s (got %q)", strings.Join(mail.Kinds(), ", "), args[0])
		}
		return checkLocale(locale)
	})
}

func kindOf(text string) string { return strings.ReplaceAll(text, "-", "_") }

// postBesideStore returns how mail leaves, and the settings of the store, if there is one.
func (p *program) postBesideStore(ctx context.Context) (out *post, rules settings.Settings, err error) {
	if out, err = p.newPost(); err != nil {
		return nil, rules, err
	}
	err = p.with(ctx, need{read: true}, func(s *session) error {
		rules, err = settings.Read(ctx, s.engine.Records)
		return err
	})
	if errors.Is(err, store.ErrMissing) {
		rules, err = settings.Default(), nil
	}
	return out, rules, err
}

func (p *program) mailTest() *cobra.Command {
	var locale string
	c := leaf("test ADDRESS", func(ctx context.Context, args []string) error {
		out, settings, err := p.postBesideStore(ctx)
		if err != nil {
			return err
		}
		d, done, err := out.open(settings)
		if err != nil {
			return err
		}
		defer done()
		if err := d.Deliver(ctx, mail.Sample(outbox.KindReceipt, locale, args[0], p.now())); err != nil {
			return err
		}
		p.Say("a sample receipt for %s was accepted by %s", args[0], out)
		return p.JSON(screen.Object{"sent", args[0], "through", out.String()})
	})
	localeFlag(c, &locale)
	return checked(c, func(args []string) error { return cmp.Or(billing.CheckEmail(args[0]), checkLocale(locale)) })
}
