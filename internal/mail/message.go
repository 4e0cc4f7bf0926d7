package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"time"
	"unicode"

	"github.com/duesday/duesday/internal/outbox"
)

const defaultFrom = "Duesday <billing@localhost>"

// name returns the name of a message's file, without ".eml", and of its Message-ID, without
// "@duesday": the kind, checked by compose, and a hash of the effect's id. The id itself may
// be long and have any characters.
func name(e outbox.Effect) string {
	sum := sha256.Sum256([]byte(e.ID))
	return strings.ReplaceAll(e.Kind, "_", "-") + "-" + hex.EncodeToString(sum[:16])
}

// compose returns the whole message for the effect, in the form of RFC 5322 with CRLF. It
// returns outbox.ErrPermanent if the effect can never become a message.
func compose(e outbox.Effect, from *mail.Address) ([]byte, error) {
	text, err := write(e)
	if err != nil {
		return nil, err
	}
	to, err := recipient(e.Data[outbox.DataEmail])
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	header(&b, "From", from.String())
	header(&b, "To", to.String())
	header(&b, "Subject", mime.QEncoding.Encode("utf-8", text.subject))
	header(&b, "Date", e.Created.UTC().Format(time.RFC1123Z)) // not now: a repetition is the same message
	header(&b, "Message-ID", "<"+name(e)+"@duesday>")
	header(&b, "Auto-Submitted", "auto-generated") // RFC 3834: no holiday notices in reply
	header(&b, "MIME-Version", "1.0")
	header(&b, "Content-Type", "text/plain; charset=utf-8")
	header(&b, "Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b) // turns \n into CRLF; a buffer never fails
	if _, err := w.Write([]byte(text.body)); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}

// header writes one header. It folds the value at spaces, to the 78 characters of RFC 5322.
// The value must have no line break.
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

// recipient parses the one bare address of an effect. The error does not show the address,
// because errors are stored and logged.
func recipient(text string) (*mail.Address, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || strings.ContainsFunc(text, unprintable) || len(text) > 320 {
		return nil, fmt.Errorf("%w: %s is no mail address", outbox.ErrPermanent, outbox.DataEmail)
	}
	return &mail.Address{Address: a.Address}, nil
}

// clean makes a value one line of bounded length. Runs of whitespace, control characters and
// characters that reorder or hide text become one space. No part of the result reads as an
// encoded word of a header.
func clean(value string) string {
	const most = 200 // characters; no account, subscription or reference is as long
	value = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(value, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unprintable(r)
	}), " ")
	if runes := []rune(value); len(runes) > most {
		value = string(runes[:most]) + "…"
	}
	return strings.ReplaceAll(value, "=?", "= ?")
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
