package status

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// A Watch checks an installation every minute while its process serves, and holds the claim that shows
// this. It logs a check when it turns wrong, once a day while it stays wrong, and once when it passes
// again. A check turns when two looks in a row agree.
type Watch struct {
	In    *Installation
	After func() <-chan time.Time // waits from one look to the next
	By    string                  // this process, for others
	Log   *slog.Logger
	// Tell is called after each look with the checks that have turned wrong and still are, and with
	// whether all have turned right. nil: nobody is told.
	Tell func(ctx context.Context, wrong []Check, well bool) (Letter, error)
	// Command is called with each letter of Tell. If Tell fails, it is called with the checks of
	// which it was not told for a day. nil: nothing is.
	Command func(ctx context.Context, told Letter) error

	seen, kept string    // the states of the last look, and of the last one that was stored
	keptAt     time.Time // when that was; zero: none was yet

	mu   sync.Mutex
	last []Check // guarded by mu

	runs     map[string]int       // looks in a row at which a check was wrong
	well     int                  // looks in a row at which none was
	told     map[string]time.Time // when a check was logged; since it has been wrong
	untold   string               // the last error of Tell, logged
	ran      map[string]time.Time // when Command was told of a check
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

// Run repeats the checks until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	w.runs, w.told, w.ran = map[string]int{}, map[string]time.Time{}, map[string]time.Time{}
	defer func() {
		if !w.keptAt.IsZero() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), partLimit)
			defer cancel()
			_ = w.In.keepLook(ctx, w.By, w.last, true) // else others see that it grows old
		}
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
		w.lost, w.unclaims, w.keptAt = lost, release, time.Time{}
		_ = w.In.within(ctx, "older looks", func(ctx context.Context) error { return w.In.forgetLooks(ctx, 0) }) // else they grow old
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
		if w.runs[c.Name]++; len(Alarms([]Check{c})) == 0 {
			w.runs[c.Name] = 0
		}
		if w.runs[c.Name] > 1 {
			wrong = append(wrong, c)
		}
		w.note(c)
	}
	if w.well++; len(Alarms(checks)) > 0 {
		w.well = 0
	}
	err := w.keep(ctx, checks)
	if w.Tell != nil {
		all, well, letters := slices.Clone(wrong), w.well > 1, make(chan Letter, 1)
		failed := w.In.within(ctx, "the letter", func(ctx context.Context) error {
			told, err := w.Tell(ctx, all, well)
			letters <- told
			return err
		})
		told := Letter{}
		if failed == nil {
			told = <-letters
		}
		err = errors.Join(err, failed)
		w.command(ctx, told, failed, wrong)
	}
	if err == nil {
		w.untold = ""
	} else if ctx.Err() == nil && w.untold != err.Error() {
		w.untold = err.Error()
		w.Log.Error("the operator could not be notified about failing checks", "error", err)
	}
}

// command runs Command with what was told, or could not be.
func (w *Watch) command(ctx context.Context, told Letter, failed error, wrong []Check) {
	now := w.In.Engine.Now()
	if failed != nil {
		wrong = slices.DeleteFunc(wrong, func(c Check) bool { return now.Sub(w.ran[c.Name]) < again })
		if told = letter("", wrong); len(wrong) == 0 {
			return
		}
	}
	if w.Command == nil || told.Subject == "" || ctx.Err() != nil {
		return
	}
	for _, name := range told.Checks {
		w.ran[name] = now
	}
	if err := w.Command(ctx, told); err != nil {
		w.Log.Error("the alarm command failed", "subject", told.Subject, "error", err)
	}
}

// keep stores the look if two in a row have found new states, or the stored one is ten minutes old.
func (w *Watch) keep(ctx context.Context, checks []Check) error {
	was, now := w.seen, w.In.Engine.Now()
	w.seen = ""
	for _, c := range checks {
		w.seen += c.Name + " " + string(c.State) + "\n"
	}
	if now.Sub(w.keptAt).Abs() < keepEvery && (w.seen == w.kept || w.seen != was) {
		return nil
	}
	err := w.In.within(ctx, "the stored status", func(ctx context.Context) error {
		if w.keptAt.IsZero() {
			if err := w.In.forgetLooks(ctx, goneLook); err != nil {
				return err
			}
		}
		return w.In.keepLook(ctx, w.By, checks, false)
	})
	if err == nil {
		w.kept, w.keptAt = w.seen, now
	}
	return err
}

// note logs a check that has turned.
func (w *Watch) note(c Check) {
	now := w.In.Engine.Now()
	since, was := w.told[c.Name]
	switch {
	case w.runs[c.Name] > 1 && (!was || now.Sub(since) >= again):
		w.told[c.Name] = now
		w.Log.Error("status: a check is "+string(c.State), "check", c.Name, "found", c.Text, "next", c.Next)
	case w.runs[c.Name] == 0 && was:
		delete(w.told, c.Name)
		w.Log.Warn("status: a check passes again", "check", c.Name, "found", c.Text)
	}
}
