package transfer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/store"
)

// A Phase is a part of a copy.
type Phase string

// The phases, in their order. A resumed copy first corrects known differences.
const (
	Waiting    Phase = "waiting"    // for workers on the source
	Copying    Phase = "copying"    // counts items
	Mending    Phase = "mending"    // counts items of both stores
	Comparing  Phase = "comparing"  // counts items of both stores
	Confirming Phase = "confirming" // compares, and mends, once the source is final; counts items of both stores
	Lifting    Phase = "lifting"    // marks off the source of a canceled copy; counts items
)

// A Copy has one source and one destination. Any process may call Run and Cancel repeatedly until
// one of the calls has finished.
type Copy struct {
	From, To move.Side
	FromName string // URLs for people, without secrets; they are kept in both stores
	ToName   string
	Shared   bool // other processes may be at work on the source
	Shards   int  // per date in the destination; 0: as many as in the source
	Segments int  // read at a time, 1 to MaxSegments, fixed when a copy begins; 0: DefaultSegments
	Rate     int  // items a second; 0: as fast as it goes

	Now      func() time.Time
	Wait     func(context.Context, time.Duration) error // nil: by a timer
	Progress func(Phase, int64)                         // from any goroutine; nil: none
	Waits    func(leases []string)                      // told of every look at the source's leases; nil: nobody

	pace   pace
	plan   plan
	id     string // of the copy
	shard  int    // shards per date in the destination
	final  bool   // the source is: this copy becomes live, or none
	refill bool   // the destination has other shards: its lookup rows are not copied, but filled
	turn   string // of this copier, to mend and to activate

	// Concurrent commits with a check of the same item would be conflicts on DynamoDB.
	marking sync.Mutex // held for a commit to the source
	mending sync.Mutex // held for a commit with a check of the turn
}

// How many segments of a table are copied at a time.
const (
	DefaultSegments = 8
	MaxSegments     = 14 // of each table: the places of all tables, the plan and META are made in one commit
)

// A Report describes the progress of a copy.
type Report struct {
	Installation string
	Shards       int
	Items        int64 // in the destination
	Live         bool  // the destination charges from now on, if the source did
	Charging     bool  // of the destination
	Reason       string
	Before       bool         // it was live before
	Differences  []Difference // the first few
	Different    int          // how many there are
}

// ErrRefused means that the two stores cannot be the source and destination of one copy. Nothing
// was changed.
var ErrRefused = errors.New("cannot copy")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// ErrOvertaken means that another process is working on the same copy.
var ErrOvertaken = errors.New("another process is working on this copy")

var errGivenUp = fmt.Errorf("%w: it was canceled", ErrOvertaken)

// Run fences the source, copies, compares, and makes the destination the live store. After an
// error, the next Run continues at the same position. If differences remain, the report contains
// them and the destination is not live. The next Run corrects them and compares again.
func (c *Copy) Run(ctx context.Context) (*Report, error) {
	c.prepare()
	dst, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	r := &Report{Installation: dst.Installation, Shards: dst.Shards}
	if !dst.Copying {
		r.Live, r.Before, r.Charging, r.Reason = true, true, dst.Charging, dst.Reason
		return r, ctx.Err()
	}
	c.id, c.shard = dst.CopyID, dst.Shards
	if err := c.readPlan(ctx); err != nil {
		return nil, err
	}
	if c.Shared {
		if err := c.waitForLeases(ctx); err != nil {
			return nil, err
		}
	}
	if r.Items, err = c.copyAll(ctx); err != nil {
		return nil, err
	}
	found, err := c.compareAll(ctx)
	if err != nil {
		return nil, err
	}
	if r.Items = found.items; found.n > 0 {
		r.Differences, r.Different = found.first, found.n
		return r, c.note(ctx, differs, store.Bool(true)) // the next Run mends before it compares
	}
	if c.refill {
		records := billing.NewRecords(c.To.Store, c.To.Tables, c.Now, nil)
		records.Opened = dst.Meta
		if err := lookup.Fill(ctx, records, true, nil); err != nil {
			return nil, err
		}
	}
	if err := c.activate(ctx); err != nil {
		return nil, err
	}
	if dst, err = c.To.State(ctx); err != nil {
		return nil, err
	}
	r.Live, r.Charging, r.Reason = true, dst.Charging, dst.Reason
	return r, ctx.Err()
}

func (c *Copy) prepare() {
	c.Segments = cmp.Or(c.Segments, DefaultSegments)
	if c.Wait == nil {
		c.Wait = clock.Wait
	}
	if c.Progress == nil {
		c.Progress = func(Phase, int64) {}
	}
	c.pace = pace{now: c.Now, wait: c.Wait, rate: c.Rate}
}

// begin claims the destination and fences the source, unless this copy has done so before, and
// returns the state of the destination.
func (c *Copy) begin(ctx context.Context) (*move.State, error) {
	const tries = 5 // after a lost answer, or another copier was first
	for range tries {
		src, err := c.source(ctx)
		if err != nil {
			return nil, err
		}
		dst, err := c.To.State(ctx)
		if errors.Is(err, store.ErrNotFound) {
			err = c.claim(ctx, src)
			if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if err := c.agree(src, dst); err != nil {
			return nil, err
		}
		c.refill = src.Shards != dst.Shards
		if c.final = src.Final; dst.Copying {
			dst, err = c.fence(ctx, dst.CopyID)
		}
		return dst, err
	}
	return nil, ErrOvertaken
}

// fence fences the source, and then looks at the destination once more. If the copy was canceled
// or its destination was lost before the fence, fence lifts it again.
func (c *Copy) fence(ctx context.Context, id string) (*move.State, error) {
	if err := c.From.Fence(ctx, id, c.ToName); err != nil {
		return nil, err
	}
	dst, err := c.To.State(ctx)
	lost := errors.Is(err, store.ErrNotFound) || (err == nil && dst.CopyID != id)
	switch {
	case lost:
		err = refuse("the copy at %s has been removed", c.ToName)
	case err != nil || !dst.Canceled:
		return dst, err
	default:
		err = refuse("the copy at %s was canceled; drop it, or use another destination", c.ToName)
	}
	return nil, errors.Join(err, c.giveUp(ctx, id, !lost))
}

func (c *Copy) source(ctx context.Context) (*move.State, error) {
	src, err := c.From.State(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, refuse("there is no store at %s", c.FromName)
	case err != nil:
		return nil, err
	case src.Copying || src.Canceled:
		return nil, refuse("%s is not a live store: %s", c.FromName, src.Reason)
	}
	return src, nil
}

// agree returns why the two are not the source and the destination of one copy.
func (c *Copy) agree(src, dst *move.State) error {
	switch {
	case dst.CopyID == "" || (!dst.Copying && !dst.Canceled && src.MovedID != dst.CopyID):
		return refuse("%s is already another store; use a new or empty destination", c.ToName)
	case dst.Installation != src.Installation:
		return refuse("%s is an unfinished copy of another store (installation %s, not %s)", c.ToName,
			dst.Installation, src.Installation)
	case !dst.Copying && !dst.Canceled && dst.Moved != "":
		return refuse("%s was copied to %s, which has since moved elsewhere: %s", c.FromName, c.ToName, dst.Moved)
	case src.MovedID == dst.CopyID && (dst.Canceled || src.GivenUp):
		return refuse(
			"the copy at %s was canceled, but %s is not live again yet; run the same command with --cancel again",
			c.ToName, c.FromName)
	case dst.Canceled:
		return refuse("the copy at %s was canceled; drop it, or use another destination", c.ToName)
	case src.Moved != "" && src.MovedID != dst.CopyID:
		return refuse("%s was moved elsewhere: %s", c.FromName, src.Moved)
	case dst.Copying && c.Shards != 0 && c.Shards != dst.Shards:
		return refuse("the copy at %s was started with %d shards per date (got %d)", c.ToName, dst.Shards, c.Shards)
	}
	return nil
}

// claim takes the destination, if it is empty.
func (c *Copy) claim(ctx context.Context, src *move.State) error {
	if src.Moved != "" {
		return refuse("%s was already moved: %s", c.FromName, src.Moved)
	}
	if c.Segments < 1 || c.Segments > MaxSegments {
		return refuse("segments must be 1 to %d (got %d)", MaxSegments, c.Segments)
	}
	shards := cmp.Or(c.Shards, src.Shards)
	if shards < 1 || shards > billing.MaxShards {
		return refuse("shards per date must be 1 to %d (got %d)", billing.MaxShards, shards)
	}
	for _, t := range c.From.Tables.All() { // the source must be readable: after the move it charges nobody
		for _, err := range c.From.Store.Scan(ctx, store.Scan{Table: t.Name}) {
			if err != nil {
				return err
			}
			break
		}
	}
	for _, t := range c.To.Tables.All() {
		for it, err := range c.To.Store.Scan(ctx, store.Scan{Table: t.Name}) {
			if err != nil {
				return err
			}
			return refuse("table %s of %s must be empty (it contains %s/%s)", t.Name, c.ToName, t.KeyOf(it).PK, t.KeyOf(it).SK)
		}
	}
	return c.To.Claim(ctx, src, rand.Text(), c.FromName, shards, c.newPlan(c.Segments)...)
}

// waitForLeases only avoids conflicts: a stopped worker has no lease, and may wake at any time.
func (c *Copy) waitForLeases(ctx context.Context) error {
	for {
		held, err := c.From.LiveLeases(ctx, c.Now())
		if err != nil {
			return err
		}
		if c.Waits != nil {
			c.Waits(held)
		}
		if len(held) == 0 {
			return nil
		}
		c.Progress(Waiting, int64(len(held)))
		if err := c.Wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

// compareAll compares both stores, and if they are equal once more with a final source: a process
// opened before the fence may have changed it meanwhile, and that is mended. It returns the
// differences left, which the next Run mends. The source stays final.
func (c *Copy) compareAll(ctx context.Context) (*differences, error) {
	if !c.final {
		if c.plan.differs {
			if _, err := c.compare(ctx, Mending); err != nil {
				return nil, err
			}
		}
		if found, err := c.compare(ctx, Comparing); err != nil || found.n > 0 {
			return found, err
		}
		err := c.From.Finish(ctx, c.id)
		if errors.Is(err, store.ErrConflict) {
			return nil, errGivenUp
		}
		if err != nil {
			return nil, err
		}
		c.final = true
	}
	found, err := c.compare(ctx, Confirming)
	if err != nil || found.n == 0 {
		return found, err
	}
	return c.compare(ctx, Comparing)
}

// activate makes the destination live, unless it is.
func (c *Copy) activate(ctx context.Context) error {
	const tries = 5
	for range tries {
		src, err := c.From.State(ctx)
		if err != nil {
			return err
		}
		if src.MovedID != c.id || !src.Final {
			return errGivenUp
		}
		err = c.To.Activate(ctx, src, c.dropPlan()...)
		if err == nil || (!errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknown)) {
			return err
		}
		dst, lerr := c.To.State(ctx)
		if lerr != nil {
			return lerr
		}
		switch {
		case dst.CopyID == c.id && !dst.Copying && !dst.Canceled:
			return nil // the answer was lost, or another copier was first
		case dst.Canceled:
			return errGivenUp
		case errors.Is(err, store.ErrConflict):
			return ErrOvertaken // by another copier, which compares
		}
	}
	return ErrOvertaken
}
