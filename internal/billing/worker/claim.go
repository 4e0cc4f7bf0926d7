package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/store"
)

// A BusyError reports that another run of the job is under way.
type BusyError struct {
	Kind    billing.Kind
	ID      string // of the run
	Process string // <pid>@<host>
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("run %s of %s is under way in process %s", e.ID, e.Kind, e.Process)
}

// Date returns the business day of the other run.
func (e *BusyError) Date() civil.Date {
	day, _, _ := strings.Cut(e.ID, "#")
	d, _ := civil.Parse(day) // an id begins with it
	return d
}

// ThisProcess returns the name of this process for output: <pid>@<host>.
func ThisProcess() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%d@%s", os.Getpid(), host)
}

// A Claim is a run's claim of its job, on a store whose processes can claim names: one run of the
// job is under way at a time. The claim ends with the process, without a clock. If the process that
// keeps the claims is gone, the run claims the job again before it begins another row. A nil Claim is
// always held, and so is a claim in a store without claims.
//
// A claim only saves work. The subscription's version, which billing.Records.Put checks, decides which
// worker wins.
type Claim struct {
	store store.Claimer
	kind  billing.Kind
	by    string // id and process

	mu      sync.Mutex
	lost    <-chan struct{} // guarded by mu
	release func()          // guarded by mu
}

// NewClaim returns a claim of the run's job that is not held yet. claims is nil for a store without
// claims.
func NewClaim(claims store.Claimer, r *billing.Run) *Claim {
	return &Claim{store: claims, kind: r.Kind, by: r.ID + " " + r.Process}
}

// Hold returns nil while this run holds the claim. If the claim was lost, Hold claims the job
// again, and returns a BusyError if another run was faster.
func (c *Claim) Hold(ctx context.Context) error {
	if c == nil || c.store == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.release != nil {
		select {
		case <-c.lost:
		default:
			return nil
		}
	}
	for {
		lost, release, err := c.store.Claim(ctx, claimName(c.kind), c.by)
		other, taken := errors.AsType[*store.ClaimedError](err)
		switch {
		case err == nil:
			c.lost, c.release = lost, release
			return nil
		case !taken:
			return err
		case other.By != c.by:
			return busy(c.kind, other)
		}
		// The process that keeps the claims has not seen the end of this process's last connection.
		if err := clock.Wait(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// End releases the claim.
func (c *Claim) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.release != nil {
		c.release()
	}
}

func claimName(kind billing.Kind) string { return "run " + string(kind) }

func busy(kind billing.Kind, e *store.ClaimedError) *BusyError {
	id, process, _ := strings.Cut(e.By, " ")
	return &BusyError{kind, id, process}
}

// Busy returns the active run of the job in any process, or nil. If the store has no claims, known
// is false.
func Busy(ctx context.Context, claims store.Claimer, kind billing.Kind) (run *BusyError, known bool, err error) {
	if claims == nil {
		return nil, false, nil
	}
	_, _, err = claims.Claim(ctx, claimName(kind), "")
	if other, taken := errors.AsType[*store.ClaimedError](err); taken {
		return busy(kind, other), true, nil
	}
	return nil, err == nil, err
}
