package status

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Watch looks at an installation every minute for as long as its process serves, and keeps the claim
// that says so. It logs a check that has turned wrong, once a day for as long as it is, and once when
// it is right again. A check has turned when two looks in a row agree.
type Watch struct {
	In    *Installation
	After func() <-chan time.Time // waits from one look to the next
	By    string                  // this process, for others
	Log   *slog.Logger
	// Tell is called after each look with the checks that have turned wrong and still are, and with
	// whether all have turned right. nil: nobody is told.
	Tell func(ctx context.Context, wrong []Check, well bool) error

	mu   sync.Mutex
	last []Check // guarded by mu

	runs     map[string]int       // looks in a row at which a check was wrong
	well     int                  // looks in a row at which none was
	told     map[string]time.Time // when a check was logged; since it has been wrong
	untold   string               // the last error of Tell, logged
	lost     <-chan struct{}      // closed when the claim is
	unclaims func()
}

// again is when what is still wrong is told of once more.
const again = 24 * time.Hour

// Last returns the checks of the last look; nil before the first.
func (w *Watch) Last() []Check {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	w.runs, w.told = map[string]int{}, map[string]time.Time{}
	defer func() {
		if w.unclaims != nil {
			w.unclaims()
		}
	}()
	for {
		w.claim(ctx)
		w.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-w.After():
		}
	}
}

// claim tells the other processes of the store that this one serves. It is claimed again when the
// process that kept the claim is gone. Another serve may have it: one is enough.
func (w *Watch) claim(ctx context.Context) {
	claims, ok := w.In.Engine.Store.(store.Claimer)
	if !ok {
		return
	}
	if w.unclaims != nil {
		select {
		case <-w.lost:
		default:
			return
		}
	}
	if lost, release, err := claims.Claim(ctx, ClaimName, w.By); err == nil {
		w.lost, w.unclaims = lost, release
	}
}

func (w *Watch) look(ctx context.Context) {
	checks := w.In.Look(ctx)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	w.last = checks
	w.mu.Unlock()
	var wrong []Check
	for _, c := range checks {
		if w.runs[c.Name]++; !c.Wrong {
			w.runs[c.Name] = 0
		}
		if w.runs[c.Name] > 1 {
			wrong = append(wrong, c)
		}
		w.note(c)
	}
	if w.well++; len(Wrong(checks)) > 0 {
		w.well = 0
	}
	if w.Tell == nil {
		return
	}
	err := w.Tell(ctx, wrong, w.well > 1)
	if err == nil {
		w.untold = ""
	} else if ctx.Err() == nil && w.untold != err.Error() {
		w.untold = err.Error()
		w.Log.Error("the operator cannot be told of what is wrong", "error", err)
	}
}

// note logs a check that has turned.
func (w *Watch) note(c Check) {
	now := w.In.Engine.Now()
	since, was := w.told[c.Name]
	switch {
	case c.Wrong && w.runs[c.Name] > 1 && (!was || now.Sub(since) >= again):
		w.told[c.Name] = now
		w.Log.Error("status: something is wrong", "check", c.Name, "found", c.Text, "next", c.Next)
	case !c.Wrong && was:
		delete(w.told, c.Name)
		w.Log.Warn("status: this is all right again", "check", c.Name, "found", c.Text)
	}
}

// The states of the item of the alarms. It says when the operator was last told of each check, so that
// several processes, and one that starts again, tell once a day.
const (
	alarmed = "wrong"
	calmed  = "well"
)

var alarmKey = store.Key{PK: "ALARMS", SK: "NOW"} // the alarms of a store

// Mail writes mail to the operator of the settings: one of the wrong checks of which the operator was
// not told for a day, and one when all is well after that. The mail is in the outbox, by the commit
// that notes it, when Mail returns nil.
func (in *Installation) Mail(ctx context.Context, wrong []Check, well bool) error {
	e := in.Engine
	settings, err := e.Settings(ctx)
	if err != nil || settings.Operator == "" {
		return err
	}
	return store.Retry(ctx, "telling the operator", func() error {
		if err := e.Live(ctx); err != nil { // nobody reads a store that was moved
			return err
		}
		was, err := e.Store.Get(ctx, e.Table, alarmKey)
		if billing.IgnoreNotFound(err) != nil {
			return err
		}
		now, condition := e.Now(), store.Absent()
		if err == nil {
			condition = store.AttributeEquals(schema.Version, was.Get(schema.Version))
		}
		var told store.Item
		for _, a := range was.Get(schema.Data).Map() {
			if now.Sub(billing.ParseStamp(a.Value.Str())) < again {
				told.Set(a.Name, a.Value)
			}
		}
		var due []Check
		for _, c := range wrong {
			if told.Str(c.Name) == "" {
				due = append(due, c)
				told.Set(c.Name, store.S(billing.Stamp(now)))
			}
		}
		state := alarmed
		if len(due) == 0 {
			if state = calmed; !well || was.Str(schema.State) != alarmed {
				return nil
			}
		}
		version := was.Int(schema.Version) + 1
		it := billing.ItemAt(alarmKey, store.Attribute{Name: schema.Version, Value: store.Int(version)},
			store.Attribute{Name: schema.State, Value: store.S(state)}, store.Attribute{Name: schema.Data, Value: store.M(told)})
		subject, text := letter(settings.MerchantName, due)
		mail := outbox.Effect{ID: "operator#" + strconv.FormatInt(version, 10), Kind: outbox.KindOperator, Due: now,
			Created: now, Data: map[string]string{outbox.DataEmail: settings.Operator, outbox.DataSubject: subject,
				outbox.DataText: text}}
		return e.Store.Commit(ctx, store.Put(e.Table, it, condition), outbox.Write(e.Tables.Outbox.Name, mail))
	})
}

// letter is the mail of the checks; of none, that all is well.
func letter(merchant string, due []Check) (subject, text string) {
	if merchant != "" {
		merchant = " (" + merchant + ")"
	}
	if len(due) == 0 {
		return "Duesday" + merchant + ": all is well again", "Every check of duesday status is all right.\n"
	}
	var names []string
	var b strings.Builder
	for _, c := range due {
		names = append(names, c.Name)
		fmt.Fprintf(&b, "%s: %s\n  What to do: %s\n\n", c.Name, c.Text, c.Next)
	}
	b.WriteString("duesday status shows every check. You are told of each once a day while it is wrong.\n")
	return "Duesday" + merchant + ": wrong: " + strings.Join(names, ", "), b.String()
}
