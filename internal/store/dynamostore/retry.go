package dynamostore

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// A Pace bounds the attempts of one request, such as one page of a Query. The wait before each
// further attempt is random, up to a bound: First at the beginning, then doubled up to Longest.
type Pace struct {
	Attempt time.Duration // one attempt may take so long
	Total   time.Duration // all attempts and the waits between them
	First   time.Duration
	Longest time.Duration

	wall func() time.Time // the machine's clock; nil is time.Now
	told func(error)      // hears why an attempt failed when the waits have come to Longest; may be nil
}

func defaultPace() Pace {
	return Pace{Attempt: 10 * time.Second, Total: 40 * time.Second, First: 25 * time.Millisecond, Longest: 2 * time.Second}
}

// maxTotal keeps all sendings of a transaction within the ten minutes for which DynamoDB
// remembers its client token.
const maxTotal = 5 * time.Minute

func (p Pace) orDefault() Pace {
	d := defaultPace()
	p.Attempt = cmp.Or(max(p.Attempt, 0), d.Attempt)
	p.Total = min(cmp.Or(max(p.Total, 0), d.Total), maxTotal)
	p.First = cmp.Or(max(p.First, 0), d.First)
	p.Longest = cmp.Or(max(p.Longest, 0), d.Longest)
	return p
}

// A verdict is the result of one attempt.
type verdict uint8

const (
	final verdict = iota // the answer, good or bad
	again                // nothing was done, and it may be tried again
	lost                 // nobody knows whether it was done
)

// retry calls once until its verdict is final or time is up, and returns the last verdict
// and error. Time is up when ctx ends or Total is over, by timers or by the wall clock; the
// caller tells which by ctx.
func (p Pace) retry(ctx context.Context, once func(context.Context) (verdict, error)) (verdict, error) {
	all, cancel := context.WithTimeout(ctx, p.Total)
	defer cancel()
	bound := p.First
	for {
		ctx, cancel := context.WithTimeout(all, p.Attempt)
		v, err := once(ctx)
		cancel()
		if v == final || store.Wait(all, time.Duration(rand.Int64N(int64(bound)+1))) != nil || over(all, p.wall) {
			return v, err
		}
		if bound == p.Longest && p.told != nil {
			p.told(err)
		}
		bound = min(2*bound, p.Longest)
	}
}

// over reports whether the deadline has passed by the wall clock, which goes on while the
// machine sleeps and timers stand still: a client token may be forgotten meanwhile.
func over(ctx context.Context, wall func() time.Time) bool {
	if wall == nil {
		wall = time.Now
	}
	deadline, _ := ctx.Deadline()
	return !wall().Round(0).Before(deadline.Round(0))
}
