package session

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/mail/smtp"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/screen"
)

// A postbox records every effect that is delivered to it.
type postbox struct{ got []outbox.Effect }

func (n *postbox) Deliver(_ context.Context, e outbox.Effect) error {
	n.got = append(n.got, e)
	return nil
}

type refusing struct{}

func (refusing) Deliver(context.Context, outbox.Effect) error { return &smtp.Bounce{Code: "550 5.1.1"} }

// A clerk returns one locale and one link, and records one bounce.
type clerk struct {
	locale  string
	number  string
	page    string
	link    processor.CardLink
	fails   error
	bounced string
}

func (c *clerk) Holder(context.Context, outbox.Effect) (locale, name string, err error) {
	return c.locale, "", nil
}

func (c *clerk) Arrears(context.Context, outbox.Effect) (map[string]string, error) { return nil, nil }

func (c *clerk) NumberOf(context.Context, outbox.Effect) (string, error) { return c.number, nil }

func (c *clerk) pageLink(context.Context, outbox.Effect) (string, error) { return c.page, nil }

func (c *clerk) Link(context.Context, outbox.Effect) (processor.CardLink, error) {
	return c.link, c.fails
}

func (c *clerk) NoteBounce(_ context.Context, e outbox.Effect, code string) error {
	c.bounced = e.Data[outbox.DataEmail] + " " + code
	return c.fails
}

func TestLinkedDelivery(t *testing.T) {
	e := outbox.Effect{ID: "1", Kind: outbox.KindDeclined, Data: map[string]string{outbox.DataEmail: "a@example.com"}}
	to, knows := new(postbox), new(clerk)
	d := &mailing{Deliverer: to, accounts: knows, page: knows.pageLink, linkless: new(atomic.Int64), bar: new(screen.Progress)}
	send := func() error { return d.Deliver(t.Context(), e) }
	if err := send(); err != nil || len(to.got) != 1 || to.got[0].Data[outbox.DataLink] != "" {
		t.Errorf("without a link: %v, %+v", err, to.got)
	}
	knows.link, knows.locale = processor.CardLink{URL: "https://pay.example/secret", Expires: time.Date(2026, 3, 16, 10, 30, 0, 0, time.UTC)}, "pt-BR"
	if err := send(); err != nil || len(to.got) != 2 || to.got[1].Data[outbox.DataLink] != knows.link.URL ||
		to.got[1].Data[outbox.DataLinkExpires] != "2026-03-16T10:30:00.000Z" || to.got[1].Data[outbox.DataLocale] != "pt-BR" {
		t.Errorf("with one: %v, %+v", err, to.got)
	}
	if _, has := to.got[1].Data[outbox.DataPage]; has {
		t.Error("a link to the page")
	}
	knows.page = "https://pay.example/l/x"
	if err := send(); err != nil || to.got[2].Data[outbox.DataPage] != knows.page {
		t.Errorf("with a page: %v, %+v", err, to.got)
	}
	to.got = to.got[:2]
	if len(e.Data) != 1 {
		t.Errorf("the effect itself has it now: %v", e.Data)
	}
	d.Deliverer = refusing{}
	if err := send(); !errors.Is(err, outbox.ErrPermanent) || knows.bounced != "a@example.com 550 5.1.1" {
		t.Errorf("refused: %v, noted %q", err, knows.bounced)
	}
	d.Deliverer, knows.fails = to, processor.ErrUnknown
	if err := send(); !errors.Is(err, processor.ErrUnknown) || len(to.got) != 2 {
		t.Errorf("not for the moment: %v, %d delivered", err, len(to.got))
	}
}

// A slowMail needs the given time to deliver a message. It also implements accounts, without any
// data.
type slowMail struct{ takes time.Duration }

func (s slowMail) Deliver(ctx context.Context, _ outbox.Effect) error {
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (slowMail) Holder(context.Context, outbox.Effect) (locale, name string, err error) {
	return "", "", nil
}

func (slowMail) Arrears(context.Context, outbox.Effect) (map[string]string, error) { return nil, nil }

func (slowMail) NumberOf(context.Context, outbox.Effect) (string, error) { return "", nil }

func (slowMail) NoteBounce(context.Context, outbox.Effect, string) error { return nil }

func (slowMail) Link(context.Context, outbox.Effect) (processor.CardLink, error) {
	return processor.CardLink{}, nil
}

// TestDelivery_Stop checks that mail being sent when the program stops is still delivered within
// the grace period.
func TestDelivery_Stop(t *testing.T) {
	for takes, want := range map[time.Duration]error{mailGrace: nil, mailGrace + 2*time.Second: context.Canceled} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, stop)
			begun := time.Now()
			d := &mailing{Deliverer: slowMail{takes}, accounts: slowMail{}, page: new(clerk).pageLink, linkless: new(atomic.Int64), bar: new(screen.Progress)}
			if err := d.Deliver(ctx, outbox.Effect{}); !errors.Is(err, want) || time.Since(begun) > mailGrace+time.Second {
				t.Errorf("%s: %v after %s, want %v", takes, err, time.Since(begun), want)
			}
		})
	}
}
