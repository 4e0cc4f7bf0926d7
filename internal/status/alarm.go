package status

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// The states of the item of the alarms. It says when the operator was last told of each check, so that
// several processes, and one that starts again, tell once a day.
const (
	alarmed = "wrong"
	calmed  = "well"
)

var alarmKey = store.Key{PK: "ALARMS", SK: "NOW"} // the alarms of a store

// A Letter reports checks to the operator or, if it has none, that all checks pass again. The zero
// Letter reports nothing.
type Letter struct {
	Subject, Text string
	Checks        []string
}

// Mail writes mail to the operator of the settings: one of the wrong checks of which the operator
// was not told for a day, and one when all is well after that. The mail is in the outbox, by the
// commit that notes it, when Mail returns nil. It returns the letter, also where nobody gets mail
// but there is a command.
func (in *Installation) Mail(ctx context.Context, wrong []Check, well bool) (told Letter, err error) {
	e := in.Engine
	settings, err := settings.Read(ctx, e.Records)
	if err != nil {
		return told, err
	}
	endpoints, err := in.anyEndpoint(ctx)
	if err != nil || settings.Operator == "" && !in.Commands && !endpoints {
		return told, err
	}
	return told, store.Retry(ctx, "the message to the operator", func() error {
		if err := e.Live(ctx); err != nil { // nobody reads a store that was moved
			return err
		}
		was, err := e.Store.Get(ctx, e.Table, alarmKey)
		if billing.IgnoreNotFound(err) != nil {
			return err
		}
		now, condition := e.Now(), store.Absent()
		if err == nil {
			condition = billing.Unchanged(schema.Version, was.Get(schema.Version))
		}
		var noted store.Item
		for _, a := range was.Get(schema.Data).Map() {
			if now.Sub(billing.ParseStamp(a.Value.Str())) < again {
				noted.Set(a.Name, a.Value)
			}
		}
		var due []Check
		for _, c := range wrong {
			if noted.Str(c.Name) == "" {
				due = append(due, c)
				noted.Set(c.Name, store.S(billing.Stamp(now)))
			}
		}
		state := alarmed
		if len(due) == 0 {
			if state = calmed; !well || was.Str(schema.State) != alarmed {
				return nil
			}
			if well, err := in.wellEverywhere(ctx); !well { // as far as other processes know
				return err
			}
		}
		version := was.Int(schema.Version) + 1
		it := billing.ItemAt(alarmKey, store.Attribute{Name: schema.Version, Value: store.Int(version)},
			store.Attribute{Name: schema.State, Value: store.S(state)}, store.Attribute{Name: schema.Data, Value: store.M(noted)})
		told = letter(settings.MerchantName, due)
		writes := []store.Write{store.Put(e.Table, it, condition)}
		mail := outbox.Effect{ID: "operator#" + strconv.FormatInt(version, 10), Kind: outbox.KindOperator, Due: now,
			Created: now, Data: map[string]string{outbox.DataEmail: settings.Operator, outbox.DataSubject: told.Subject,
				outbox.DataText: told.Text}}
		if endpoints && slices.Contains(told.Checks, "days") {
			late := delivery.Event{Type: "run.late", Data: map[string]any{"check": "days"}}
			rows, err := in.Messages.Effect(ctx, mail.ID, late)
			if err != nil {
				return err
			}
			writes = append(writes, rows...)
		}
		if settings.Operator != "" {
			writes = append(writes, outbox.Write(e.Tables.Outbox.Name, mail))
		}
		return e.Store.Commit(ctx, writes...)
	})
}

// letter returns the letter of the checks.
func letter(merchant string, due []Check) Letter {
	if merchant != "" {
		merchant = " (" + merchant + ")"
	}
	if len(due) == 0 {
		return Letter{Subject: "Duesday" + merchant + ": all checks pass again", Text: "Every check of duesday status passes.\n"}
	}
	var names []string
	var b strings.Builder
	for _, c := range due {
		names = append(names, c.Name)
		fmt.Fprintf(&b, "%s is %s: %s\n  What to do: %s\n\n", c.Name, c.State, c.Text, c.Next)
	}
	b.WriteString("duesday status shows all checks. You receive one message a day about each check that stays wrong.\n")
	return Letter{"Duesday" + merchant + ": wrong: " + strings.Join(names, ", "), b.String(), names}
}
