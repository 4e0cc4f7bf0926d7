package main

import (
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/mail/smtp"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/screen"
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
