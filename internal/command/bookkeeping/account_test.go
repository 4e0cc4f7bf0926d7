package bookkeeping

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/session"
)

func TestPercent(t *testing.T) {
	for text, want := range map[string]int{"2.5%": 250, "2.5": 250, "0": 0, "0.01%": 1, "100": 10000, " 7 %": 700,
		"1.20%": 120, "00.5": 50} {
		if got, err := parsePercent(text); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "100.01", "-1", "+1", "1.", ".5", "1.234", "1e1", "101%", "2,5", "2.5%%",
		"99999999999999999999"} {
		if got, err := parsePercent(text); err == nil {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
	if got := percent(250) + percent(5); got != "2.50%0.05%" {
		t.Error(got)
	}
}

// TestLookForLink checks what the command shows for each of the processor's answers.
func TestLookForLink(t *testing.T) {
	sub := &billing.Subscription{Open: &billing.OpenPeriod{Ref: "pi_1", State: processor.RequiresAction}}
	p := &program{session.New(func(string) string { return "" }, nil, nil, nil, time.Now)}
	for _, tt := range []struct {
		in           processor.Intent
		err          error
		link, noLink string
	}{
		{in: processor.Intent{State: processor.RequiresAction, Link: "https://pay.example/1"}, link: "https://pay.example/1"},
		{in: processor.Intent{State: processor.RequiresAction}, noLink: "no page"},
		{in: processor.Intent{State: processor.Succeeded}, noLink: "succeeded at the processor"},
		{err: processor.ErrUnknown, noLink: "answer was lost"},
	} {
		link, noLink := p.lookForLink(t.Context(), &session.Session{Processor: answering{in: tt.in, err: tt.err}}, sub)
		if link != tt.link || !strings.Contains(noLink, tt.noLink) || (tt.noLink == "" && noLink != "") {
			t.Errorf("%+v: %q, %q", tt, link, noLink)
		}
	}
}

// answering is a processor that only supports Lookup.
type answering struct {
	processor.Charger
	in  processor.Intent
	err error
}

func (a answering) Lookup(context.Context, string) (processor.Intent, error) { return a.in, a.err }
