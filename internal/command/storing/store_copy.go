package storing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/transfer"
	"github.com/duesday/duesday/internal/view"
)

func (p *program) storeCopy() *cobra.Command {
	m := &transfer.Copy{Now: p.Now}
	var from, to string
	cancel := false
	c := session.Leaf("copy", func(ctx context.Context, _ []string) error { return p.copyStore(ctx, m, from, to, cancel) })
	c.Flags().StringVar(&from, "from", "", "`URL` of the store to move: pebble:DIR or dynamodb:?...")
	c.Flags().StringVar(&to, "to", "", "`URL` of the store to move it to")
	c.Flags().IntVar(&m.Shards, "shards", 0, "`NUMBER` of shards per date in the copy, 1 to "+
		strconv.Itoa(billing.MaxShards)+" (default: the source's)")
	c.Flags().IntVar(&m.Segments, "segments", transfer.DefaultSegments, "`NUMBER` of table segments that are copied at the same time, fixed when a copy begins")
	c.Flags().IntVar(&m.Rate, "rate", 0, "maximum `ITEMS` per second, 0 for no limit")
	c.Flags().BoolVar(&cancel, "cancel", false, "abandon a copy that does not charge yet")
	session.Required(c, "from", "to")
	return session.Checked(c, func([]string) error {
		if m.Rate < 0 {
			return screen.Usagef("--rate must be 0 or more items per second (got %d)", m.Rate)
		}
		if c.Flags().Changed("shards") {
			if err := screen.Between("shards", m.Shards, 1, billing.MaxShards); err != nil {
				return err
			}
		}
		return screen.Between("segments", m.Segments, 1, transfer.MaxSegments)
	})
}

func (p *program) copyStore(ctx context.Context, c *transfer.Copy, from, to string, cancel bool) error {
	places := [2]storeurl.Place{}
	for i, text := range [...]string{from, to} {
		place, err := p.PlaceOf(text)
		if err == nil && place.Scheme == "mem" {
			err = errors.New("a mem: store ends with its process; use pebble:DIR or dynamodb:?region=REGION")
		}
		if err == nil && place.Folder != "" {
			place.Folder, err = filepath.Abs(place.Folder)
		}
		if err != nil {
			return screen.Invalid(err)
		}
		places[i] = place
	}
	if places[0] == places[1] {
		return screen.Usagef("--from and --to must be different stores")
	}
	c.FromName, c.ToName, c.Shared = placeName(places[0]), placeName(places[1]), places[0].Shared()
	return p.withCopySide(ctx, places[0], false, func(from move.Side) error {
		c.From = from
		if _, err := from.State(ctx); errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrMissing) {
			return fmt.Errorf("there is no store at %s", c.FromName)
		} else if err != nil {
			return err
		}
		if cancel {
			return p.cancelAt(ctx, places[1], c)
		}
		if err := p.readyCopy(ctx, places[1]); err != nil {
			return err
		}
		return p.withCopySide(ctx, places[1], true, func(to move.Side) error {
			c.To = to
			return p.runCopy(ctx, c)
		})
	})
}

// readyCopy creates or completes the destination's tables. It returns an error if existing tables
// differ from the schema.
func (p *program) readyCopy(ctx context.Context, place storeurl.Place) error {
	if !place.Shared() {
		return nil
	}
	tables, err := session.TablesAt(place)
	if err != nil {
		return err
	}
	client, err := dynamostore.Dial(ctx, place.Region, place.Endpoint)
	if err != nil {
		return err
	}
	if _, err = dynamotable.Create(ctx, client, tables.All(), dynamotable.Settings{}, p.tell); err != nil {
		return fmt.Errorf("nothing was copied: %w", err)
	}
	return nil
}

// cancelAt cancels the copy at the place, even if the place no longer exists.
func (p *program) cancelAt(ctx context.Context, place storeurl.Place, c *transfer.Copy) error {
	cancel := func(to move.Side) error {
		c.To = to
		return p.cancelCopy(ctx, c)
	}
	err := p.withCopySide(ctx, place, false, cancel)
	if errors.Is(err, store.ErrMissing) && c.To.Store == nil {
		return p.withCopySide(ctx, storeurl.Place{Scheme: "mem"}, true, cancel)
	}
	return err
}

// withCopySide calls withSide for one of the two stores. If that store is missing, the error names
// it.
func (p *program) withCopySide(ctx context.Context, place storeurl.Place, create bool,
	do func(move.Side) error) error {
	err := p.withSide(ctx, place, create, true, do)
	if errors.Is(err, store.ErrMissing) {
		return fmt.Errorf("there is no store at %s: %w", placeName(place), err)
	}
	return err
}

// placeName returns the place's complete URL without a password, so that it can be stored and
// shown.
func placeName(place storeurl.Place) string {
	if !place.Shared() {
		return place.Scheme + ":" + place.Folder
	}
	var words []string
	add := func(name, value string) {
		if value != "" {
			words = append(words, name+"="+url.QueryEscape(value))
		}
	}
	add("prefix", place.Prefix)
	add("recurring_table", place.RecurringTable)
	add("region", place.Region)
	if at, err := url.Parse(place.Endpoint); err == nil {
		at.User = nil
		if text := at.String(); text != "" {
			words = append(words, "endpoint="+text)
		}
	}
	if len(words) == 0 {
		return "dynamodb:"
	}
	return "dynamodb:?" + strings.Join(words, "&")
}

func (p *program) runCopy(ctx context.Context, c *transfer.Copy) error {
	bar := phaseBar{p: p, c: c, bar: new(screen.Progress)}
	c.Progress, c.Waits = bar.report, bar.waits(p.Warn)
	r, err := c.Run(ctx)
	bar.end()
	if err != nil {
		return p.stillCopying(ctx, c, err)
	}
	if !r.Live {
		p.Code = screen.ExitFailed
	}
	differences := []string{} // only the first differences
	for _, d := range r.Differences {
		differences = append(differences, d.String())
	}
	p.sayCopied(c, r)
	return p.JSON(view.Object{"from", c.FromName, "to", c.ToName, "installation?", r.Installation, "shards?", r.Shards,
		"items", r.Items, "live", r.Live, // the copy charges from now on
		"before", r.Before, // the copy was already live
		"canceled", false, "charging", r.Charging, // whether the copy charges
		"reason?", r.Reason, "different", r.Different, "differences", differences})
}

func (p *program) sayCopied(c *transfer.Copy, r *transfer.Report) {
	if !r.Live {
		p.Say("%s in the copy at %s, which does not charge yet:", screen.Plural(r.Different, "difference"), c.ToName)
		for _, d := range r.Differences {
			p.Say("  %s", screen.Printable(d.String()))
		}
		p.Say("Neither store charges now. Make sure that no one works on the source, and run the same command again:\nit " +
			"copies these items once more, and compares everything again.")
		return
	}
	if r.Before {
		p.Say("%s was already copied to %s; nothing was done.", c.FromName, c.ToName)
	} else {
		p.Say("%s copied from %s to %s, and compared one by one.", screen.Plural(int(r.Items), "item"), c.FromName, c.ToName)
	}
	p.Say("%s is turned off permanently; keep it as long as you like, and delete it yourself.", c.FromName)
	at := *p
	at.Config.Store = c.ToName
	if r.Charging {
		p.Say("The copy charges from now on. Point every job at it:\n  %s", at.Hint("run payments"))
	} else {
		p.Say("Charging is off in the copy, as it was before (%s); to turn it on, run: %s", r.Reason, at.Hint("charging on"))
	}
}

// stillCopying adds advice on how to continue to the error of a copy that has started.
func (p *program) stillCopying(ctx context.Context, c *transfer.Copy, err error) error {
	if errors.Is(err, transfer.ErrRefused) || ctx.Err() != nil {
		return err
	}
	st, lerr := c.From.State(ctx)
	if lerr != nil || st.Moved == "" {
		return err
	}
	return fmt.Errorf("%w; no store charges until the copy is live, so run the same command again to continue, or with --cancel "+
		"to cancel the copy", err)
}

func (p *program) cancelCopy(ctx context.Context, c *transfer.Copy) error {
	bar := phaseBar{p: p, c: c, bar: new(screen.Progress)}
	c.Progress = bar.report
	err := c.Cancel(ctx)
	bar.end()
	if err != nil {
		return err
	}
	st, err := c.From.State(ctx)
	if err != nil {
		return err
	}
	state := "charges as before"
	if !st.Charging {
		state = "has charging off, as before (" + st.Reason + ")"
	}
	p.Say("The copy at %s is canceled and does not charge. %s %s.\nDelete what was copied before you use that place "+
		"again.", c.ToName, c.FromName, state)
	return p.JSON(view.Object{"from", c.FromName, "to", c.ToName, "installation?", st.Installation, "items", 0, "live", false,
		"before", false, "canceled", true, "charging", false, "different", 0, "differences", []string{}})
}

// A phaseBar shows a progress bar for each phase of a copy. Many goroutines report to it.
type phaseBar struct {
	p *program
	c *transfer.Copy

	mu     sync.Mutex
	phase  transfer.Phase   // guarded by mu
	bar    *screen.Progress // guarded by mu
	copied int64            // guarded by mu
	most   int64            // guarded by mu; for this phase
}

func (b *phaseBar) report(phase transfer.Phase, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if phase != b.phase {
		b.bar.End()
		b.phase, b.most = phase, 0
		switch phase {
		case transfer.Copying:
			b.bar = b.p.Progress("items copied", 0, b.left)
		case transfer.Comparing, transfer.Mending:
			b.bar = b.p.Progress("items compared", 2*b.copied, nil)
		case transfer.Confirming:
			b.bar = b.p.Progress("items compared once more, with the source turned off permanently", 2*b.copied, nil)
		case transfer.Lifting:
			b.bar = b.p.Progress("items checked", 0, nil)
		default:
			b.bar = b.p.Progress("leases of workers on the source that must end", 0, nil)
		}
	}
	if phase == transfer.Copying {
		b.copied = max(b.copied, n)
	}
	if b.most = max(b.most, n); phase == transfer.Waiting {
		b.most = n
	}
	b.bar.Done.Store(b.most)
}

// left counts the remaining items of an embedded source. It does not count on DynamoDB, where that
// would cost as much as the copy.
func (b *phaseBar) left(stop <-chan struct{}) int64 {
	if b.c.Shared {
		return 0
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var n int64
	for _, t := range b.c.From.Tables.All() {
		n += screen.CountUntil(b.c.From.Store.Scan(ctx, store.Scan{Table: t.Name}), stop)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return n - b.copied
}

// waits returns a function that tells the user once which workers the copy is waiting for.
func (b *phaseBar) waits(tell func(string, ...any)) func([]string) {
	told := false
	return func(leases []string) {
		if len(leases) > 0 && !told {
			told = true
			tell("waiting for workers on the source to end: %s (a lease that is not renewed expires within %s)",
				strings.Join(leases[:min(len(leases), 5)], ", "), engine.DefaultLease.Round(time.Second))
		}
	}
}

func (b *phaseBar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bar.End()
	b.bar = new(screen.Progress)
}
