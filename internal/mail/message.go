package mail

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"time"
	"unicode"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/outbox"
)

const defaultFrom = "Duesday <billing@localhost>"

// name returns the name of a message's file and Message-ID: the kind, checked by fill, and the id.
func name(e outbox.Effect) string { return strings.ReplaceAll(e.Kind, "_", "-") + "-" + id(e) }

// id is a hash of the effect's id, which may be long and have any characters.
func id(e outbox.Effect) string {
	sum := sha256.Sum256([]byte(e.ID))
	return hex.EncodeToString(sum[:16])
}

// A Message is an RFC 5322 message with CRLF line ends, and its envelope.
type Message struct {
	From, To string // of the envelope: <ada@example.com>
	Bytes    []byte
}

// A Writer turns effects into messages. It is safe for concurrent use.
type Writer struct {
	templates *Templates
	settings  settings.Settings
	from      *mail.Address
}

// NewWriter returns a Writer that uses the merchant's name, address and sender from the settings.
// Without a sender, mail is from an address of this machine.
func NewWriter(t *Templates, s settings.Settings) (*Writer, error) {
	from, err := mail.ParseAddress(cmp.Or(s.Sender, defaultFrom))
	if err != nil {
		return nil, fmt.Errorf("mail: sender %q: %w", s.Sender, err)
	}
	return &Writer{t, s, from}, nil
}

// Message returns the effect's message, which is always the same for the same effect, templates and
// settings. It returns outbox.ErrPermanent if the effect can never become a message.
func (w *Writer) Message(e outbox.Effect) (Message, error) {
	c, err := w.content(e)
	if err != nil {
		return Message{}, err
	}
	to, err := recipient(e.Data[outbox.DataEmail])
	if err != nil {
		return Message{}, err
	}
	body, err := w.compose(e, to, &c)
	return Message{From: (&mail.Address{Address: w.from.Address}).String(), To: to.String(), Bytes: body}, err
}

// content fills the templates. Mail to the operator has none: it is plain text.
func (w *Writer) content(e outbox.Effect) (content, error) {
	if e.Kind == outbox.KindOperator {
		text := e.Data[outbox.DataText]
		return content{clean(e.Data[outbox.DataSubject]), text, "<pre>" + html.EscapeString(text) + "</pre>\n"}, nil
	}
	v, err := newView(e, &w.settings)
	if err != nil {
		return content{}, err
	}
	return w.templates.fill(v)
}

// Preview returns the subject of the effect's message, and its text or HTML.
func (w *Writer) Preview(e outbox.Effect, asHTML bool) (subject, body string, err error) {
	c, err := w.content(e)
	if asHTML {
		return c.subject, c.html, err
	}
	return c.subject, c.text, err
}

func (w *Writer) compose(e outbox.Effect, to *mail.Address, c *content) ([]byte, error) {
	var b bytes.Buffer
	header(&b, "From", w.from.String())
	if w.settings.ReplyTo != "" {
		header(&b, "Reply-To", (&mail.Address{Address: w.settings.ReplyTo}).String())
	}
	header(&b, "To", to.String())
	header(&b, "Subject", mime.QEncoding.Encode("utf-8", c.subject))
	header(&b, "Date", e.Created.UTC().Format(time.RFC1123Z)) // not now: a repetition is the same message
	header(&b, "Message-ID", "<"+name(e)+"@duesday>")
	header(&b, "Auto-Submitted", "auto-generated") // RFC 3834: no holiday notices in reply
	header(&b, "MIME-Version", "1.0")
	boundary := "=_" + id(e) // no quoted-printable text has these characters
	header(&b, "Content-Type", `multipart/alternative; boundary="`+boundary+`"`)
	for _, part := range [...]struct{ form, text string }{{"plain", c.text}, {"html", c.html}} {
		b.WriteString("\r\n--" + boundary + "\r\n")
		header(&b, "Content-Type", "text/"+part.form+"; charset=utf-8")
		header(&b, "Content-Transfer-Encoding", "quoted-printable")
		b.WriteString("\r\n")
		q := quotedprintable.NewWriter(&b) // turns \n into CRLF
		if _, err := q.Write([]byte(part.text)); err != nil {
			return nil, err
		}
		if err := q.Close(); err != nil {
			return nil, err
		}
	}
	b.WriteString("\r\n--" + boundary + "--\r\n")
	return b.Bytes(), nil
}

// header writes a header without line breaks, and folds it to the 78 characters of RFC 5322.
func header(b *bytes.Buffer, name, value string) {
	const width = 78
	b.WriteString(name + ":")
	column := len(name) + 1
	for i, word := range strings.Split(value, " ") {
		if i > 0 && column+1+len(word) > width {
			b.WriteString("\r\n")
			column = 0
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	b.WriteString("\r\n")
}

// recipient parses the one bare address. Errors are stored and logged: they do not show it.
func recipient(text string) (*mail.Address, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || len(text) > 320 {
		return nil, fmt.Errorf("%w: %s is not a mail address", outbox.ErrPermanent, outbox.DataEmail)
	}
	return &mail.Address{Address: a.Address}, nil
}

// clean is locale.Clean for a value of which no part may read as an encoded word of a header.
func clean(value string) string { return strings.ReplaceAll(locale.Clean(value), "=?", "= ?") }
