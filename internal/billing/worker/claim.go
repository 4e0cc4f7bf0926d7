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

// A BusyError reports that another run of the same job is active.
type BusyError struct {
	Kind    billing.Kind
	ID      string // run ID
	Process string // <pid>@<host>
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("run %s of %s is under way in process %s", e.ID, e.Kind, e.Process)
}

// Date returns the other run's business day.
func (e *BusyError) Date() civil.Date {
	day, _, _ := strings.Cut(e.ID, "#")
	d, _ := civil.Parse(day) // a run ID starts with the day
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

// A Claim is a run's claim to its job, on a store whose processes can claim names. Only one run of
// a job can hold the claim at a time. The claim ends when the process ends, and depends on no
// clock. If the process that keeps the claims ends, the run claims the job again before it starts
// another row. A nil Claim is always held, and so is a claim on a store without claims.
//
// A claim only saves work. The subscription's version, which billing.Records.Put checks, decides
// which worker wins.
type Claim struct {
	store store.Claimer
	kind  billing.Kind
	by    string // run ID and process

	mu      sync.Mutex
	lost    <-chan struct{} // guarded by mu
	release func()          // guarded by mu
}

// NewClaim returns a claim for the run's job. The run does not hold the claim until it calls Hold.
// claims is nil for a store without claims.
func NewClaim(claims store.Claimer, r *billing.Run) *Claim {
	return &Claim{store: claims, kind: r.Kind, by: r.ID + " " + r.Process}
}

// Hold returns nil while this run holds the claim. If the run has lost the claim, Hold claims the
// job again. It returns a BusyError if another run claimed the job first.
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
		// The process that keeps the claims has not noticed yet that this process's last connection
		// ended.
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

// Busy returns the job's active run in any process, or nil. known is false if the store has no
// claims.
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
