package session

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

// A Post sends mail through a mail server or writes it to a folder.
type Post struct {
	Templates *mail.Templates
	Server    *smtp.Server // nil to write to the folder
	Folder    string
	Named     bool // the user named the folder, so it is not the default
}

// NewPost validates the mail settings. Commands call it before they charge, because a run must not
// charge customers whom it cannot notify.
func (p *Program) NewPost() (*Post, error) {
	c := &p.Config
	templates, err := mail.NewTemplates(p.Path(c.Templates))
	if err != nil {
		return nil, screen.Invalid(err)
	}
	out := &Post{Templates: templates, Folder: p.Path(c.Mail), Named: c.MailGiven}
	if c.SMTP.Server == "" {
		return out, nil
	}
	if out.Server, err = smtp.Parse(c.SMTP.Server); err != nil {
		return nil, screen.Usagef("--smtp: %w", err)
	}
	if err := c.SMTP.Password.Read(); err != nil {
		return nil, screen.Invalid(err)
	}
	out.Server.Password = c.SMTP.Password.Text
	if err := out.Server.CheckPassword(); err != nil {
		return nil, screen.Usagef("%w: set %s, or set %[2]s%s to a file that contains it", err, config.EnvSMTPPassword, config.InFile)
	}
	return out, nil
}

func (p *Post) String() string {
	if p.Server != nil {
		return p.Server.String()
	}
	return p.Folder
}

// Done describes what happened to the mails: a mail server sent them, or they were written to the
// folder.
func (p *Post) Done(mails int) string {
	if p.Server != nil {
		return fmt.Sprintf("%s sent through %s", screen.Plural(mails, "mail"), p)
	}
	return fmt.Sprintf("%s written to %s", screen.Plural(mails, "mail"), p)
}

// workers returns the number of mails to deliver at the same time. It is lower for a mail server,
// which may limit the number of connections.
func (p *Post) workers() int {
	if p.Server != nil {
		return 4
	}
	return 16
}

// These errors are returned when this process cannot send mail. The mail stays in the outbox.
var (
	errNoSender = errors.New("mail has no sender; set one with duesday settings set 'sender=Ada Gym <billing@example.com>'")
	errNoServer = errors.New("mail has a sender, but this command has no mail server; add --smtp URL, or --mail FOLDER " +
		"to write mail there instead of sending it")
)

// Check returns errNoSender or errNoServer if p cannot deliver mail to customers under these
// settings.
func (p *Post) Check(s settings.Settings) error {
	switch {
	case p.Server != nil && s.Sender == "":
		return errNoSender
	case p.Server == nil && s.Sender != "" && !p.Named:
		return errNoServer
	}
	return nil
}

// Open returns a deliverer that uses the settings. The caller must call done to close its
// connections.
func (p *Post) Open(s settings.Settings) (d outbox.Deliverer, done func(), err error) {
	if p.Server != nil && s.Sender == "" {
		return nil, nil, errNoSender
	}
	w, err := mail.NewWriter(p.Templates, s)
	if err != nil {
		return nil, nil, err
	}
	if p.Server != nil {
		sender := smtp.NewSender(p.Server, w)
		return sender, sender.Close, nil
	}
	folder, err := mail.NewFolder(p.Folder, w)
	return folder, func() {}, err
}
